"""Software that drives a Statistical Profiling Unit, as small models: the accesses of the originals, in their order."""
