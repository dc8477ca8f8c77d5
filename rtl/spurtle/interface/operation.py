"""Payload of a finished operation: what the core reports of it.

Ref: DDI0487 M.a, D17.6 (recorded information).
"""

from amaranth.hdl import Const
from amaranth.lib import data

from ..arch import ADDRESS_BITS, VIRTUAL_ADDRESS_BITS
from ..arch.operation_types import TILE_SIZE_BITS, VECTOR_LENGTH_BITS
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
    """Facts about an operation, one bit each. LSB first.

    Bits of an unimplemented feature are ignored.

    Members
    -------
    load, store : unsigned(1)
        The operation reads memory; it writes memory. An atomic that returns a value does both, and so does a memory
        copy. Prefetch, cache maintenance and address translation do neither.
    branch : unsigned(1)
        Branch or exception return. `load` and `store` are zero, except for an access to the Guarded control stack.
    atomic, acquire_release, exclusive : unsigned(1)
        Kind of load or store (D18.2.7, Load/store, extended).
    simd_fp : unsigned(1)
        The load or store targets SIMD&FP registers or, before FEAT_SPEv1p1, SVE registers.
    unspecified : unsigned(1)
        The load or store targets no registers that the Operation Type packet can name, as DC ZVA does. Without
        FEAT_SPE_SME it is also one for each SME operation, which is not recorded as Advanced SIMD. Used with
        FEAT_SPEv1p1 and FEAT_SPE_FPF.
    allocation_tag : unsigned(1)
        The load or store accesses Allocation Tags only. Used with FEAT_MTE2 and FEAT_SPEv1p3.
    nv2 : unsigned(1)
        MRS or MSR at EL1 that was transformed into a load or store (D17.6.4.2). Used with FEAT_NV2.
    memory_copy, memory_set : unsigned(1)
        Memory Copy instruction; Memory Set instruction. Used with FEAT_MOPS.
    gcs : unsigned(1)
        The operation accesses the Guarded control stack. Used with FEAT_GCS.
    vector : unsigned(1)
        Advanced SIMD, SVE or SME data processing; or a load or store of Q registers, of structures, replicating, or of
        SVE or SME (D17.5.1, SIMD).
    floating_point : unsigned(1)
        The operation computes with floating-point numbers, scalar or vector (D17.5.1, FP).
    conditional : unsigned(1)
        The operation depends on PSTATE.NZCV, or is a compare-and-branch or test-and-branch (D17.6.5).
    taken : unsigned(1)
        The condition passed: a branch was taken. One for an unconditional operation.
    indirect : unsigned(1)
        The target of the branch comes from a register.
    link, procedure_return : unsigned(1)
        Branch with link; procedure return. Also one for the Guarded control stack access of such a branch. Used with
        FEAT_SPE_CRR and FEAT_GCS.
    asynchronous : unsigned(1)
        The operation executes on a Streaming Mode Compute Unit or an external coprocessor (E[25]), and so in the domain
        of the alternate clock (D17.6.1). Without FEAT_SPE_SME: it executes in the domain of that clock.
    retired : unsigned(1)
        The operation committed its results, or completed with a synchronous exception (E[1]).
    exception : unsigned(1)
        The operation completed with a synchronous exception (E[0]).
    va_valid, pa_valid : unsigned(1)
        `va` was accessed; `va` was translated to `pa`.
    va_tagged : unsigned(1)
        The top byte of `va` is recorded: the applicable TBI bit is one, or Memory Tagging is used with Address tagging
        disabled (D17.6.4.1).
    data_source_valid : unsigned(1)
        `data_source` is the source of the loaded data.
    destination : unsigned(1)
        For an operation that loads from one address and stores to another (Memory Copy, GCSSS2): `va` and `pa` belong
        to the store, as `SamplingPointSignature.destination` selected. Ignored unless `memory_copy` or `gcs` is one.
        Zero for GCSSS1, a swap.
    imp_counter_valid, imp_address_valid : unsigned(1)
        `imp_counter` is recorded; `imp_address` is recorded.
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
    """Vectors that an SVE or SME operation processes (D17.6.6). LSB first.

    Members
    -------
    sve : unsigned(1)
        Sampled SVE SIMD operation.
    predicated : unsigned(1)
        Sampled predicated operation.
    gather_scatter : unsigned(1)
        Gather load or scatter store.
    bits : unsigned(12), unsigned(19) with FEAT_SPE_SME
        Sampled effective vector length: bits of one vector, at most 2048. For a tile operation, Sampled effective tile
        size: bits of the tile or tiles.
    sme : unsigned(1)
        Sampled SME vector or SME tile operation. Only with FEAT_SME.
    tile : unsigned(1)
        SME tile operation. This and the following only with FEAT_SPE_SME.
    whole_array : unsigned(1)
        SME operation on the whole ZA array at once.
    count : unsigned(5)
        Number of vectors.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "sve": 1,
                "predicated": 1,
                "gather_scatter": 1,
                "bits": TILE_SIZE_BITS if config.spe_sme else VECTOR_LENGTH_BITS,
                **when(config.sme, sme=1),
                **when(config.spe_sme, tile=1, whole_array=1, count=5),
            }
        )


class LocationLayout(data.StructLayout):
    """Instruction address, with the Exception level and Security state that it belongs to. LSB first.

    Members
    -------
    address : unsigned(56)
    el : unsigned(2)
        Exception level.
    ns, nse : unsigned(1)
        Security state, encoded as in `PEStateSignature`. `nse` only with FEAT_RME.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__({"address": ADDRESS_BITS, "el": 2, "ns": 1, **when(config.rme, nse=1)})


class OperationLayout(data.StructLayout):
    """Finished operation, as the core reports it. LSB first; widths follow the configuration.

    Members
    -------
    facts : FactsLayout
    events : unsigned(8 * events_bytes)
        Bits of the Events packet (D18.2.6). E[0], E[1], E[6] and E[25] are derived from `facts` and ignored here.
    pc : unsigned(56)
        Address of the operation, in the Exception level and Security state of the PE when it was sampled.
    target : LocationLayout
        Target of a taken branch; PC + 4 for a branch that was not taken.
    va : unsigned(64)
        Lowest virtual address accessed.
    pa : unsigned(56)
        Physical address that `va` was translated to.
    pa_ns, pa_nse : unsigned(1)
        Physical address space of `pa`. `pa_nse` only with FEAT_RME.
    pa_checked, pa_tag : unsigned(1), unsigned(4)
        The access was checked against an Allocation Tag in memory; the Physical Address Tag. Only with FEAT_MTE2.
    data_source : unsigned(8 * data_source_bytes)
        IMPLEMENTATION DEFINED code. Only with a Data Source packet.
    vectors : VectorsLayout
        Only with FEAT_SVE or FEAT_SME.
    imp_counter, imp_address : unsigned(counter_bits), unsigned(64)
        IMPLEMENTATION DEFINED counter and address, each only if the configuration has an INDEX for it. The core must
        not report an address here that may not be collected.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "facts": FactsLayout,
                "events": 8 * config.events_bytes,
                "pc": ADDRESS_BITS,
                "target": LocationLayout(config),
                "va": VIRTUAL_ADDRESS_BITS,
                "pa": ADDRESS_BITS,
                "pa_ns": 1,
                **when(config.rme, pa_nse=1),
                **when(config.mte, pa_checked=1, pa_tag=4),
                **when(config.data_source_bytes, data_source=8 * config.data_source_bytes),
                **when(config.scalable, vectors=VectorsLayout(config)),
                **when(config.imp_counter, imp_counter=config.counter_bits),
                **when(config.imp_address, imp_address=VIRTUAL_ADDRESS_BITS),
            }
        )


def is_branch(facts: FactsLayout):
    """Return whether the operation is sampled as a branch.

    A branch that generates an exception is not (D17.5.1, D17.6.3).
    """
    return facts.branch & ~facts.exception


def is_destination(config: SPUConfig, facts: FactsLayout):
    """Return whether the store of an operation with two accesses is sampled (D17.6.4.3, D17.6.4.5)."""
    two = Const(0)
    if config.mops:
        two |= facts.memory_copy
    if config.gcs:
        two |= facts.gcs
    return two & facts.store & facts.destination


def _recorded(config: SPUConfig, facts: FactsLayout, accesses):
    """Return `accesses` where they are recorded: for a branch only with FEAT_GCS (D17.6.3)."""
    return accesses if config.gcs else accesses & ~is_branch(facts)


def has_data_access(config: SPUConfig, facts: FactsLayout):
    """Return whether the record of a completed operation holds a data access."""
    return _recorded(config, facts, facts.load | facts.store)


def has_load(config: SPUConfig, facts: FactsLayout):
    """Return whether the record of a completed operation holds a data access that loads, alone or with a store."""
    return _recorded(config, facts, facts.load)


def has_data_source(config: SPUConfig, facts: FactsLayout):
    """Return whether the record holds a Data Source packet (D18.2.4).

    It does for a load that completed, and for the load of an operation with two accesses.
    """
    loads = has_load(config, facts) & ~is_destination(config, facts)
    return facts.retired & ~facts.exception & loads & facts.data_source_valid


def is_scalable(config: SPUConfig, operation: OperationLayout):
    """Return whether this is a Sampled SVE SIMD operation or, with FEAT_SME, one on the ZA array (D17.6.6)."""
    if not config.scalable:
        return Const(0)
    return operation.vectors.sve | operation.vectors.sme if config.sme else operation.vectors.sve
