"""A static AArch64 Linux executable, from its file into the memory of an emulated process."""

# Ref: ELF for the Arm 64-bit Architecture (AAELF64); Linux Documentation/arch/arm64/elf_hwcaps.rst.

import io
import os
import random
import stat
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile
from unicorn import arm64_const as regs
from unicorn.unicorn import Uc

from spurtle.support.errors import UserError

from ..perf.process import PAGE_BYTES, Mapping
from .linux.guest import EXECUTE, READ, WRITE

__all__ = ["Image", "build_stack", "read_image"]

_PIE_BASE = 0x5555_5555_0000
_STACK_TOP = 0x7FFF_FFFF_0000
_STACK_BYTES = 8 << 20
_ARGUMENTS_LIMIT = _STACK_BYTES // 4
"""Most bytes of strings and pointers, as of Linux."""
_LIMIT = 0x7000_0000_0000
"""The kernel's own mappings begin here."""
_SIZE_LIMIT = 1 << 30
"""Most bytes of all segments, and from the first one that can be executed to the last."""
_HEADER = struct.Struct("<16s2HI3QI3H")
_PROGRAM_HEADER = struct.Struct("<2I6Q")
_CLASS_64_LITTLE_ENDIAN = b"\x02\x01"
_EM_AARCH64 = 183
_ET_EXEC, _ET_DYN = 2, 3
_PT_LOAD, _PT_INTERP, _PT_NOTE = 1, 3, 4
_NT_GNU_BUILD_ID = 3
_BUILD_ID_BYTES = 20  # as many as perf keeps
_HWCAP = 0x1FB  # FP, ASIMD, AES, PMULL, SHA1, SHA2, CRC32, ATOMICS; no SVE, which `classify` does not know


class ELFHeader(NamedTuple):
    """An ELF header."""

    ident: bytes
    type: int
    machine: int
    version: int
    entry: int
    phoff: int
    shoff: int
    flags: int
    ehsize: int
    phentsize: int
    phnum: int


class ProgramHeader(NamedTuple):
    """A program header."""

    type: int
    flags: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    align: int


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
    content : bytes
        The file.
    build_id : bytes
        By which perf knows the file again; empty if it has none.
    base : int
        Difference of each address to the one in the file.
    """

    entry: int
    headers: tuple[int, int, int]
    segments: tuple[Segment, ...]
    mappings: tuple[Mapping, ...]
    content: bytes
    build_id: bytes
    base: int

    @cached_property
    def functions(self) -> list[tuple[int, str]]:
        """Address and name of each function, sorted; empty in a stripped file."""
        # Not read with the file: it takes 30 us a symbol, and a run needs them only for a message about a crash.
        try:
            table: Any = ELFFile(io.BytesIO(self.content)).get_section_by_name(".symtab")
            symbols = (symbol for symbol in table.iter_symbols() if symbol["st_info"]["type"] == "STT_FUNC")
            return sorted({(self.base + symbol["st_value"], symbol.name) for symbol in symbols})
        except Exception:
            # No kernel reads sections, so a program runs with any, and the reader raises any exception.
            return []

    def load(self, uc: Uc) -> None:
        """Map and fill the segments. Where two share a page, it allows what either allows."""
        pages: dict[int, int] = {}
        for segment in self.segments:
            for page in range(_down(segment.start), _up(segment.end), PAGE_BYTES):
                pages[page] = pages.get(page, 0) | segment.allowed
        runs: list[list[int]] = []  # first page, end, what is allowed
        for page, allowed in sorted(pages.items()):
            if runs and runs[-1][1:] == [page, allowed]:
                runs[-1][1] += PAGE_BYTES
            else:
                runs.append([page, page + PAGE_BYTES, allowed])
        for start, end, allowed in runs:
            uc.mem_map(start, end - start, allowed)
        for segment in self.segments:
            uc.mem_write(segment.start, segment.content)


def read_image(path: str | Path) -> Image:
    """Read the executable at `path`: what Linux reads of it, which is the ELF header and the program headers.

    Raises
    ------
    UserError
        If it is absent, is not a static AArch64 Linux executable, or cannot be executed here.
    """
    content = _read(path)
    header = _header(path, content)
    base = _PIE_BASE if header.type == _ET_DYN else 0
    table = header.phoff, header.phoff + header.phnum * _PROGRAM_HEADER.size
    if header.phentsize != _PROGRAM_HEADER.size or not header.phnum or table[1] > len(content):
        raise UserError(f"{path} must have program headers, and has none that are complete")
    headers = [ProgramHeader(*fields) for fields in _PROGRAM_HEADER.iter_unpack(content[slice(*table)])]
    if any(each.type == _PT_INTERP for each in headers):
        raise UserError(f"{path} must be linked statically (-static): it needs a dynamic linker")
    loaded = [each for each in headers if each.type == _PT_LOAD and each.memsz]
    for each in loaded:
        _check_segment(path, each, base, len(content))
    segments = tuple(_segment(each, base, content) for each in loaded)
    _check_memory(path, segments)
    file = str(Path(path).absolute())
    mappings = [_mapping(each, base, file) for each in loaded]
    entry = base + header.entry
    if not any(mapping.executable and mapping.start <= entry < mapping.end for mapping in mappings):
        raise UserError(f"{path} must start in an executable segment, not at {header.entry:#x}")
    # Linux: the headers are where the segment that holds them is, if there is one.
    inside = [each for each in loaded if each.offset <= header.phoff and table[1] <= each.offset + each.filesz]
    at = base + inside[0].vaddr + header.phoff - inside[0].offset if inside else 0
    stack = Mapping(_STACK_TOP - _STACK_BYTES, _STACK_BYTES, 0, READ | WRITE, "[stack]")
    return Image(
        entry=entry,
        headers=(at, header.phentsize, header.phnum),
        segments=segments,
        mappings=(*mappings, stack),
        content=content,
        build_id=_build_id(headers, content),
        base=base,
    )


def build_stack(uc: Uc, image: Image, argv: Sequence[str], seed: int) -> None:
    """Map the stack, and put argv, an empty environment and the auxiliary vector on it; SP points to them.

    Raises
    ------
    UserError
        If the arguments are longer than Linux takes.
    """
    uc.mem_map(_STACK_TOP - _STACK_BYTES, _STACK_BYTES, READ | WRITE)
    strings = [os.fsencode(argument) + b"\0" for argument in argv]
    size = sum(map(len, strings)) + 8 * len(strings)
    if size > _ARGUMENTS_LIMIT:
        raise UserError(f"the arguments of the program must be {_ARGUMENTS_LIMIT:,} bytes at most, not {size:,}")
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
        6: PAGE_BYTES,  # AT_PAGESZ
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
    return address // PAGE_BYTES * PAGE_BYTES


def _up(address: int) -> int:
    return -(-address // PAGE_BYTES) * PAGE_BYTES


def _read(path: str | Path) -> bytes:
    """Return the content of a regular file. Raises UserError."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise UserError(f"{path} cannot be read: it must be a regular file")
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def _header(path: str | Path, content: bytes) -> ELFHeader:
    """Return the ELF header of a file that can be run. Raises UserError."""
    if content[:4] != b"\x7fELF" or len(content) < _HEADER.size:
        raise UserError(f"{path} must be a static AArch64 Linux executable, and it is not an ELF file")
    header = ELFHeader(*_HEADER.unpack_from(content))
    if header.ident[4:6] != _CLASS_64_LITTLE_ENDIAN or header.machine != _EM_AARCH64:
        raise UserError(f"{path} must be built for AArch64, 64 bits and little-endian")
    if header.type not in (_ET_EXEC, _ET_DYN):
        raise UserError(f"{path} must be linked: it is an object file or a core dump")
    return header


def _check_segment(path: str | Path, header: ProgramHeader, base: int, file_bytes: int) -> None:
    """Raise UserError if Linux would not map the segment, or the file ends before it."""
    cannot = f"{path} cannot be loaded: the segment at {header.vaddr:#x}"
    if header.filesz > header.memsz:
        raise UserError(f"{cannot} has {header.filesz:#x} bytes in the file and {header.memsz:#x} in memory")
    if (header.vaddr - header.offset) % PAGE_BYTES:
        raise UserError(f"{cannot} is at another place in its page of the file, at byte {header.offset:#x}")
    if header.offset + header.filesz > file_bytes:
        raise UserError(
            f"{cannot} ends at byte {header.offset + header.filesz:#x} of the file, which has {file_bytes:#x}"
        )
    if base + header.vaddr + header.memsz > _LIMIT:
        raise UserError(f"{cannot} must end at {_LIMIT:#x} or below, not at {base + header.vaddr + header.memsz:#x}")


def _build_id(headers: Sequence[ProgramHeader], content: bytes) -> bytes:
    """Return the build ID in the notes, or nothing if there is none."""
    for header in headers:
        notes = content[header.offset :][: header.filesz] if header.type == _PT_NOTE else b""
        while len(notes) >= 12:
            name_bytes, size, kind = struct.unpack_from("<3I", notes)
            start = 12 + -(-name_bytes // 4) * 4
            if kind == _NT_GNU_BUILD_ID and notes[12 : 12 + name_bytes] == b"GNU\0":
                return notes[start : start + size][:_BUILD_ID_BYTES]
            notes = notes[start + -(-size // 4) * 4 :]
    return b""


def _check_memory(path: str | Path, segments: Sequence[Segment]) -> None:
    """Raise UserError if the segments are too large, or code can change."""
    executable = [segment for segment in segments if segment.allowed & EXECUTE]
    if not executable:
        raise UserError(f"{path} must have an executable segment, and it has none")
    span = max(segment.end for segment in executable) - min(segment.start for segment in executable)
    size = sum(segment.end - segment.start for segment in segments)
    if max(span, size) > _SIZE_LIMIT:
        raise UserError(f"{path} must have segments of {_SIZE_LIMIT:#x} bytes at most, not {max(span, size):#x}")
    writable = [segment for segment in segments if segment.allowed & WRITE]
    for code in executable:
        if any(_down(code.start) < _up(other.end) and _down(other.start) < _up(code.end) for other in writable):
            raise UserError(f"{path} must not have a writable executable segment: code that changes is not followed")


def _protection(header: ProgramHeader) -> int:
    flags = header.flags
    return (flags >> 2 & 1) | (flags & 2) | (flags & 1) << 2  # PF_R, PF_W, PF_X are in the opposite order


def _mapping(header: ProgramHeader, base: int, path: str) -> Mapping:
    start, end = _down(header.vaddr), _up(header.vaddr + header.memsz)
    return Mapping(base + start, end - start, _down(header.offset), _protection(header), path)


def _segment(header: ProgramHeader, base: int, content: bytes) -> Segment:
    allowed = _protection(header)
    start = base + header.vaddr
    return Segment(start, start + header.memsz, content[header.offset :][: header.filesz], allowed)
