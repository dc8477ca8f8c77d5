"""Description of a profiled process: its number, its program and its mappings."""

from collections.abc import Sequence
from dataclasses import dataclass
from mmap import PROT_EXEC
from pathlib import Path

__all__ = ["PAGE_BYTES", "PID", "Mapping", "Process"]

PAGE_BYTES = 4096
"""Size of a page of memory. Mappings begin and end at multiples of it."""

PID = 1000
"""Number of the process that executes a profiled program. It is the value of CONTEXTIDR_EL1 while it runs."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """Page-aligned part of the address space of a process.

    Parameters
    ----------
    start, length : int
    offset : int
        Offset in the file.
    protection : int
        Bits PROT_READ, PROT_WRITE and PROT_EXEC.
    path : str
        Absolute path of the file. Memory without a file has the name that Linux uses: `[heap]`, `[stack]`, `//anon`.
    """

    start: int
    length: int
    offset: int
    protection: int
    path: str

    @property
    def end(self) -> int:
        """First address after the mapping."""
        return self.start + self.length

    @property
    def executable(self) -> bool:
        """Whether its content can be executed."""
        return bool(self.protection & PROT_EXEC)


@dataclass(frozen=True, slots=True)
class Process:
    """Process that executes one program.

    Parameters
    ----------
    path : Path
        Absolute path of the executable. perf opens it to find symbols.
    argv : sequence of str
    pid : int
        Number in the Context packets (CONTEXTIDR_EL1), by which perf finds the process.
    mappings : sequence of Mapping
        Mappings at the start of the process.
    build_id : bytes
        Build ID of the executable. Empty if it has none.
    """

    path: Path
    argv: Sequence[str]
    pid: int
    mappings: Sequence[Mapping]
    build_id: bytes = b""
