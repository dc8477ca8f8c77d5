"""Names of the shells."""

__all__ = ["NO_SHELL", "SHELLS"]

NO_SHELL = "none"
"""In place of the name of a shell: the SPU's own ports."""

SHELLS = ("axi4", "axi4-apb")
"""What can stand around an SPU: see `spurtle.shell.shell.Shell`."""
