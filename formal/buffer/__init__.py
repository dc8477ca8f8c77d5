"""Proofs of the Profiling Buffer."""
