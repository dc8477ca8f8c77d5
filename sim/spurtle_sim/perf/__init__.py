"""perf.data files, and what the kernel reports of processes."""
