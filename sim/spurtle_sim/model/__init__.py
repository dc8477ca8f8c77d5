"""Reference model of the SPU: plain Python written from the architecture, one function for each step, without timing.

It is an independent, second reading of the architecture. It imports only `spurtle.arch` and `spurtle.config` and is not
derived from the gateware, so it does not repeat the errors of the gateware.
"""
