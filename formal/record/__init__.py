"""Proofs of the filter, the records and their completion."""
