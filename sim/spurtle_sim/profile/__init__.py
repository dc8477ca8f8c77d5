"""Implementation of `spurtle profile`: a program is profiled on the compiled SPU."""
