"""Payloads of the Operation Type packet."""

# Ref: DDI0487 M.a, D18.2.7. docs/choices.md says what is IMPLEMENTATION DEFINED. All of this also runs over z3 values.

from spurtle.arch import CR, ETS, EVL, PMSVer
from spurtle.arch import operation_types as types
from spurtle.config import SPUConfig

from .kinds import has_sme_format, is_destination, is_sme, is_sve
from .operation import Facts, Operation

__all__ = ["branch", "load_store", "other"]

_VECTOR_BITS = (1 << 12) - 1
"""What of `Vectors.bits` holds the length of a vector; only a tile is larger."""


def branch(config: SPUConfig, facts: Facts) -> int:
    """Payload of a branch."""
    guarded = facts.gcs if config.gcs else 0
    return types.BRANCH.pack(CR=_procedure(config, facts), GCS=guarded, IND=facts.indirect, COND=facts.conditional)


def _procedure(config: SPUConfig, facts: Facts) -> int:
    """CR: 0b00 exactly without FEAT_SPE_CRR."""
    if not config.crr:
        return CR.NOT_RECORDED
    if facts.link == 1:
        return CR.LINK
    return CR.RETURN if facts.procedure_return == 1 else CR.NEITHER


def load_store(config: SPUConfig, operation: Operation) -> int:
    """Payload of a load or store. LDST is 0 where memory is read, which an atomic that returns a value does first of
    all; of two accesses the one that is sampled counts.
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
        # The predicate of a load counts from FEAT_SPEv1p2 on.
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
    """Payload of data processing, and of all that is nothing else."""
    facts, vectors = operation.facts, operation.vectors
    if has_sme_format(config, operation):
        return types.SME_DATA_PROCESSING.pack(ETS=_ets(operation), FP=facts.floating_point)
    if is_sve(config, operation):
        return types.SVE_DATA_PROCESSING.pack(
            EVL=_evl(config, operation), PRED=vectors.predicated, FP=facts.floating_point
        )
    if config.fpf:
        # Without FEAT_SPE_SME an SME operation is Other, and none of Advanced SIMD.
        advanced = facts.vector & ~facts.unspecified & ~is_sme(config, operation)
        return types.OTHER.pack(ASE=advanced, FP=facts.floating_point, COND=facts.conditional)
    return types.OTHER.pack(COND=facts.conditional)


def _evl(config: SPUConfig, operation: Operation) -> int:
    """EVL: how often 32 bits must be doubled to hold what is operated on. That is all vectors with FEAT_SPE_SME, one
    of them without (D17.6.6); the product is rounded up, not the length.
    """
    size, most = operation.vectors.bits & _VECTOR_BITS, EVL.BITS_2048
    if config.spe_sme:
        size, most = size * operation.vectors.count, EVL.MORE
    return sum(size > types.EVL_UNIT << doublings for doublings in range(most))


def _ets(operation: Operation) -> int:
    """ETS: how often 128 bits must be doubled to hold what is operated on. What is larger than any size is taken for
    the whole array.
    """
    vectors = operation.vectors
    if vectors.tile == 1:
        size = vectors.bits
    else:
        size = (vectors.bits & _VECTOR_BITS) * vectors.count
    doubled = sum(size > types.ETS_UNIT << doublings for doublings in range(ETS.BITS_262144 + 1))
    if vectors.whole_array | (doubled > ETS.BITS_262144):
        return ETS.WHOLE_ARRAY
    return doubled
