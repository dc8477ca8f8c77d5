"""The unmodified SPE driver of the Linux kernel on the compiled SPU."""
