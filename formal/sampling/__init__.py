"""Proofs of the sample interval counters, the random numbers and the choice of an access."""
