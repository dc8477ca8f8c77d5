"""A static AArch64 Linux executable, from its file into the memory of an emulated process."""

# Ref: ELF for the Arm 64-bit Architecture (AAELF64); Linux Documentation/arch/arm64/elf_hwcaps.rst.

import io
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import unicorn
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from unicorn import arm64_const as regs
from unicorn.unicorn import Uc

from .errors import UserError
from .syscalls import PAGE

__all__ = ["Image", "Mapping", "build_stack", "read_image"]

_PIE_BASE = 0x5555_5555_0000
_STACK_TOP = 0x7FFF_FFFF_0000
_STACK_BYTES = 8 << 20
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4
_NT_GNU_BUILD_ID = 3
_BUILD_ID_BYTES = 20  # as many as perf keeps
_HWCAP = 0x1FB  # FP, ASIMD, AES, PMULL, SHA1, SHA2, CRC32, ATOMICS; no SVE, which `classify` does not know


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
        return bool(self.protection & _PROT_EXEC)


@dataclass(frozen=True, slots=True)
class Segment:
    """A PT_LOAD segment, at its place in memory: `content` at `start`, zeros up to `end`; `allowed` in UC_PROT bits."""

    start: int
    end: int
    content: bytes
    allowed: int


@dataclass(frozen=True)
class Image:
    """The process as its file describes it.

    Parameters
    ----------
    entry : int
        First PC.
    headers : tuple of int
        Address, entry size and number of the program headers.
    segments : tuple of Segment
    mappings : tuple of Mapping
        The segments and the stack, as perf shows them. Linux has the zeros at the end of a segment in memory without a
        name; here they are part of the file's mapping, in which perf finds the names of variables.
    elf : ELFFile
    base : int
        Difference of each address to the one in the file.
    """

    entry: int
    headers: tuple[int, int, int]
    segments: tuple[Segment, ...]
    mappings: tuple[Mapping, ...]
    elf: ELFFile
    base: int

    @cached_property
    def functions(self) -> list[tuple[int, str]]:
        """Address and name of each function, sorted; empty in a stripped file."""
        # Not read with the file: it takes 30 us a symbol, and a run needs them only for a message about a crash.
        table: Any = self.elf.get_section_by_name(".symtab")
        if table is None:
            return []
        symbols = (symbol for symbol in table.iter_symbols() if symbol["st_info"]["type"] == "STT_FUNC")
        return sorted({(self.base + symbol["st_value"], symbol.name) for symbol in symbols})

    @cached_property
    def build_id(self) -> bytes:
        """Build ID, by which perf knows the file again; empty if it has none."""
        for segment in self.elf.iter_segments("PT_NOTE"):
            content: bytes = segment.data()
            while len(content) >= 12:
                name_bytes, size, kind = struct.unpack_from("<3I", content)
                start = 12 + -(-name_bytes // 4) * 4
                if kind == _NT_GNU_BUILD_ID and content[12 : 12 + name_bytes] == b"GNU\0":
                    return content[start : start + size][:_BUILD_ID_BYTES]
                content = content[start + -(-size // 4) * 4 :]
        return b""

    def load(self, uc: Uc) -> None:
        """Map and fill the segments. Where two share a page, it allows what either allows."""
        pages: dict[int, int] = {}
        for segment in self.segments:
            for page in range(_down(segment.start), _up(segment.end), PAGE):
                pages[page] = pages.get(page, 0) | segment.allowed
        runs: list[list[int]] = []  # first page, end, what is allowed
        for page, allowed in sorted(pages.items()):
            if runs and runs[-1][1:] == [page, allowed]:
                runs[-1][1] += PAGE
            else:
                runs.append([page, page + PAGE, allowed])
        for start, end, allowed in runs:
            uc.mem_map(start, end - start, allowed)
        for segment in self.segments:
            uc.mem_write(segment.start, segment.content)


def read_image(path: str | Path) -> Image:
    """Read the executable at `path`.

    Raises
    ------
    UserError
        If it is not there, or not a static AArch64 Linux executable.
    """
    elf = _open(path)
    base = _PIE_BASE if elf["e_type"] == "ET_DYN" else 0
    headers = [segment for segment in elf.iter_segments("PT_LOAD") if segment["p_memsz"]]
    segments = tuple(_segment(header, base) for header in headers)
    executable = [header for header in headers if header["p_flags"] & 1]
    if not executable:
        raise UserError(f"{path} must have an executable segment, and it has none")
    if any(header["p_flags"] & 2 for header in executable):
        raise UserError(f"{path} must not have a writable executable segment: code that changes is not followed")
    file = str(Path(path).absolute())
    stack = Mapping(_STACK_TOP - _STACK_BYTES, _STACK_BYTES, 0, _PROT_READ | _PROT_WRITE, "[stack]")
    first = headers[0]
    table = base + first["p_vaddr"] - first["p_offset"] + elf["e_phoff"]
    return Image(
        entry=base + elf["e_entry"],
        headers=(table, elf["e_phentsize"], elf["e_phnum"]),
        segments=segments,
        mappings=(*(_mapping(header, base, file) for header in headers), stack),
        elf=elf,
        base=base,
    )


def build_stack(uc: Uc, image: Image, argv: Sequence[str], seed: int) -> None:
    """Map the stack, and put argv, an empty environment and the auxiliary vector on it; SP points to them."""
    uc.mem_map(_STACK_TOP - _STACK_BYTES, _STACK_BYTES, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
    strings = [argument.encode() + b"\0" for argument in argv]
    block = random.Random(seed).randbytes(16) + b"".join(strings)
    top = (_STACK_TOP - len(block)) & -16
    uc.mem_write(top, block)
    pointers = [top + 16]
    for string in strings[:-1]:
        pointers.append(pointers[-1] + len(string))
    auxiliary = {
        3: image.headers[0],  # AT_PHDR
        4: image.headers[1],  # AT_PHENT
        5: image.headers[2],  # AT_PHNUM
        6: PAGE,  # AT_PAGESZ
        9: image.entry,  # AT_ENTRY
        16: _HWCAP,  # AT_HWCAP
        17: 100,  # AT_CLKTCK
        23: 0,  # AT_SECURE
        25: top,  # AT_RANDOM
        31: pointers[0],  # AT_EXECFN
        0: 0,  # AT_NULL
    }
    words = [len(argv), *pointers, 0, 0, *(word for pair in auxiliary.items() for word in pair)]
    sp = (top - 8 * len(words)) & -16
    uc.mem_write(sp, struct.pack(f"<{len(words)}Q", *words))
    uc.reg_write(regs.UC_ARM64_REG_SP, sp)


def _down(address: int) -> int:
    return address // PAGE * PAGE


def _up(address: int) -> int:
    return -(-address // PAGE) * PAGE


def _open(path: str | Path) -> ELFFile:
    """The file, if it is one that can be run. Raises UserError."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    try:
        elf = ELFFile(io.BytesIO(content))
        interpreted = any(elf.iter_segments("PT_INTERP"))
    except (ELFError, ValueError, KeyError, struct.error):
        raise UserError(f"{path} must be a static AArch64 Linux executable, and it is not an ELF file") from None
    if elf["e_machine"] != "EM_AARCH64" or elf.elfclass != 64 or not elf.little_endian:
        raise UserError(f"{path} must be built for AArch64, little-endian, not for {elf.get_machine_arch()}")
    if elf["e_type"] not in ("ET_EXEC", "ET_DYN"):
        raise UserError(f"{path} must be linked: it is an object file or a core dump")
    if interpreted:
        raise UserError(f"{path} must be linked statically (-static): it needs a dynamic linker")
    return elf


def _protection(header: Any) -> int:
    flags = header["p_flags"]
    return (flags >> 2 & 1) | (flags & 2) | (flags & 1) << 2  # PF_R, PF_W, PF_X are in the opposite order


def _mapping(header: Any, base: int, path: str) -> Mapping:
    start, end = _down(header["p_vaddr"]), _up(header["p_vaddr"] + header["p_memsz"])
    return Mapping(base + start, end - start, _down(header["p_offset"]), _protection(header), path)


def _segment(header: Any, base: int) -> Segment:
    allowed = _protection(header)  # UC_PROT has the same bits
    start = base + header["p_vaddr"]
    return Segment(start, start + header["p_memsz"], header.data(), allowed)
