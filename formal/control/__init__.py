"""Proofs of the profiling control: collection permissions and the previous branch target."""
