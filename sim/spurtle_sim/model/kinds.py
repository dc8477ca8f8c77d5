"""Kinds of operations, as far as a configuration records them."""

# Ref: DDI0487 M.a, D17.6. All of this also runs over z3 values.

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

# Bits, not truth values: what runs over z3 values goes one way then, where each `if` would make it go two.


def is_branch(facts: Facts) -> int:
    """It is sampled as a branch. D17.6.3: an operation that generates an exception is not."""
    return facts.branch & ~facts.exception


def is_memory(facts: Facts) -> int:
    """It is a load or store."""
    return facts.load | facts.store


def has_data_access(config: SPUConfig, facts: Facts) -> int:
    """If it retires without an exception, its record tells of an access: it is a load or store. So is a branch that
    accesses the Guarded control stack (D17.6.3), of which nothing is told without FEAT_GCS.
    """
    return is_memory(facts) if config.gcs else is_memory(facts) & ~is_branch(facts)


def is_destination(config: SPUConfig, facts: Facts) -> int:
    """Of its two accesses the store is sampled. A Memory Copy has two, and of the operations on the Guarded control
    stack GCSSS2 (D17.6.4.3, D17.6.4.5).
    """
    copies = facts.memory_copy if config.mops else 0
    switches = facts.gcs if config.gcs else 0
    return (copies | switches) & facts.store & facts.destination


def has_data_source(config: SPUConfig, facts: Facts) -> int:
    """Its record has a Data Source packet: the access that is sampled loads (D18.2.4)."""
    if config.data_source_bytes == 0:
        return 0
    loads = has_data_access(config, facts) & facts.load & ~is_destination(config, facts)
    return loads & facts.data_source_valid & facts.retired & ~facts.exception


def is_sve(config: SPUConfig, operation: Operation) -> int:
    """A Sampled SVE SIMD operation (D17.6.6)."""
    return operation.vectors.sve if config.scalable else 0


def is_sme(config: SPUConfig, operation: Operation) -> int:
    """A Sampled SME vector or SME tile operation (D17.6.6)."""
    return operation.vectors.sme if config.sme else 0


def has_sme_format(config: SPUConfig, operation: Operation) -> int:
    """A Sampled SME operation that is recorded as such. Without FEAT_SPE_SME none is (D17.6.6)."""
    return is_sme(config, operation) if config.spe_sme else 0
