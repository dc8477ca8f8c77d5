"""The comment at the top of a generated file."""

from collections.abc import Iterable

from ..support.version import __version__
from .verilog import Verilog

__all__ = ["comment", "title"]


def title(design: Verilog, what: str) -> list[str]:
    """Return the lines that begin a file: the product, its license and the options that made it."""
    return [
        f"Spurtle {__version__}: {what} of {design.module}",
        "SPDX-License-Identifier: Apache-2.0",
        f"Generated. Options: {design.options}",
    ]


def comment(mark: str, lines: Iterable[str]) -> list[str]:
    """Return `lines` as comments that begin with `mark`."""
    return [f"{mark} {line}".rstrip() for line in lines]
