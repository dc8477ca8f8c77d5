"""Components of the SPU."""
