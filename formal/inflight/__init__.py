"""Proofs of the operations in flight."""
