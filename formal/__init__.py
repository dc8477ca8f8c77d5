"""Formal proofs of the gateware, block by block, and the engine that runs them: `python -m formal`."""
