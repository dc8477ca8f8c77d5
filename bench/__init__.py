"""Benchmarks: area and clock frequency of each block next to the plain circuits that bound it; rates of simulators."""
