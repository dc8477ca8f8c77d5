"""Verilog of an SPU, and the files that accompany it."""
