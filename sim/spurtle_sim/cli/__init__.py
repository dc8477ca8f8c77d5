"""The `spurtle` command."""

from .command import main

__all__ = ["main"]
