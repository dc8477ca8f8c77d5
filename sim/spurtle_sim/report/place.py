"""Place of an instruction: its function and its source line."""

from pathlib import Path
from typing import NamedTuple

from .lines import SourceLine

__all__ = ["Place", "unnamed"]


class Place(NamedTuple):
    """Place of an instruction.

    Members
    -------
    function : str
        Name in the source.
    symbol : str
        Name of the function in the symbol table. C++ and Rust encode it.
    address : int
        Address in memory.
    offset : int
        Distance from the start of the function; the address if the function is unknown.
    source : SourceLine or None
    """

    function: str
    symbol: str
    address: int
    offset: int
    source: SourceLine | None

    @property
    def line(self) -> str:
        """Function, and file and line if they are known; otherwise the distance from the start of the function."""
        if self.source is None:
            return f"{self.function}+{self.offset:#x}"
        return f"{self.function} {Path(self.source.file).name}:{self.source.line}"


def unnamed(name: str, address: int, offset: int, source: SourceLine | None = None) -> Place:
    """Return the place of an instruction without a symbol, in a file or region with a name."""
    return Place(name, name, address, offset, source)
