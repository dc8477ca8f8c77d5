"""The compiled SPU and record path, beside numbers of the reference model."""
