"""Demonstration on FPGA boards: an SPU samples a program, and a host reads the records over a UART.

`python -m boards` builds the bitstreams.
"""
