"""The compiled SPU and record path, and the values of the reference model as numbers on ports."""
