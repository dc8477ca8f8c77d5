"""A bitstream for FPGA boards: the SPU samples a small loop and sends its records over a UART. `python -m boards`."""
