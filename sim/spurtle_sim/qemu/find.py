"""Search for a QEMU user mode that accepts plugins.

Static builds, such as the packages of Debian 13, accept none.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from spurtle.support.errors import UserError

from ..native.cache import cache_folder

__all__ = ["INSTALL", "Qemu", "find_qemu", "named_qemu"]

INSTALL = "apt-get install qemu-user, or make qemu"
"""Commands that install QEMU, for messages."""

_NAME = "qemu-aarch64"
_VARIABLE = "SPURTLE_QEMU"
_TIMEOUT = 20.0  # seconds
_WITH_REGISTERS = (9, 1)
"""First version whose plugins can read registers through the functions that the plugin uses."""


@dataclass(frozen=True)
class Qemu:
    """QEMU user mode that accepts plugins.

    Parameters
    ----------
    path : str
        Absolute path.
    version : tuple of int
    """

    path: str
    version: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """Whether a plugin can read registers, which determine the outcome of conditional selects."""
        return self.version >= _WITH_REGISTERS

    @property
    def name(self) -> str:
        """Name with the version."""
        return f"QEMU {'.'.join(map(str, self.version))}"


def find_qemu(path: str | None = None) -> Qemu | None:
    """Return the QEMU at `path`, or the best one that is found.

    Parameters
    ----------
    path : str or None
        None for the program that SPURTLE_QEMU names. If the variable is not set, that of `make qemu` or the one in
        PATH. If it is empty, there is none.

    Returns
    -------
    Qemu or None
        None if none was found that accepts plugins.

    Raises
    ------
    UserError
        If the program that is named cannot be used.
    """
    named = named_qemu(path)
    if named == "":
        return None
    if named is not None:
        return _probe(named)
    for candidate in (str(cache_folder() / "tools" / _NAME), shutil.which(_NAME)):
        if candidate and os.access(candidate, os.X_OK):
            try:
                return _probe(candidate)
            except UserError:
                continue
    return None


def named_qemu(path: str | None = None) -> str | None:
    """Return the path of the program that `path` or SPURTLE_QEMU names.

    Parameters
    ----------
    path : str or None
        As for `find_qemu`.

    Returns
    -------
    str or None
        None if no program is named. Empty if SPURTLE_QEMU is empty, which means that there is no QEMU.
    """
    named = os.environ.get(_VARIABLE) if path is None else path
    return named and (shutil.which(named) or named)


def _probe(path: str) -> Qemu:
    """Return the QEMU at `path`. Raise UserError if it is not one, or accepts no plugins."""
    found = re.match(r"qemu-aarch64 version (\d+(?:\.\d+)+)", _output(path, "--version"))
    if not found:
        raise UserError(f"{path} must be {_NAME} of QEMU")
    if "-plugin " not in _output(path, "-help"):
        raise UserError(f"{path} must accept plugins (-plugin), as a QEMU that is not linked statically: {INSTALL}")
    return Qemu(os.path.abspath(path), tuple(map(int, found[1].split("."))))  # noqa: PTH100, links remain


def _output(path: str, option: str) -> str:
    try:
        run = subprocess.run(
            [path, option], capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"cannot run {path}: {getattr(error, 'strerror', None) or 'it does not end'}") from error
    return run.stdout
