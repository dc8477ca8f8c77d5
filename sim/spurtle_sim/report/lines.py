"""Source lines of instructions, from the DWARF line programs of an ELF file.

Only the line programs of compilation units that contain a sampled instruction are read, because a large program has
millions of lines.

Ref: DWARF 5, section 6.2.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from elftools.elf.elffile import ELFFile

__all__ = ["LineTable", "SourceLine"]


class SourceLine(NamedTuple):
    """Line of a source file.

    Members
    -------
    file : str
        Path as the compiler recorded it, absolute if possible.
    line : int
    """

    file: str
    line: int


class LineTable:
    """Source lines of the instructions of a file.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path):
        self._path = path

    def find(self, addresses: Sequence[int]) -> dict[int, SourceLine]:
        """Return the lines of instructions. Addresses without one are absent."""
        found: dict[int, SourceLine] = {}
        wanted = np.array(sorted(addresses), np.uint64)
        try:
            with self._path.open("rb") as file:
                elf = ELFFile(file)
                dwarf: Any = elf.get_dwarf_info() if elf.has_dwarf_info() else None
                for unit in _units(dwarf, wanted) if dwarf else ():
                    found.update(_lines_of(dwarf, unit, wanted))
        except Exception:  # pyelftools raises various exceptions for invalid or unknown DWARF; what was read is used
            return found
        return found


def _units(dwarf: Any, wanted: Any) -> Iterator[Any]:
    """Yield the compilation units that can contain one of the addresses."""
    table = dwarf.get_aranges()
    offsets: set[int] = set()
    if table is not None:
        for address in wanted.tolist():
            offset = table.cu_offset_at_addr(address)
            if offset is not None:
                offsets.add(offset)
    for unit in dwarf.iter_CUs():
        if table is None or not offsets or unit.cu_offset in offsets:
            yield unit


def _lines_of(dwarf: Any, unit: Any, wanted: Any) -> Iterator[tuple[int, SourceLine]]:
    """Yield the wanted addresses of a compilation unit, with their lines."""
    program = dwarf.line_program_for_CU(unit)
    if program is None:
        return
    names = _FileNames(program, unit)
    previous: Any = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if previous is not None and previous.address < state.address:
            low, high = np.searchsorted(wanted, np.array([previous.address, state.address], np.uint64)).tolist()
            if low < high:
                line = SourceLine(names.path(previous.file), previous.line)
                yield from ((address, line) for address in wanted[low:high].tolist())
        previous = None if state.end_sequence else state


class _FileNames:
    """Paths of the files of a line program."""

    def __init__(self, program: Any, unit: Any):
        self._header = program.header
        self._first = 0 if self._header["version"] >= 5 else 1
        attribute = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        self._folder = os.fsdecode(attribute.value) if attribute else ""
        self._paths: dict[int, str] = {}

    def path(self, number: int) -> str:
        if number not in self._paths:
            entry = self._header["file_entry"][number - self._first]
            folders = self._header["include_directory"]
            index = entry.dir_index - self._first
            folder = os.fsdecode(folders[index]) if 0 <= index < len(folders) else ""
            self._paths[number] = str(Path(self._folder, folder, os.fsdecode(entry.name)))
        return self._paths[number]
