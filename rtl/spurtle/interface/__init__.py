"""The ports that a core connects to: signatures and payloads.

The core states architectural facts. Encoding, gating and rounding are done in the SPU.
"""
