"""Names of the shells."""

__all__ = ["NO_SHELL", "SHELLS"]

NO_SHELL = "none"
"""Value for no shell: the module has the ports of the SPU."""

SHELLS = ("axi4", "axi4-apb")
"""Shells that connect an SPU to buses (`spurtle.shell.shell.Shell`)."""
