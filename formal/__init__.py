"""What is proved of the gateware, block by block, and the harness that proves it: `python -m formal`."""
