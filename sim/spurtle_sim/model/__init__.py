"""The architecture, read a second time: plain Python from the chapters, one function for each step, no timing.

It stands on `spurtle.arch` and `spurtle.config` alone, and so repeats no mistake of the gateware.
"""
