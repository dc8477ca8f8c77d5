"""Proofs of the permissions."""
