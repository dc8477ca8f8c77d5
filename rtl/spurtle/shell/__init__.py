"""Shells: an SPU behind AMBA ports."""
