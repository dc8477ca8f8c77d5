"""The timing model of a core."""
