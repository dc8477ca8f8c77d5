"""Timing model of a core that executes the operations of a program."""
