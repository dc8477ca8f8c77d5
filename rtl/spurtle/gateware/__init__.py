"""The components of the SPU."""
