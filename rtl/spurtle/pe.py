"""The ports that a core connects to. The core states architectural facts; encoding, gating and rounding are the
SPU's.
"""

# Ref: DDI0487 M.a, D17.3.6 (where operations are sampled is the core's choice), D17.6 (what is recorded).

from amaranth.hdl import Const
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from .arch import ADDRESS_BITS
from .config import SPUConfig

__all__ = [
    "Beat",
    "Drain",
    "Facts",
    "Finish",
    "InFlight",
    "Location",
    "Operation",
    "Outcome",
    "PEState",
    "PMUEvents",
    "SamplingPoint",
    "SystemRegisterPort",
    "WritePort",
    "has_data_source",
    "is_branch",
    "is_destination",
]


class Facts(data.Struct):
    """What an operation is and did, one bit each. LSB first.

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
        The load or store targets SIMD&FP registers.
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
    retired : unsigned(1)
        Architecturally executed (E[1]).
    exception : unsigned(1)
        Completed with a synchronous exception (E[0]).
    va_valid, pa_valid : unsigned(1)
        `va` was accessed; it was translated to `pa`.
    va_tagged : unsigned(1)
        The applicable TBI bit is one: the top byte of `va` is a tag and is recorded.
    data_source_valid : unsigned(1)
        `data_source` says where the loaded data came from.
    memory_copy, memory_set : unsigned(1)
        Of FEAT_MOPS. Nothing in a configuration without.
    gcs : unsigned(1)
        It accesses the Guarded control stack. Nothing in a configuration without FEAT_GCS.
    link_or_return : unsigned(1)
        Of an operation with `gcs`: it is a branch with link or a procedure return, or the access of one.
    destination : unsigned(1)
        Of an operation that loads from one address and stores to another, Memory Copy or GCSSS2: `va` and `pa` are
        where it stores, as `SamplingPoint.destination` asked. Nothing without `memory_copy` or `gcs`; zero of a swap,
        GCSSS1.
    """

    load: 1
    store: 1
    branch: 1
    atomic: 1
    acquire_release: 1
    exclusive: 1
    simd_fp: 1
    vector: 1
    floating_point: 1
    conditional: 1
    taken: 1
    indirect: 1
    retired: 1
    exception: 1
    va_valid: 1
    pa_valid: 1
    va_tagged: 1
    data_source_valid: 1
    memory_copy: 1
    memory_set: 1
    gcs: 1
    link_or_return: 1
    destination: 1


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


def has_data_source(config: SPUConfig, facts: Facts):
    """Its record holds a Data Source packet: a load, or the load of two accesses, that completed (D18.2.4)."""
    loads = facts.load & ~is_destination(config, facts)
    return facts.retired & ~facts.exception & loads & facts.data_source_valid


class Location(data.Struct):
    """An instruction address with the Exception level and Security state that it belongs to. LSB first."""

    address: ADDRESS_BITS
    el: 2
    ns: 1


class Operation(data.StructLayout):
    """A finished operation, as the core tells it. LSB first; widths follow the configuration.

    Members
    -------
    facts : Facts
    events : unsigned(8 * events_bytes)
        Bits of the Events packet (D18.2.6). E[0], E[1] and E[6] are derived from `facts` and ignored here.
    pc : unsigned(56)
        Its Exception level and Security state are those of the PE when it was sampled.
    target : Location
        Where a taken branch went; PC + 4 for a branch not taken.
    va : unsigned(64)
        Lowest virtual address accessed.
    pa : unsigned(56)
        Physical address of the same access.
    pa_ns : unsigned(1)
        The physical address is in the Non-secure physical address space.
    data_source : unsigned(8 * data_source_bytes)
        IMPLEMENTATION DEFINED code. Not there without a Data Source packet.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(
            {
                "facts": Facts,
                "events": 8 * config.events_bytes,
                "pc": ADDRESS_BITS,
                "target": Location,
                "va": 64,
                "pa": ADDRESS_BITS,
                "pa_ns": 1,
                **({"data_source": 8 * config.data_source_bytes} if config.data_source_bytes else {}),
            }
        )


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
    """

    def __init__(self, config: SPUConfig):
        lanes = config.ops_per_cycle
        super().__init__(
            {
                "valid": Out(lanes),
                "sampled": In(lanes),
                **({"slot": In(range(config.slots)).array(lanes)} if config.slots > 1 else {}),
                **({"destination": In(lanes)} if config.two_accesses else {}),
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
    translating : Out(slots)
        Level: part of the operation waits for an address translation, and the translation counter counts.
    """

    def __init__(self, config: SPUConfig):
        super().__init__({"issued": Out(config.slots), "translating": Out(config.slots)})


class Finish(wiring.Signature):
    """The end of a sampled operation, seen from the core. Always accepted: the SPU never stalls the core.

    Members
    -------
    valid : Out(1)
        A sampled operation has finished, at the earliest one cycle after its `sampled` strobe.
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


class PEState(wiring.Signature):
    """State of the PE in this cycle, as it is for the operation at the sampling point; seen from the core.

    Members
    -------
    el : Out(2)
        Exception level.
    ns : Out(1)
        Non-secure state.
    debug : Out(1)
        Debug state.
    aarch32 : Out(1)
        Executing in AArch32 state.
    contextidr_el1 : Out(32)
    physical_count : Out(64)
        PhysicalCountInt(): the system counter.
    """

    def __init__(self):
        super().__init__(
            {
                "el": Out(2),
                "ns": Out(1),
                "debug": Out(1),
                "aarch32": Out(1),
                "contextidr_el1": Out(32),
                "physical_count": Out(64),
            }
        )


class Outcome(enum.Enum, shape=1):
    """What a System register access came to."""

    VALUE = 0
    UNDEFINED = 1


class SystemRegisterPort(wiring.Signature):
    """MRS and MSR of the SPU's registers (op0 = 3), seen from the core.

    `rdata` and `outcome` answer one cycle after `valid`. A write has taken effect in that cycle.

    Members
    -------
    valid : Out(1)
        An access, at the Exception level that `PEState` says.
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
    """One write to memory, all of its bytes. LSB first.

    Members
    -------
    address : unsigned(64)
        A multiple of the bus width.
    data : unsigned(8 * bus_bytes)
        Bytes in order of ascending addresses.
    last : unsigned(1)
        The last beat of its record.
    """

    def __init__(self, config: SPUConfig):
        super().__init__({"address": 64, "data": 8 * config.bus_bytes, "last": 1})


class WritePort(wiring.Signature):
    """Writes to the Profiling Buffer, seen from the SPU. A record is a run of beats with ascending addresses.

    Members
    -------
    beat : Out(stream of Beat)
    done : In(1)
        The record whose last beat was taken is in memory. One strobe a record, in any cycle after its last beat's.
    """

    def __init__(self, config: SPUConfig):
        super().__init__({"beat": Out(stream.Signature(Beat(config))), "done": In(1)})


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
            }
        )
