"""A cocotb test bench of the generated Verilog of the SPU: a core, memory and a scoreboard."""
