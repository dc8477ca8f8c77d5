"""Proofs of the System registers."""
