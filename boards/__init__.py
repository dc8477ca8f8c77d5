"""FPGA boards: a bitstream in which the SPU samples a small loop and sends its records over a UART. `python -m boards`."""
