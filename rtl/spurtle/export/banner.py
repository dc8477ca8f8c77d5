"""Comment at the top of a generated file."""

from collections.abc import Iterable

from ..support.version import INTERFACE_VERSION, __version__
from .verilog import Verilog

__all__ = ["comment", "title"]


def title(design: Verilog, content: str) -> list[str]:
    """Return the first lines of a file: versions, content, license and options of `spurtle verilog`."""
    return [
        f"Spurtle {__version__}: {content} of {design.module}",
        "SPDX-License-Identifier: Apache-2.0",
        f"Generated. Options: {design.options}",
        f"Interface version: {INTERFACE_VERSION}",
    ]


def comment(mark: str, lines: Iterable[str]) -> list[str]:
    """Return `lines` as comments. `mark` begins a comment."""
    return [f"{mark} {line}".rstrip() for line in lines]
