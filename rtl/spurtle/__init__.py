"""Spurtle: a synthesizable Arm Statistical Profiling Unit (FEAT_SPE)."""
