"""Kinds of operations, as a configuration records them.

All functions also run on z3 values. They return bits, 0 or 1, instead of truth values, because each `if` on a z3 value
doubles the number of paths.

Ref: DDI0487 M.a, D17.6.
"""

from spurtle.config import SPUConfig

from .operation import Facts, Operation

__all__ = [
    "has_data_access",
    "has_data_source",
    "has_sme_format",
    "is_branch",
    "is_destination",
    "is_memory",
    "is_sme",
    "is_sve",
]


def is_branch(facts: Facts) -> int:
    """Return whether the operation is sampled as a branch.

    An operation that generates an exception is not (D17.6.3).
    """
    return facts.branch & ~facts.exception


def is_memory(facts: Facts) -> int:
    """Return whether the operation is a load or store."""
    return facts.load | facts.store


def has_data_access(config: SPUConfig, facts: Facts) -> int:
    """Return whether the record reports a data access, if the operation retires without an exception.

    It does for a load or store and, with FEAT_GCS, for a branch that accesses the Guarded control stack (D17.6.3).
    """
    return is_memory(facts) if config.gcs else is_memory(facts) & ~is_branch(facts)


def is_destination(config: SPUConfig, facts: Facts) -> int:
    """Return whether the sampled access of an operation with two accesses is the store.

    A Memory Copy operation has two accesses (D17.6.4.3), and so has GCSSS2 (D17.6.4.5).
    """
    copies = facts.memory_copy if config.mops else 0
    switches = facts.gcs if config.gcs else 0
    return (copies | switches) & facts.store & facts.destination


def has_data_source(config: SPUConfig, facts: Facts) -> int:
    """Return whether the record has a Data Source packet: the sampled access is a load (D18.2.4)."""
    if config.data_source_bytes == 0:
        return 0
    loads = has_data_access(config, facts) & facts.load & ~is_destination(config, facts)
    return loads & facts.data_source_valid & facts.retired & ~facts.exception


def is_sve(config: SPUConfig, operation: Operation) -> int:
    """Return whether the operation is a Sampled SVE SIMD operation (D17.6.6)."""
    return operation.vectors.sve if config.scalable else 0


def is_sme(config: SPUConfig, operation: Operation) -> int:
    """Return whether the operation is a Sampled SME vector or SME tile operation (D17.6.6)."""
    return operation.vectors.sme if config.sme else 0


def has_sme_format(config: SPUConfig, operation: Operation) -> int:
    """Return whether the operation is recorded in an SME format. Without FEAT_SPE_SME none is (D17.6.6)."""
    return is_sme(config, operation) if config.spe_sme else 0
