"""Names of the functions of a Linux kernel and its modules, by address.

They are from a copy of /proc/kallsyms or from a vmlinux file. The kernel of a machine is at another address after each
boot, so the recording contains the address of one symbol, by which the others are moved. The recording itself names BPF
programs.

Ref: Linux tools/perf/util/symbol.c, tools/perf/util/machine.c, tools/perf/util/build-id.c; kernel/module/main.c (order
of sections).
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spurtle.arch import ADDRESS_BITS
from spurtle.support.errors import UserError

from ..emulator.elf import build_id_of
from ..perf.sideband import KERNEL_PID, Sideband
from .demangle import source_name
from .files import cached_files, find_module
from .place import Place, unnamed
from .symbols import ProgramFile, read_program, symbol_address

__all__ = ["KERNEL", "KernelNames"]

KERNEL = "[kernel]"
"""Function of the addresses of the kernel that have no name, and memory region of all of them."""

_PREFIX = "[k] "  # as in perf. Programs have functions with the same names
_BPF = " [bpf]"  # the module of BPF programs in /proc/kallsyms
_MAPPING = "[kernel.kallsyms]"
_MASK = (1 << ADDRESS_BITS) - 1
_WORD = (1 << 64) - 1
_UPPER = _WORD ^ _MASK  # bits of addresses of the kernel that records do not have
_RUNNING = Path("/proc/kallsyms"), Path("/sys/kernel/notes")
_IMAGES = "/boot/vmlinux-{}", "/usr/lib/debug/boot/vmlinux-{}", "/lib/modules/{}/build/vmlinux"
_CODE = "tTwW"  # types of symbols of functions


class _Symbol(NamedTuple):
    address: int
    kind: str
    name: str
    module: str


class _Symbols:
    """Functions of a copy of /proc/kallsyms. A function ends where the next symbol begins."""

    def __init__(self, path: Path):
        self._symbols = sorted(_parsed(path), key=_preference)
        self._starts = np.array([each.address for each in self._symbols], np.uint64)

    def usable(self) -> bool:
        """Return whether there are addresses. The kernel writes zeros for users without permission."""
        return any(self._starts)

    def address(self, name: str) -> int | None:
        """Return the address of a symbol of the kernel itself."""
        return next((each.address for each in self._symbols if each.name == name and not each.module), None)

    def find(self, address: int, module: str) -> _Symbol | None:
        """Return the function of the kernel, or of a module, at an address."""
        index = int(np.searchsorted(self._starts, np.uint64(address), "right"))
        found = self._symbols[index - 1] if index else None
        return found if found is not None and found.kind in _CODE and found.module == module else None


class KernelNames:
    """Finder of the functions of the kernel of a recording.

    Parameters
    ----------
    sideband : Sideband
    kallsyms : str or None
        Path of a copy of /proc/kallsyms of the recorded machine. None to search where perf does.

    Raises
    ------
    UserError
        If the copy of /proc/kallsyms cannot be used.
    """

    def __init__(self, sideband: Sideband, kallsyms: str | None):
        mapped = [each for each in sideband.mappings if each.pid == KERNEL_PID]
        own = next((each for each in mapped if each.mapping.path.startswith(_MAPPING)), None)
        # In some recordings the mapping of the kernel contains those of its modules.
        self._regions = sorted((each.mapping for each in mapped), key=lambda each: each.path.startswith(_MAPPING))
        self._reference = ("", 0) if own is None else (own.mapping.path[len(_MAPPING) :], own.mapping.offset)
        build_id = b"" if own is None else own.build_id or sideband.build_ids.get(_MAPPING, b"")
        self._generated = sideband.kernel_functions
        self._modules = [
            each._replace(build_id=each.build_id or sideband.build_ids.get(each.mapping.path, b""))
            for each in mapped
            if not each.mapping.path.startswith(_MAPPING)
        ]
        self._module_of = cache(find_module)
        self._symbols: _Symbols | None = None
        self._image: tuple[ProgramFile, int] | None = None
        if kallsyms is not None:
            self._symbols = _given(Path(kallsyms))
        elif build_id:
            self._search(build_id, sideband.release)
        self._delta = 0 if self._symbols is None else self._moved(self._symbols.address(self._reference[0]))

    @property
    def known(self) -> bool:
        """Whether a file with names was found."""
        return self._symbols is not None or self._image is not None

    def places(self, addresses: Sequence[int]) -> dict[int, Place]:
        """Return the place of each instruction. Addresses have the bits that a record has."""
        owners = {address: self._region(address) for address in addresses}
        found = self._in_image([address for address, (module, _) in owners.items() if module == ""])
        found.update(self._in_modules(addresses))
        found.update(self._in_generated(addresses))
        return {address: found.get(address) or self._named(address, *owners[address]) for address in addresses}

    def _in_generated(self, addresses: Sequence[int]) -> dict[int, Place]:
        """Return the place of each instruction in a function that the recording names."""
        ordered = sorted(addresses)
        places: dict[int, Place] = {}
        for each in self._generated:  # the last function at an address counts
            name = f"{_PREFIX}{each.name}{_BPF if each.bpf else ''}"
            for address, offset in _inside(ordered, each.address, each.size):
                places[address] = Place(name, each.name, address | _UPPER, offset, None)
        return places

    def _in_modules(self, addresses: Sequence[int]) -> dict[int, Place]:
        """Return the place of each instruction in a module whose file is found."""
        ordered = sorted(addresses)
        places: dict[int, Place] = {}
        for path, start, length, build_id in (
            (each.mapping.path, each.mapping.start, each.mapping.length, each.build_id) for each in self._modules
        ):
            inside = _inside(ordered, start, length)
            module = self._module_of(Path(path), build_id) if inside else None
            if module is None:
                continue
            offsets = np.array([offset for _, offset in inside], np.uint64)
            for (address, offset), index in zip(inside, module.functions.find(offsets).tolist(), strict=True):
                if index >= 0:
                    symbol = module.functions.name(index)
                    name = f"{_PREFIX}{source_name(symbol)} [{_module_name(path)}]"
                    places[address] = Place(
                        name, symbol, address | _UPPER, offset - module.functions.start(index), None
                    )
        return places

    def _named(self, address: int, module: str | None, start: int) -> Place:
        # The modules of another boot are at unrelated addresses.
        plain = (address | _UPPER) - (0 if module else self._delta) & _WORD
        symbol = None
        if self._symbols is not None and module is not None:
            symbol = self._symbols.find(plain, module)
        if symbol is None:
            return unnamed(f"[{module}]" if module else KERNEL, address | _UPPER, (address | _UPPER) - start)
        name = f"{_PREFIX}{source_name(symbol.name)}" + (f" [{module}]" if module else "")
        return Place(name, symbol.name, address | _UPPER, plain - symbol.address, None)

    def _in_image(self, addresses: Sequence[int]) -> dict[int, Place]:
        if self._image is None or not addresses:
            return {}
        program, delta = self._image
        located = program.locate([(address | _UPPER) - delta for address in addresses])
        return {
            address: Place(f"{_PREFIX}{source_name(symbol)}", symbol, address | _UPPER, offset, source)
            for address, (symbol, offset, source) in zip(addresses, located, strict=True)
            if symbol is not None
        }

    def _region(self, address: int) -> tuple[str | None, int]:
        """Return the module that is mapped at an address, and the start of the module.

        The name is empty for the kernel itself, and None if nothing is mapped.
        """
        for each in self._regions:
            if each.start & _MASK <= address < (each.start & _MASK) + each.length:
                return ("", 0) if each.path.startswith(_MAPPING) else (_module_name(each.path), each.start)
        return (None, 0) if self._reference[0] else ("", 0)

    def _search(self, build_id: bytes, release: str) -> None:
        """Find a file with this build ID: the cache of perf, an installed vmlinux, or the running kernel."""
        folder = cached_files(build_id)
        images = [folder / "elf", *(Path(each.format(release)) for each in _IMAGES if release)]
        for path in images:
            program = read_program(path)
            if program is not None and program.build_id == build_id:
                self._image = program, self._moved(symbol_address(path, self._reference[0]))
                break
        copies = [folder / "kallsyms", folder]
        if _running_build_id() == build_id:
            copies.append(_RUNNING[0])
        for path in copies:
            if path.is_file() and (symbols := _Symbols(path)).usable():
                self._symbols = symbols
                return

    def _moved(self, address: int | None) -> int:
        """Return the distance by which the recorded kernel was moved, if its reference symbol is at `address`."""
        return 0 if address is None or not self._reference[0] else self._reference[1] - address


def _inside(ordered: Sequence[int], start: int, size: int) -> list[tuple[int, int]]:
    """Return the addresses that are in a part of the kernel, and their distances from its start."""
    first = start & _MASK
    found = ordered[bisect_left(ordered, first) : bisect_left(ordered, first + size)]
    return [(address, address - first) for address in found]


def _given(path: Path) -> _Symbols:
    try:
        symbols = _Symbols(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    if not symbols.usable():
        raise UserError(f"{path} must be a copy of /proc/kallsyms with addresses, which root can read")
    return symbols


def _parsed(path: Path) -> Iterator[_Symbol]:
    """Yield the symbols of a copy of /proc/kallsyms. Lines of another form are ignored."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            columns = line.split()
            # A name that begins with $ marks the start of code or data.
            if len(columns) in (3, 4) and len(columns[1]) == 1 and not columns[2].startswith("$"):
                try:
                    address = int(columns[0], 16)
                except ValueError:
                    continue
                if 0 <= address < 1 << 64:
                    yield _Symbol(address, columns[1], columns[2], columns[3].strip("[]") if len(columns) == 4 else "")


def _preference(symbol: _Symbol) -> tuple[int, bool, bool, int]:
    """Return the order of symbols. Of several at an address, the last one is used: as in perf, the most public one."""
    underscores = len(symbol.name) - len(symbol.name.lstrip("_"))
    return symbol.address, symbol.kind in _CODE, symbol.kind.isupper(), -underscores


def _module_name(path: str) -> str:
    """Return the name of a module as /proc/kallsyms has it."""
    name = Path(path).name.strip("[]")
    return name.partition(".ko")[0].replace("-", "_")


def _running_build_id() -> bytes:
    """Return the build ID of the running kernel. Empty if it is unknown."""
    try:
        return build_id_of(_RUNNING[1].read_bytes())
    except OSError:
        return b""
