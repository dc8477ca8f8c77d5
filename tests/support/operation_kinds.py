"""Kinds of random operations."""

__all__ = ["KINDS", "RARE"]

KINDS = ((1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 0, 0))
"""Values of `load`, `store` and `branch`. An atomic operation is both a load and a store."""

RARE = (
    "atomic",
    "acquire_release",
    "exclusive",
    "unspecified",
    "allocation_tag",
    "nv2",
    "memory_copy",
    "memory_set",
    "gcs",
)
"""Facts of special loads and stores. They are set rarely, because one of several hides the others."""
