"""Proofs of the AMBA ports."""
