"""Verilog of an SPU, and the files that belong to it."""
