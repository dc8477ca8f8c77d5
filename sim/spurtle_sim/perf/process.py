"""A profiled process: its number, its program and its mappings."""

from collections.abc import Sequence
from dataclasses import dataclass
from mmap import PROT_EXEC
from pathlib import Path

__all__ = ["PAGE_BYTES", "PID", "Mapping", "Process"]

PAGE_BYTES = 4096
"""Size of a page of memory: mappings begin and end at multiples of it."""

PID = 1000
"""Number of the process that executes a profiled program, and so CONTEXTIDR_EL1 while it runs."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """A part of the address space of a process; page aligned.

    Parameters
    ----------
    start, length : int
    offset : int
        In the file.
    protection : int
        PROT_READ, PROT_WRITE and PROT_EXEC.
    path : str
        The file, absolute. Memory without one has the name that Linux gives it: `[heap]`, `[stack]`, `//anon`.
    """

    start: int
    length: int
    offset: int
    protection: int
    path: str

    @property
    def end(self) -> int:
        """First address after it."""
        return self.start + self.length

    @property
    def executable(self) -> bool:
        """Whether its content can be executed."""
        return bool(self.protection & PROT_EXEC)


@dataclass(frozen=True, slots=True)
class Process:
    """A process that executes one program.

    Parameters
    ----------
    path : Path
        The executable. Absolute: perf opens it to find symbols.
    argv : sequence of str
    pid : int
        As in the Context packets (CONTEXTIDR_EL1): perf finds the process by it.
    mappings : sequence of Mapping
        Memory that the process has when it starts.
    build_id : bytes
        Of the executable; empty if it has none.
    """

    path: Path
    argv: Sequence[str]
    pid: int
    mappings: Sequence[Mapping]
    build_id: bytes = b""
