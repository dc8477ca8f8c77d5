"""Kinds of operation from which random ones are drawn."""

__all__ = ["KINDS", "RARE"]

KINDS = ((1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 0, 0))
"""Values of `load`, `store` and `branch`. An atomic operation is load and store."""

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
"""Facts that make a load or store a special one. They are set rarely: several at once hide each other."""
