"""Reference model of the SPU: plain Python written from the architecture, one function for each step, without timing.

It is an independent, second reading of the architecture. It imports `spurtle.arch` and `spurtle.config` only and is not
derived from the gateware, so that it does not repeat the errors of the gateware.
"""
