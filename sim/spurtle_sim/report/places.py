"""Finder of places: the function and line of an instruction, and the variable or memory region of a data address."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spurtle.arch import ADDRESS_BITS

from ..perf.sideband import KERNEL_PID, MappedFile, Sideband
from .columns import Array
from .demangle import source_name
from .files import find_program
from .kernel import KERNEL, KernelNames
from .place import Place, unnamed
from .symbols import ProgramFile

__all__ = ["Resolver"]

_ANONYMOUS = "[anonymous memory]"
_UNKNOWN = "[unknown]"
_MASK = (1 << ADDRESS_BITS) - 1
_WORD = (1 << 64) - 1
_UPPER = 1 << 55  # addresses of the kernel


class _Interval(NamedTuple):
    start: int
    mapped: MappedFile | None


class Resolver:
    """Finder of the places of addresses of several processes.

    The last mapping of an address counts. A process without a mapping of an address has that of its parent.

    Parameters
    ----------
    sideband : Sideband
    kallsyms : str or None
        Path of a copy of /proc/kallsyms of the recorded machine. None to search where perf does.

    Attributes
    ----------
    problems : dict of str to str
        One sentence for each file whose symbols cannot be used, by its path.
    """

    def __init__(self, sideband: Sideband, kallsyms: str | None = None):
        self._sideband = sideband
        self._kernel = KernelNames(sideband, kallsyms)
        self.problems: dict[str, str] = {}
        self._problems: dict[str, str] = {}  # also of files that were only mapped as data
        self._intervals_of = cache(self._intervals)
        self._program_of = cache(self._program)

    def code(self, pid: int, addresses: Sequence[int]) -> list[Place]:
        """Return the place of each instruction of a process."""
        places = self._kernel.places([each for each in addresses if each & _UPPER])
        # The function of a place without a name is its symbol.
        if not self._kernel.known and any(each.function == each.symbol for each in places.values()):
            self.problems[KERNEL] = (
                "names of the kernel were not found by its build ID: --kallsyms names a copy of /proc/kallsyms of the "
                "recorded machine"
            )
        for mapped, group in self._grouped(pid, [each for each in addresses if not each & _UPPER]):
            places.update(self._in_file(mapped, group))
        return [places[address] for address in addresses]

    def data(self, pid: int, addresses: Array) -> tuple[Array, list[str]]:
        """Return the index of the variable or region of each data address of a process, and the names."""
        names: dict[str, int] = {KERNEL: 0, _UNKNOWN: 1}
        plain = addresses & np.uint64(_MASK)
        result = np.where(plain & np.uint64(_UPPER) != 0, 0, 1).astype(np.int32)
        intervals = self._intervals_of(pid)
        starts = np.array([each.start for each in intervals], np.uint64)
        index = np.searchsorted(starts, plain, "right") - 1
        file: tuple[MappedFile, ProgramFile] | None = None
        for number, (_, mapped) in enumerate(intervals):
            if mapped is None:
                continue
            program = self._program_of(mapped.mapping.path, mapped.build_id)
            # The zeros at the end of a file are anonymous memory after its last mapping.
            file = file if program is None else (mapped, program)
            chosen = np.flatnonzero((index == number) & (result == 1))
            result[chosen] = names.setdefault(_region(mapped), len(names))
            if file is not None and len(chosen):
                symbols = file[1].variables.find(plain[chosen] - np.uint64(file[1].bias(file[0].mapping) & _WORD))
                for symbol in np.unique(symbols[symbols >= 0]).tolist():
                    name = names.setdefault(source_name(file[1].variables.name(symbol)), len(names))
                    result[chosen[symbols == symbol]] = name
        return result, list(names)

    def _grouped(self, pid: int, addresses: Iterable[int]) -> Iterable[tuple[MappedFile | None, list[int]]]:
        """Return the addresses of each mapping of a process."""
        intervals = self._intervals_of(pid)
        starts = [each.start for each in intervals]
        groups: dict[int, list[int]] = {}
        ordered = list(addresses)
        for address, index in zip(ordered, np.searchsorted(starts, ordered, "right").tolist(), strict=True):
            groups.setdefault(index - 1, []).append(address)
        return [(intervals[index].mapped if index >= 0 else None, group) for index, group in groups.items()]

    def _in_file(self, mapped: MappedFile | None, addresses: list[int]) -> dict[int, Place]:
        if mapped is None:
            return {address: unnamed(_UNKNOWN, address, address) for address in addresses}
        program = self._program_of(mapped.mapping.path, mapped.build_id)
        name = _region(mapped)
        if program is None:
            if mapped.mapping.path in self._problems:
                self.problems[mapped.mapping.path] = self._problems[mapped.mapping.path]
            base = mapped.mapping.start - mapped.mapping.offset
            return {address: unnamed(name, address, address - base) for address in addresses}
        bias = program.bias(mapped.mapping)
        places: dict[int, Place] = {}
        located = program.locate([address - bias for address in addresses])
        for address, (symbol, offset, source) in zip(addresses, located, strict=True):
            if symbol is None:
                places[address] = unnamed(name, address, offset, source)
            else:
                places[address] = Place(source_name(symbol), symbol, address, offset, source)
        return places

    def _intervals(self, pid: int) -> list[_Interval]:
        """Return disjoint intervals of addresses, sorted, each with the last mapping of it."""
        known = {each.pid for each in self._sideband.mappings} - {KERNEL_PID}
        family = [pid]
        while family[-1] in self._sideband.parents and self._sideband.parents[family[-1]] not in family:
            family.append(self._sideband.parents[family[-1]])
        # Without Context packets, the process is unknown.
        family = family if known & {*family} else sorted(known)
        # Records have 56 bits of an address, so those of mappings of the kernel are not found.
        usable = [each for each in self._sideband.mappings if each.mapping.end <= _MASK]
        mappings = [each for member in reversed(family) for each in usable if each.pid == member]
        borders = sorted({address for each in mappings for address in (each.mapping.start, each.mapping.end)})
        owners: list[MappedFile | None] = [None] * len(borders)
        position = {address: index for index, address in enumerate(borders)}
        for each in mappings:
            first, last = position[each.mapping.start], position[each.mapping.end]
            owners[first:last] = [each] * (last - first)
        return [_Interval(*pair) for pair in zip(borders, owners, strict=True)]

    def _program(self, path: str, build_id: bytes) -> ProgramFile | None:
        if not _is_file(path):
            return None
        program, problem = find_program(Path(path), build_id or self._sideband.build_ids.get(path, b""))
        if problem:
            self._problems[path] = problem
        return program


def _region(mapped: MappedFile) -> str:
    path = mapped.mapping.path
    if _is_file(path):
        return f"[{Path(path).name}]"
    return _ANONYMOUS if path.startswith("//") else path


def _is_file(path: str) -> bool:
    # The kernel writes //anon for memory without a file.
    return path.startswith("/") and not path.startswith("//")
