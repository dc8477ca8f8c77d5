"""The compiler that builds the committed executables."""

import shutil
import subprocess

import pytest

__all__ = ["needs_compiler"]

_COMPILER = "aarch64-linux-gnu-gcc"
_VERSION = "12.2"


def _version() -> str:
    """Return the version of the cross compiler, or an empty string if it is not installed."""
    if shutil.which(_COMPILER) is None or shutil.which("make") is None:
        return ""
    return subprocess.run([_COMPILER, "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()


needs_compiler = pytest.mark.skipif(
    not _version().startswith(_VERSION),
    reason=f"{_COMPILER} {_VERSION} is not installed: apt-get install gcc-aarch64-linux-gnu make",
)
"""Marker of tests that need the version with which the committed executables were built."""
