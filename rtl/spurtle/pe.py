"""The ports that a core connects to. The core states architectural facts; encoding, gating and rounding are the
SPU's.
"""

# Ref: DDI0487 M.a, D17.3.6 (where operations are sampled is the core's choice), D17.6 (what is recorded).

from amaranth.hdl import Const
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from .arch import ADDRESS_BITS, FineGrainedTrap
from .config import ELEMENT_BITS, SPUConfig

__all__ = [
    "Beat",
    "Drain",
    "Facts",
    "Fault",
    "FaultKind",
    "FineGrainedTraps",
    "Finish",
    "InFlight",
    "Location",
    "Operation",
    "Outcome",
    "PEState",
    "PMUEvents",
    "SamplingPoint",
    "SystemRegisterPort",
    "TakenBranch",
    "Vectors",
    "WritePort",
    "el2_enabled",
    "has_data_access",
    "has_data_source",
    "has_load",
    "is_branch",
    "is_destination",
    "is_scalable",
    "owner_state",
]


class Facts(data.Struct):
    """What an operation is and did, one bit each. LSB first. What belongs to a feature is nothing without it.

    Members
    -------
    load, store : unsigned(1)
        Reads memory, writes memory. An atomic that returns a value is both, and so is a memory copy; prefetch, cache
        maintenance and address translation are neither.
    branch : unsigned(1)
        Branch or exception return. It is neither load nor store, but for an access to the Guarded control stack.
    atomic, acquire_release, exclusive : unsigned(1)
        Of a load or store (D18.2.7, Load/store, extended).
    simd_fp : unsigned(1)
        The load or store targets SIMD&FP registers or, before FEAT_SPEv1p1, SVE registers.
    unspecified : unsigned(1)
        The load or store targets no registers that the packet could name: DC ZVA. So does every SME operation without
        FEAT_SPE_SME, which is not Advanced SIMD either. Of FEAT_SPEv1p1, and of FEAT_SPE_FPF.
    allocation_tag : unsigned(1)
        The load or store is of Allocation Tags alone. Of FEAT_MTE2 and FEAT_SPEv1p3.
    nv2 : unsigned(1)
        MRS or MSR at EL1 that was made a load or store (D17.6.4.2). Of FEAT_NV2.
    memory_copy, memory_set : unsigned(1)
        Of FEAT_MOPS.
    gcs : unsigned(1)
        It accesses the Guarded control stack. Of FEAT_GCS.
    vector : unsigned(1)
        Advanced SIMD, SVE or SME data processing. Of a load or store: of Q registers, of structures, replicating, or
        SVE or SME (D17.5.1, SIMD).
    floating_point : unsigned(1)
        It computes with floating-point numbers, as scalars or vectors (D17.5.1, FP).
    conditional : unsigned(1)
        The operation depends on PSTATE.NZCV, or is a compare-and-branch or test-and-branch (D17.6.5).
    taken : unsigned(1)
        The condition passed: a branch was taken. One for an unconditional operation.
    indirect : unsigned(1)
        Of a branch: the target comes from a register.
    link, procedure_return : unsigned(1)
        A branch with link, a procedure return, or the access of one to the Guarded control stack. Of FEAT_SPE_CRR and
        FEAT_GCS.
    asynchronous : unsigned(1)
        It executes on a Streaming Mode Compute Unit or an external coprocessor (E[25]), and therefore where the
        alternate clock runs (D17.6.1). Without FEAT_SPE_SME: wherever that clock runs.
    retired : unsigned(1)
        Committed its results, or completed with a synchronous exception (E[1]).
    exception : unsigned(1)
        Completed with a synchronous exception (E[0]).
    va_valid, pa_valid : unsigned(1)
        `va` was accessed; it was translated to `pa`.
    va_tagged : unsigned(1)
        The top byte of `va` is recorded: the applicable TBI bit is one, or Memory Tagging is used with Address tagging
        disabled (D17.6.4.1).
    data_source_valid : unsigned(1)
        `data_source` says where the loaded data came from.
    destination : unsigned(1)
        Of an operation that loads from one address and stores to another, Memory Copy or GCSSS2: `va` and `pa` are
        where it stores, as `SamplingPoint.destination` asked. Nothing without `memory_copy` or `gcs`; zero of a swap,
        GCSSS1.
    imp_counter_valid, imp_address_valid : unsigned(1)
        `imp_counter`, `imp_address` are to be recorded.
    """

    load: 1
    store: 1
    branch: 1
    atomic: 1
    acquire_release: 1
    exclusive: 1
    simd_fp: 1
    unspecified: 1
    allocation_tag: 1
    nv2: 1
    memory_copy: 1
    memory_set: 1
    gcs: 1
    vector: 1
    floating_point: 1
    conditional: 1
    taken: 1
    indirect: 1
    link: 1
    procedure_return: 1
    asynchronous: 1
    retired: 1
    exception: 1
    va_valid: 1
    pa_valid: 1
    va_tagged: 1
    data_source_valid: 1
    destination: 1
    imp_counter_valid: 1
    imp_address_valid: 1


class Vectors(data.StructLayout):
    """What an SVE or SME operation works on (D17.6.6). LSB first.

    Members
    -------
    sve : unsigned(1)
        A Sampled SVE SIMD operation.
    predicated : unsigned(1)
        A Sampled predicated operation.
    gather_scatter : unsigned(1)
        Of a load or store.
    bits : unsigned(12), unsigned(19) with FEAT_SPE_SME
        Sampled effective vector length: bits of one vector, at most 2048. Of a tile operation its Sampled effective
        tile size: bits of the tile or tiles.
    sme : unsigned(1)
        A Sampled SME vector or SME tile operation. Only with FEAT_SME.
    tile : unsigned(1)
        An SME tile operation. This and the following only with FEAT_SPE_SME.
    whole_array : unsigned(1)
        Of an SME operation: it works on the whole ZA array at once.
    count : unsigned(5)
        Vectors that it works on.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "sve": 1,
                "predicated": 1,
                "gather_scatter": 1,
                "bits": 19 if config.spe_sme else 12,
                **({"sme": 1} if config.sme else {}),
                **({"tile": 1, "whole_array": 1, "count": 5} if config.spe_sme else {}),
            }
        )


class Location(data.StructLayout):
    """An instruction address with the Exception level and Security state that it belongs to. LSB first: `address`, 56
    bits; `el`, two; `ns`; and with FEAT_RME `nse`.
    """

    def __init__(self, config: SPUConfig):
        super().__init__({"address": ADDRESS_BITS, "el": 2, "ns": 1, **({"nse": 1} if config.rme else {})})


class Operation(data.StructLayout):
    """A finished operation, as the core tells it. LSB first; widths follow the configuration.

    Members
    -------
    facts : Facts
    events : unsigned(8 * events_bytes)
        Bits of the Events packet (D18.2.6). E[0], E[1], E[6] and E[25] are derived from `facts` and ignored here.
    pc : unsigned(56)
        Its Exception level and Security state are those of the PE when it was sampled.
    target : Location
        Where a taken branch went; PC + 4 for a branch not taken.
    va : unsigned(64)
        Lowest virtual address accessed.
    pa : unsigned(56)
        Physical address of the same access.
    pa_ns, pa_nse : unsigned(1)
        Its physical address space. The latter only with FEAT_RME.
    pa_checked, pa_tag : unsigned(1), unsigned(4)
        The access was checked against an Allocation Tag in memory; the Physical Address Tag. Only with FEAT_MTE2.
    data_source : unsigned(8 * data_source_bytes)
        IMPLEMENTATION DEFINED code. Not there without a Data Source packet.
    vectors : Vectors
        Only with FEAT_SVE or FEAT_SME.
    imp_counter, imp_address : unsigned(counter_bits), unsigned(64)
        IMPLEMENTATION DEFINED. Where the configuration has an INDEX for it. No address that may not be collected.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "facts": Facts,
                "events": 8 * config.events_bytes,
                "pc": ADDRESS_BITS,
                "target": Location(config),
                "va": 64,
                "pa": ADDRESS_BITS,
                "pa_ns": 1,
                **({"pa_nse": 1} if config.rme else {}),
                **({"pa_checked": 1, "pa_tag": 4} if config.mte else {}),
                **({"data_source": 8 * config.data_source_bytes} if config.data_source_bytes else {}),
                **({"vectors": Vectors(config)} if config.scalable else {}),
                **({"imp_counter": config.counter_bits} if config.imp_counter else {}),
                **({"imp_address": 64} if config.imp_address else {}),
            }
        )


def is_branch(facts: Facts):
    """It is sampled as a branch: an operation that generates an exception is none (D17.5.1, D17.6.3)."""
    return facts.branch & ~facts.exception


def is_destination(config: SPUConfig, facts: Facts):
    """Of two accesses the store is sampled (D17.6.4.3, D17.6.4.5)."""
    two = Const(0)
    if config.mops:
        two |= facts.memory_copy
    if config.gcs:
        two |= facts.gcs
    return two & facts.store & facts.destination


def _recorded(config: SPUConfig, facts: Facts, accesses):
    """Return `accesses` as far as they are recorded: those of a branch only with FEAT_GCS (D17.6.3)."""
    return accesses if config.gcs else accesses & ~is_branch(facts)


def has_data_access(config: SPUConfig, facts: Facts):
    """Return whether the record of a completed operation holds a data access."""
    return _recorded(config, facts, facts.load | facts.store)


def has_load(config: SPUConfig, facts: Facts):
    """Return whether the record of a completed operation holds a data access that loads, alone or with a store."""
    return _recorded(config, facts, facts.load)


def has_data_source(config: SPUConfig, facts: Facts):
    """Its record holds a Data Source packet: a load, or the load of two accesses, that completed (D18.2.4)."""
    loads = has_load(config, facts) & ~is_destination(config, facts)
    return facts.retired & ~facts.exception & loads & facts.data_source_valid


def is_scalable(config: SPUConfig, operation: Operation):
    """A Sampled SVE SIMD operation, or with FEAT_SME one on the ZA array (D17.6.6)."""
    if not config.scalable:
        return Const(0)
    return operation.vectors.sve | operation.vectors.sme if config.sme else operation.vectors.sve


class SamplingPoint(wiring.Signature):
    """The point of the pipeline at which the core samples, seen from the core. A lane is a bit; they are in program
    order, bit 0 first, and any of them may be empty.

    Members
    -------
    valid : Out(ops_per_cycle)
        Members of the sample population that pass in this cycle. One `PEState` holds for all of them.
    sampled : In(ops_per_cycle)
        `answer_latency` cycles after `valid`: which of those operations are sampled. More than one can be with
        FEAT_SPE_ERnd alone, and then at most two.
    slot : In(range(slots)) for each lane
        The slot of a sampled operation, by which the core tells it from the others in flight. Not there with one slot.
    destination : In(ops_per_cycle)
        Which access is sampled of a sampled operation that loads from one address and stores to another (Memory Copy,
        GCSSS2): the store, where it is one (D17.6.4.3, D17.6.4.5). Only there with FEAT_MOPS or FEAT_GCS.
    element : In(8) for each lane
        A uniform random number, a fresh one for each selected operation: of a non-contiguous SVE access to n elements
        number `element * n >> 8` is sampled (D17.6.6 R_MYPFF). Only there with FEAT_SVE or FEAT_SME.
    """

    def __init__(self, config: SPUConfig):
        lanes = config.ops_per_cycle
        super().__init__(
            {
                "valid": Out(lanes),
                "sampled": In(lanes),
                **({"slot": In(range(config.slots)).array(lanes)} if config.slots > 1 else {}),
                **({"destination": In(lanes)} if config.two_accesses else {}),
                **({"element": In(ELEMENT_BITS).array(lanes)} if config.scalable else {}),
            }
        )


class InFlight(wiring.Signature):
    """What the sampled operations are doing, one bit for each slot, seen from the core; meaningful from an operation's
    `sampled` to its `Finish`.

    What happens to an operation is told `answer_latency - 1` cycles late, here and in `Finish`. So the cycle after it
    passed the sampling point is told with the answer, nothing is told before, and the latencies are true.

    Members
    -------
    issued : Out(slots)
        The operation leaves the issue queue: the issue counter stops.
    completed : Out(slots)
        It has finished execution and can stall no instruction that consumes its output (D18.2.3): its counters stop. In
        the cycle of `Finish` at the latest: that stops them as well.
    translating : Out(slots)
        Level: part of the operation waits for an address translation, and the translation counter counts.
    alternate_tick : Out(1)
        A cycle of the alternate clock has passed (D17.6.1). Only there with that clock.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "issued": Out(config.slots),
                "completed": Out(config.slots),
                "translating": Out(config.slots),
                **({"alternate_tick": Out(1)} if config.altclk else {}),
            }
        )


class Finish(wiring.Signature):
    """The end of a sampled operation, seen from the core. Always accepted: the SPU never stalls the core.

    Members
    -------
    valid : Out(1)
        A sampled operation has finished, at the earliest one cycle after its `sampled` strobe. All is known of it,
        whether it retired too: where that comes after it completed, `InFlight.completed` has told its latency.
    slot : Out(range(slots))
        Which. Not there with one slot.
    vanished : Out(1)
        It was flushed and leaves no record: only its slot is freed.
    operation : Out(Operation)
        What it was.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "valid": Out(1),
                **({"slot": Out(range(config.slots))} if config.slots > 1 else {}),
                "vanished": Out(1),
                "operation": Out(Operation(config)),
            }
        )


class TakenBranch(wiring.Signature):
    """The taken branches that retire, in program order, seen from the core. Only there with FEAT_SPE_PBT.

    The core chooses whether exceptions, exception returns and other context synchronization are told of as branches
    (D17.6.3.1). A branch that is older in program order than a sampled operation is told before the cycle in which
    `Finish` tells of that operation, and nothing younger is, nor the operation itself.

    Members
    -------
    valid : Out(1)
        A taken branch has retired.
    target : Out(Location)
        Where it went.
    el, ns, nse, aarch32 : Out
        State of the PE that it was executed in, as in `PEState`; `nse` only with FEAT_RME.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "valid": Out(1),
                "target": Out(Location(config)),
                "el": Out(2),
                "ns": Out(1),
                **({"nse": Out(1)} if config.rme else {}),
                "aarch32": Out(1),
            }
        )


class FineGrainedTraps(data.StructLayout):
    """Of HDFGRTR_EL2, or of HDFGWTR_EL2, the fields that trap reads, or writes, of the registers of this SPU: one bit
    each, by its name, in the order of their bits. LSB first. With `second` of HDFGRTR2_EL2, of HDFGWTR2_EL2.
    """

    def __init__(self, config: SPUConfig, *, write: bool, second: bool = False):
        super().__init__({trap.name: 1 for trap in _fine_grained_traps(config, write=write, second=second)})


def _fine_grained_traps(config: SPUConfig, *, write: bool, second: bool) -> list[FineGrainedTrap]:
    traps = [
        register.fine_grained
        for register in config.registers
        if register.fine_grained and not (write and register.read_only)
    ]
    return sorted((trap for trap in traps if trap.second == second), key=lambda trap: trap.bit)


class PEState(wiring.Signature):
    """State of the PE in this cycle, as it is for the operation at the sampling point; seen from the core.

    Fields of System registers are those that software wrote: what their Effective values are is the SPU's to say. Each
    has the name of its register and its own. They change as the context is synchronized, not as MSR executes.

    Members
    -------
    el : Out(2)
        Exception level.
    ns : Out(1)
        Non-secure state; Realm state if `nse` is one as well. At EL3 that of the Exception levels below, SCR_EL3.NS.
        Steady without EL3.
    nse : Out(1)
        Realm state if `ns` is one. At EL3 SCR_EL3.NSE. Only there with FEAT_RME.
    debug : Out(1)
        Debug state.
    aarch32 : Out(1)
        Executing in AArch32 state.
    contextidr_el1 : Out(32)
    contextidr_el2 : Out(32)
        This and the next five only with EL2.
    mdcr_el2_e2pb : Out(2)
        EL2 owns the Profiling Buffer if this is zero.
    mdcr_el2_tpms : Out(1)
        Accesses from EL1 to the registers of sampling trap to EL2.
    hcr_el2_e2h, hcr_el2_tge : Out(1)
    cntvoff_el2 : Out(64)
        Virtual offset of the system counter.
    cnthctl_el2_ecv, cntpoff_el2 : Out(1), Out(64)
        Physical offset of the system counter, and whether there is one. Only with FEAT_ECV_POFF.
    mdcr_el3_nspb, mdcr_el3_nspbe : Out(2), Out(1)
        Which Security state owns the Profiling Buffer. Only with EL3, the latter with FEAT_RME.
    scr_el3_eel2 : Out(1)
        EL2 is enabled in Secure state. Only with FEAT_SEL2.
    scr_el3_ecven : Out(1)
        Only with EL3 and FEAT_ECV_POFF.
    mdcr_el3_enpmsn, mdcr_el3_enpms3 : Out(1)
        Otherwise accesses to PMSNEVFR_EL1, to PMSDSFR_EL1, trap to EL3. Only with EL3 and those registers.
    hdfgrtr_el2, hdfgwtr_el2 : Out(FineGrainedTraps)
        Only with FEAT_FGT.
    hdfgrtr2_el2, hdfgwtr2_el2 : Out(FineGrainedTraps)
        Only with FEAT_FGT2 and PMSDSFR_EL1.
    scr_el3_fgten, scr_el3_fgten2 : Out(1)
        Only with EL3 and the former, the latter.
    physical_count : Out(64)
        PhysicalCountInt(): the system counter.
    count_enabled : Out(1)
        The system counter counts (CNTCR.EN).
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "el": Out(2),
                "ns": Out(1),
                **({"nse": Out(1)} if config.rme else {}),
                "debug": Out(1),
                "aarch32": Out(1),
                "contextidr_el1": Out(32),
                **(
                    {
                        "contextidr_el2": Out(32),
                        "mdcr_el2_e2pb": Out(2),
                        "mdcr_el2_tpms": Out(1),
                        "hcr_el2_e2h": Out(1),
                        "hcr_el2_tge": Out(1),
                        "cntvoff_el2": Out(64),
                    }
                    if config.el2
                    else {}
                ),
                **({"cnthctl_el2_ecv": Out(1), "cntpoff_el2": Out(64)} if config.ecv_poff else {}),
                **({"mdcr_el3_nspb": Out(2)} if config.el3 else {}),
                **({"mdcr_el3_nspbe": Out(1)} if config.rme else {}),
                **({"scr_el3_eel2": Out(1)} if config.sel2 else {}),
                **({"scr_el3_ecven": Out(1)} if config.el3 and config.ecv_poff else {}),
                **({"mdcr_el3_enpmsn": Out(1)} if config.el3 and config.fne else {}),
                **({"mdcr_el3_enpms3": Out(1)} if config.el3 and config.fds else {}),
                **(_trapping(config, "", "scr_el3_fgten") if config.fgt else {}),
                **(_trapping(config, "2", "scr_el3_fgten2") if config.fgt2 and config.fds else {}),
                "physical_count": Out(64),
                "count_enabled": Out(1),
            }
        )


def _trapping(config: SPUConfig, suffix: str, enable: str):
    second = suffix == "2"
    return {
        f"hdfgrtr{suffix}_el2": Out(FineGrainedTraps(config, write=False, second=second)),
        f"hdfgwtr{suffix}_el2": Out(FineGrainedTraps(config, write=True, second=second)),
        **({enable: Out(1)} if config.el3 else {}),
    }


def el2_enabled(config: SPUConfig, pe, ns):
    """EL2 is enabled in Non-secure or Realm state, or in Secure state. Without EL3 it always is."""
    if not (config.el2 and config.el3):
        return Const(config.el2, 1)
    return ns | pe.scr_el3_eel2 if config.sel2 else ns


def owner_state(config: SPUConfig, pe):
    """The Security state that owns the Profiling Buffer, by the names of its bits: `ns`, and `nse` with FEAT_RME. The
    reserved values of MDCR_EL3.{NSPBE, NSPB} are Secure state's.
    """
    ns = pe.mdcr_el3_nspb[1] if config.el3 else pe.ns
    return {"ns": ns, **({"nse": pe.mdcr_el3_nspbe & ns} if config.rme else {})}


class Outcome(enum.Enum, shape=2):
    """What a System register access came to."""

    VALUE = 0
    UNDEFINED = 1
    TRAP_EL2 = 2
    TRAP_EL3 = 3


class SystemRegisterPort(wiring.Signature):
    """MRS and MSR of the SPU's registers (op0 = 3), seen from the core.

    `rdata` and `outcome` answer two cycles after `valid`. A write has taken effect in that cycle. There can be an
    access in every cycle.

    What is the PE's alone is not done here: accesses that FEAT_NV makes traps, or accesses to memory; in Debug state
    with EDSCR.SDD a trap to EL3, which is UNDEFINED then; HCR_EL2.TIDCP.

    Members
    -------
    valid : Out(1)
        An access, in the state that `PEState` says in this cycle.
    write : Out(1)
        MSR, not MRS.
    op1, crn, crm, op2 : Out(3), Out(4), Out(4), Out(3)
        Encoding of the register.
    wdata : Out(64)
    rdata : In(64)
        Zero when the outcome is not a value.
    outcome : In(Outcome)
    """

    def __init__(self):
        super().__init__(
            {
                "valid": Out(1),
                "write": Out(1),
                "op1": Out(3),
                "crn": Out(4),
                "crm": Out(4),
                "op2": Out(3),
                "wdata": Out(64),
                "rdata": In(64),
                "outcome": In(Outcome),
            }
        )


class Beat(data.StructLayout):
    """One write to memory. LSB first.

    Members
    -------
    address : unsigned(64)
        A multiple of the bus width.
    data : unsigned(8 * bus_bytes)
        Bytes in order of ascending addresses.
    strobe : unsigned(bus_bytes)
        Which of them are written, bit 0 for the first byte. All of them but for the first and last beat of a record in
        a packed layout that is aligned to less than the bus.
    last : unsigned(1)
        The last beat of its record.
    """

    def __init__(self, config: SPUConfig):
        super().__init__({"address": 64, "data": 8 * config.bus_bytes, "strobe": config.bus_bytes, "last": 1})


class FaultKind(enum.Enum, shape=3):
    """Why a write to the Profiling Buffer could not be made."""

    NONE = 0
    STAGE_1 = 1
    """Stage 1 Data Abort."""
    STAGE_2 = 2
    """Stage 2 Data Abort."""
    GRANULE_PROTECTION = 3
    """Granule Protection Check fault other than a Granule Protection Fault. Only with FEAT_RME."""
    NOT_ALLOWED = 4
    """The Profiling Buffer's owner may not access memory there: access not allowed."""


class Fault(data.StructLayout):
    """What a write to the Profiling Buffer met. LSB first.

    Members
    -------
    kind : FaultKind
    fsc : unsigned(6)
        Fault status code (D24.7, PMBSR_EL1) of a stage 1 or stage 2 Data Abort.
    word : range(words of the longest record + 1)
        Which beat of the record, counted from zero, is the first that was not written.
    external : unsigned(1)
        It is a synchronous External abort. Only there if PMBSR_EL1 reports those.
    DirtyBit, Overlay, AssuredOnly, TopLevel : unsigned(1)
        What PMBSR_EL1.MSS2 tells of a Data Abort, as far as there are such (config: `fault_flags`).
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "kind": FaultKind,
                "fsc": 6,
                "word": range(config.max_record_bytes // config.bus_bytes + 1),
                **({"external": 1} if config.external_aborts else {}),
                **dict.fromkeys(config.fault_flags, 1),
            }
        )


class WritePort(wiring.Signature):
    """Writes to the Profiling Buffer, seen from the SPU. A record is a run of beats with ascending addresses.

    Members
    -------
    beat : Out(stream of Beat)
    done : In(1)
        The record whose last beat was taken is in memory, or has met a fault. One strobe a record, in any cycle after
        its last beat's.
    fault : In(Fault)
        Of that record, in the cycle of `done`. From the first beat that could not be written on none was.
    abort : In(1)
        Strobe, in any cycle: an asynchronous External abort on some write before. Only there if PMBSR_EL1 reports it.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "beat": Out(stream.Signature(Beat(config))),
                "done": In(1),
                "fault": In(Fault(config)),
                **({"abort": In(1)} if config.external_aborts else {}),
            }
        )


class Drain(wiring.Signature):
    """PSB CSYNC, seen from the core.

    Members
    -------
    request : Out(1)
        Level, held until `done`. No operation finishes in the meantime.
    done : In(1)
        Each record of a finished operation is in memory, or was discarded; PMBPTR_EL1 and PMBSR_EL1 say so.
    """

    def __init__(self):
        super().__init__({"request": Out(1), "done": In(1)})


class PMUEvents(wiring.Signature):
    """PMU events of the SPU, seen from the SPU: how many of each in this cycle.

    Members
    -------
    sample_pop : Out(range(ops_per_cycle + 1))
        Members of the sample population that passed while profiling was enabled.
    sample_feed : Out(1)
        A sampled operation finished.
    sample_feed_br, sample_feed_ld, sample_feed_st, sample_feed_fp, sample_feed_simd : Out(1)
        Of that type (D17.5.1). The last two only with FEAT_SPE_EFT.
    sample_feed_op, sample_feed_event, sample_feed_lat, sample_feed_ds : Out(1)
        That meets the filter by type, by event, by latency, by data source, whether or not that is enabled. The last
        one only with FEAT_SPE_FDS.
    sample_filtrate : Out(1)
        It passed the filter.
    sample_collision : Out(range(selections_per_cycle + 1))
        Operations selected while all slots were taken.
    sample_buffer_full : Out(1)
        A record filled the buffer.
    freeze : Out(1)
        Level: PMBLIMITR_EL1.{PMFZ, E} and PMBSR_EL1.S are one. The PMU's event counters are frozen, as PMCR_EL0.FZS and
        MDCR_EL2.HPMFZS say. Only with FEAT_SPEv1p2.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "sample_pop": Out(range(config.ops_per_cycle + 1)),
                "sample_feed": Out(1),
                **{f"sample_feed_{event}": Out(1) for event in config.feed_events},
                "sample_filtrate": Out(1),
                "sample_collision": Out(range(config.selections_per_cycle + 1)),
                "sample_buffer_full": Out(1),
                **({"freeze": Out(1)} if config.discard_mode else {}),
            }
        )
