"""Core, memory and scoreboard around the generated Verilog of a whole SPU, for cocotb."""
