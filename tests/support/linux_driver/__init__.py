"""The SPE driver of the Linux kernel, unmodified, around the compiled SPU."""
