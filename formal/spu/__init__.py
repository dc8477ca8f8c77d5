"""Proofs of the complete SPU."""
