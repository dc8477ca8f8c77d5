"""Shells: SPUs with AMBA ports."""
