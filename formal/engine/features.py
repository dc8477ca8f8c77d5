"""Configurations of the proofs."""

from configurations import FEATURES, distinct

__all__ = ["FEATURES", "distinct"]
