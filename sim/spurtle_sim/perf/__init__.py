"""Reader and writer of perf.data files, and the events of processes in them."""
