"""Functions and variables of an ELF file, by address.

Ref: System V ABI, ELF-64 object file format.
"""

import re
from collections.abc import Iterator, Sequence
from mmap import PROT_EXEC, PROT_WRITE
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from elftools.elf.elffile import ELFFile

from ..emulator.elf import ProgramHeader, build_id_of, page_start, segment_mapping
from ..perf.process import Mapping
from .columns import Array
from .lines import LineTable, SourceLine

__all__ = ["ModuleFile", "ProgramFile", "SymbolTable", "read_module", "read_program", "symbol_address"]

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_OBJECT, _FUNCTION, _COMMON, _INDIRECT = 1, 2, 5, 10  # STT
_LOCAL = 0  # STB
_SECTIONS = (".symtab", ".dynsym")
_PROTECTION = PROT_EXEC | PROT_WRITE  # that mappings of readable segments differ in
_NOTES = (".note.gnu.build-id", ".notes")  # vmlinux has the second one
_WORD = (1 << 64) - 1
_NO_CONTENT = "SHT_NOBITS"
_ALLOCATED_CODE = 0x2 | 0x4  # SHF_ALLOC, SHF_EXECINSTR
_TEXT, _INIT = ".text", ".init"


class SymbolTable:
    """Symbols of one kind, sorted by address.

    Parameters
    ----------
    symbols : array
        Rows of an ELF symbol table.
    names : bytes
        String table.
    extend : bool
        A symbol of size zero ends at the next one. Functions written in assembly language often have no size.
    """

    def __init__(self, symbols: Array, names: bytes, *, extend: bool):
        # Of several symbols at an address, a global one is used, and the largest of these.
        bindings = symbols["info"] >> 4 == _LOCAL
        order = np.lexsort((np.iinfo(np.uint64).max - symbols["size"], bindings, symbols["value"]))
        symbols = symbols[order]
        first = np.concatenate([np.ones(min(1, len(symbols)), bool), symbols["value"][1:] != symbols["value"][:-1]])
        symbols = symbols[first]
        self._starts = symbols["value"].astype(np.uint64)
        self._ends = self._starts + symbols["size"]
        if extend:
            following = np.append(self._starts[1:], self._starts[-1:] + np.uint64(4))
            self._ends = np.where(symbols["size"] == 0, following, self._ends)
        self._offsets, self._names = symbols["name"], names

    def find(self, addresses: Array) -> Array:
        """Return the index of the symbol at each address, or -1."""
        if not len(self._starts):
            return np.full(len(addresses), -1)
        index = np.searchsorted(self._starts, addresses, "right") - 1
        inside = (index >= 0) & (addresses < self._ends[index])
        return np.where(inside, index, -1)

    def name(self, index: int) -> str:
        """Return the name of a symbol."""
        start = int(self._offsets[index])
        return self._names[start : self._names.find(b"\0", start)].decode(errors="replace")

    def start(self, index: int) -> int:
        """Return the address of a symbol."""
        return int(self._starts[index])


class ProgramFile(NamedTuple):
    """Symbols and lines of an ELF file.

    Members
    -------
    functions, variables : SymbolTable
    lines : LineTable
    segments : list of ProgramHeader
        Those that are loaded.
    build_id : bytes
    stripped : bool
        Whether the file has only the symbols of dynamic linking.
    """

    functions: SymbolTable
    variables: SymbolTable
    lines: LineTable
    segments: list[ProgramHeader]
    build_id: bytes
    stripped: bool

    def bias(self, mapping: Mapping) -> int:
        """Return the difference between the addresses of a mapping in memory and in the file.

        Several segments can share a page of the file. Their flags and sizes say which of them is mapped.
        """
        inside = [
            each
            for each in self.segments
            if page_start(each.offset) <= mapping.offset < each.offset + max(each.filesz, 1)
        ]
        if not inside:
            return mapping.start - mapping.offset

        def difference(segment: ProgramHeader) -> tuple[bool, int]:
            own = segment_mapping(segment, 0, "")
            return (own.protection ^ mapping.protection) & _PROTECTION != 0, abs(own.length - mapping.length)

        chosen = min(inside, key=difference)
        return mapping.start - (mapping.offset - chosen.offset + chosen.vaddr)

    def locate(self, addresses: Sequence[int]) -> Iterator[tuple[str | None, int, SourceLine | None]]:
        """Yield symbol of the function, distance from its start, and source line of each address in the file.

        If the function is unknown, the symbol is None and the distance is the address.
        """
        plain = [address & _WORD for address in addresses]
        lines = self.lines.find(plain)
        for address, index in zip(plain, self.functions.find(np.array(plain, np.uint64)).tolist(), strict=True):
            symbol, start = (None, 0) if index < 0 else (self.functions.name(index), self.functions.start(index))
            yield symbol, address - start, lines.get(address)


def read_program(path: Path) -> ProgramFile | None:
    """Return the symbols of a file, or None if it cannot be read or is not an ELF file."""
    try:
        if not path.is_file():  # to open a pipe can wait forever, and to open a device can have an effect
            return None
        with path.open("rb") as file:
            elf = ELFFile(file)
            symbols, names = _symbols(elf)
            kinds = symbols["info"] & 0xF
            defined = symbols["section"] != 0
            functions = symbols[defined & ((kinds == _FUNCTION) | (kinds == _INDIRECT))]
            variables = symbols[defined & ((kinds == _OBJECT) | (kinds == _COMMON)) & (symbols["size"] > 0)]
            segments = [
                ProgramHeader(*(each[f"p_{name}"] for name in ProgramHeader._fields))
                for each in elf.iter_segments()
                if each["p_type"] == "PT_LOAD"
            ]
            return ProgramFile(
                SymbolTable(functions, names, extend=True),
                SymbolTable(variables, names, extend=False),
                LineTable(path),
                segments,
                _build_id(elf),
                elf.get_section_by_name(_SECTIONS[0]) is None,
            )
    except Exception:  # pyelftools raises various exceptions for invalid files
        return None


class ModuleFile(NamedTuple):
    """Functions of a module of the kernel in section `.text`, at their distances from the start of the module.

    Members
    -------
    functions : SymbolTable
    build_id : bytes
    """

    functions: SymbolTable
    build_id: bytes


def read_module(path: Path) -> ModuleFile | None:
    """Return the functions of a module, or None if the file is not a module that begins with `.text`.

    The kernel puts the executable sections first, in the order of the file, without those that are used only once. The
    sizes of some of them are known only when it loads the module.
    """
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            elf = ELFFile(file)
            code = [
                (index, section.name)
                for index, section in enumerate(elf.iter_sections())
                if section["sh_flags"] & _ALLOCATED_CODE == _ALLOCATED_CODE and not section.name.startswith(_INIT)
            ]
            if elf["e_type"] != "ET_REL" or not code or code[0][1] != _TEXT:
                return None
            symbols, names = _symbols(elf)
            chosen = (symbols["info"] & 0xF == _FUNCTION) & (symbols["section"] == code[0][0])
            return ModuleFile(SymbolTable(symbols[chosen], names, extend=True), _build_id(elf))
    except Exception:  # pyelftools raises various exceptions for invalid files
        return None


def symbol_address(path: Path, name: str) -> int | None:
    """Return the value of a symbol of any kind, or None if the file does not have it or cannot be read."""
    try:
        with path.open("rb") as file:
            symbols, names = _symbols(ELFFile(file))
            offsets = [match.start() for match in re.finditer(re.escape(name.encode()) + b"\\0", names)]
            found = symbols["value"][np.isin(symbols["name"], offsets)]
            return int(found[0]) if len(found) else None
    except Exception:  # pyelftools raises various exceptions for invalid files
        return None


def _symbols(elf: Any) -> tuple[Array, bytes]:
    """Return the rows of the first symbol table, and its strings."""
    for name in _SECTIONS:
        section = elf.get_section_by_name(name)
        if section is not None and section["sh_type"] != _NO_CONTENT and section["sh_entsize"] == _SYMBOL.itemsize:
            data = section.data()
            rows = np.frombuffer(data, _SYMBOL, len(data) // _SYMBOL.itemsize)
            return rows, elf.get_section(section["sh_link"]).data()
    return np.zeros(0, _SYMBOL), b"\0"


def _build_id(elf: Any) -> bytes:
    sections = (elf.get_section_by_name(name) for name in _NOTES)
    return next((found for section in sections if section is not None and (found := build_id_of(section.data()))), b"")
