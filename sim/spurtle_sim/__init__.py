"""The software around the SPU: reference, decoder, simulators, workloads, perf.data."""
