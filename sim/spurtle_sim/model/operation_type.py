"""Payloads of the Operation Type packet.

docs/choices.md lists the IMPLEMENTATION DEFINED choices. All functions also run on z3 values.

Ref: DDI0487 M.a, D18.2.7.
"""

from spurtle.arch import CR, ETS, EVL, PMSVer
from spurtle.arch import operation_types as types
from spurtle.config import SPUConfig

from .kinds import has_sme_format, is_destination, is_sme, is_sve
from .operation import Facts, Operation

__all__ = ["branch", "load_store", "other"]

_VECTOR_BITS = (1 << 12) - 1
"""Mask of the bits of `Vectors.bits` that hold a vector length. Only the size of a tile needs more bits."""


def branch(config: SPUConfig, facts: Facts) -> int:
    """Return the payload for a branch."""
    guarded = facts.gcs if config.gcs else 0
    return types.BRANCH.pack(CR=_procedure(config, facts), GCS=guarded, IND=facts.indirect, COND=facts.conditional)


def _procedure(config: SPUConfig, facts: Facts) -> int:
    """Return CR, which is 0b00 if and only if FEAT_SPE_CRR is not implemented."""
    if not config.crr:
        return CR.NOT_RECORDED
    if facts.link == 1:
        return CR.LINK
    return CR.RETURN if facts.procedure_return == 1 else CR.NEITHER


def load_store(config: SPUConfig, operation: Operation) -> int:
    """Return the payload for a load or store.

    LDST is 0 if the operation reads memory: an atomic operation that returns a value is a load. For an operation with
    two accesses LDST describes the sampled access.
    """
    facts = operation.facts
    ldst = facts.store & (~facts.load | is_destination(config, facts))
    if config.mops and facts.memory_copy == 1:
        return types.MEMORY_COPY.pack(LDST=ldst)
    if config.mops and facts.memory_set == 1:
        return types.MEMORY_SET.pack()
    if config.gcs and facts.gcs == 1:
        common = (facts.link | facts.procedure_return) ^ 1
        return types.GUARDED_CONTROL_STACK.pack(COMM=common, LDST=ldst)
    if config.mte and config.version >= PMSVer.SPE_V1P3 and facts.allocation_tag == 1:
        return types.TAG.pack(LDST=ldst)
    if config.nv2 and facts.nv2 == 1:
        return types.NV2.pack(LDST=ldst)
    if is_sve(config, operation) | has_sme_format(config, operation):
        vectors = operation.vectors
        # PRED of a load is defined from FEAT_SPEv1p2.
        predicated = vectors.predicated if config.version >= PMSVer.SPE_V1P2 else vectors.predicated & ldst
        return types.SVE_LOAD_STORE.pack(
            SG=vectors.gather_scatter, EVL=_evl(config, operation), PRED=predicated, LDST=ldst
        )
    if is_sme(config, operation):
        return types.UNSPECIFIED.pack(LDST=ldst)
    if facts.acquire_release | facts.exclusive | facts.atomic:
        return types.EXTENDED.pack(AR=facts.acquire_release, EXCL=facts.exclusive, AT=facts.atomic, LDST=ldst)
    if config.version >= PMSVer.SPE_V1P1 and facts.unspecified == 1:
        return types.UNSPECIFIED.pack(LDST=ldst)
    return types.GENERAL.pack(SIMD_FP=facts.simd_fp, LDST=ldst)


def other(config: SPUConfig, operation: Operation) -> int:
    """Return the payload for an operation that is neither a branch nor a load or store."""
    facts, vectors = operation.facts, operation.vectors
    if has_sme_format(config, operation):
        return types.SME_DATA_PROCESSING.pack(ETS=_ets(operation), FP=facts.floating_point)
    if is_sve(config, operation):
        return types.SVE_DATA_PROCESSING.pack(
            EVL=_evl(config, operation), PRED=vectors.predicated, FP=facts.floating_point
        )
    if config.fpf:
        # Without FEAT_SPE_SME an SME operation has the format Other, and it is not an Advanced SIMD operation.
        advanced_simd = facts.vector & ~facts.unspecified & ~is_sme(config, operation)
        return types.OTHER.pack(ASE=advanced_simd, FP=facts.floating_point, COND=facts.conditional)
    return types.OTHER.pack(COND=facts.conditional)


def _evl(config: SPUConfig, operation: Operation) -> int:
    """Return EVL: the number of times that 32 bits must be doubled to hold the vectors.

    With FEAT_SPE_SME the size is the Sampled effective vector length multiplied by the number of vectors, and the
    product is rounded up, not the length. Without it the size is the Sampled effective vector length (D17.6.6).
    """
    size, largest = operation.vectors.bits & _VECTOR_BITS, EVL.BITS_2048
    if config.spe_sme:
        size, largest = size * operation.vectors.count, EVL.MORE
    return sum(size > types.EVL_UNIT << doublings for doublings in range(largest))


def _ets(operation: Operation) -> int:
    """Return ETS: the number of times that 128 bits must be doubled to hold the tiles or vectors (D17.6.6).

    A size above the largest that ETS encodes is reported as the complete ZA array.
    """
    vectors = operation.vectors
    if vectors.tile == 1:
        size = vectors.bits
    else:
        size = (vectors.bits & _VECTOR_BITS) * vectors.count
    ets = sum(size > types.ETS_UNIT << doublings for doublings in range(ETS.BITS_262144 + 1))
    if vectors.whole_array | (ets > ETS.BITS_262144):
        return ETS.WHOLE_ARRAY
    return ets
