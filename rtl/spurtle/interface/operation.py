"""Operations: the facts that the core states of each, and the payload of a finished one."""

# Ref: DDI0487 M.a, D17.6 (what is recorded).

from amaranth.hdl import Const
from amaranth.lib import data

from ..arch import ADDRESS_BITS
from ..config import SPUConfig, check_config
from .members import when

__all__ = [
    "FactsLayout",
    "LocationLayout",
    "OperationLayout",
    "VectorsLayout",
    "has_data_access",
    "has_data_source",
    "has_load",
    "is_branch",
    "is_destination",
    "is_scalable",
]


class FactsLayout(data.Struct):
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
        where it stores, as `SamplingPointSignature.destination` asked. Nothing without `memory_copy` or `gcs`; zero of
        a swap, GCSSS1.
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


class VectorsLayout(data.StructLayout):
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
        check_config(config)
        super().__init__(
            {
                "sve": 1,
                "predicated": 1,
                "gather_scatter": 1,
                "bits": 19 if config.spe_sme else 12,
                **when(config.sme, sme=1),
                **when(config.spe_sme, tile=1, whole_array=1, count=5),
            }
        )


class LocationLayout(data.StructLayout):
    """An instruction address with the Exception level and Security state that it belongs to. LSB first: `address`, 56
    bits; `el`, two; `ns`; and with FEAT_RME `nse`.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__({"address": ADDRESS_BITS, "el": 2, "ns": 1, **when(config.rme, nse=1)})


class OperationLayout(data.StructLayout):
    """A finished operation, as the core tells it. LSB first; widths follow the configuration.

    Members
    -------
    facts : FactsLayout
    events : unsigned(8 * events_bytes)
        Bits of the Events packet (D18.2.6). E[0], E[1], E[6] and E[25] are derived from `facts` and ignored here.
    pc : unsigned(56)
        Its Exception level and Security state are those of the PE when it was sampled.
    target : LocationLayout
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
    vectors : VectorsLayout
        Only with FEAT_SVE or FEAT_SME.
    imp_counter, imp_address : unsigned(counter_bits), unsigned(64)
        IMPLEMENTATION DEFINED. Where the configuration has an INDEX for it. No address that may not be collected.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "facts": FactsLayout,
                "events": 8 * config.events_bytes,
                "pc": ADDRESS_BITS,
                "target": LocationLayout(config),
                "va": 64,
                "pa": ADDRESS_BITS,
                "pa_ns": 1,
                **when(config.rme, pa_nse=1),
                **when(config.mte, pa_checked=1, pa_tag=4),
                **when(config.data_source_bytes, data_source=8 * config.data_source_bytes),
                **when(config.scalable, vectors=VectorsLayout(config)),
                **when(config.imp_counter, imp_counter=config.counter_bits),
                **when(config.imp_address, imp_address=64),
            }
        )


def is_branch(facts: FactsLayout):
    """It is sampled as a branch: an operation that generates an exception is none (D17.5.1, D17.6.3)."""
    return facts.branch & ~facts.exception


def is_destination(config: SPUConfig, facts: FactsLayout):
    """Of two accesses the store is sampled (D17.6.4.3, D17.6.4.5)."""
    two = Const(0)
    if config.mops:
        two |= facts.memory_copy
    if config.gcs:
        two |= facts.gcs
    return two & facts.store & facts.destination


def _recorded(config: SPUConfig, facts: FactsLayout, accesses):
    """Return `accesses` as far as they are recorded: those of a branch only with FEAT_GCS (D17.6.3)."""
    return accesses if config.gcs else accesses & ~is_branch(facts)


def has_data_access(config: SPUConfig, facts: FactsLayout):
    """Return whether the record of a completed operation holds a data access."""
    return _recorded(config, facts, facts.load | facts.store)


def has_load(config: SPUConfig, facts: FactsLayout):
    """Return whether the record of a completed operation holds a data access that loads, alone or with a store."""
    return _recorded(config, facts, facts.load)


def has_data_source(config: SPUConfig, facts: FactsLayout):
    """Its record holds a Data Source packet: a load, or the load of two accesses, that completed (D18.2.4)."""
    loads = has_load(config, facts) & ~is_destination(config, facts)
    return facts.retired & ~facts.exception & loads & facts.data_source_valid


def is_scalable(config: SPUConfig, operation: OperationLayout):
    """A Sampled SVE SIMD operation, or with FEAT_SME one on the ZA array (D17.6.6)."""
    if not config.scalable:
        return Const(0)
    return operation.vectors.sve | operation.vectors.sme if config.sme else operation.vectors.sve
