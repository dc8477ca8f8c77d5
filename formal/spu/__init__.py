"""Proofs of the whole SPU."""
