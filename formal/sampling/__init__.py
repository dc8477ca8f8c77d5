"""Proofs of the sample interval counters, the random number generators and the access selection."""
