"""Loader of static AArch64 Linux executables, and of their initial stack.

Ref: ELF for the Arm 64-bit Architecture (AAELF64); Linux Documentation/arch/arm64/elf_hwcaps.rst.
"""

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
from .linux.guest import EXECUTE, READ, WRITE, page_align

__all__ = ["Image", "build_stack", "read_image"]

_PIE_BASE = 0x5555_5555_0000
_STACK_TOP = 0x7FFF_FFFF_0000
_STACK_BYTES = 8 << 20

_ARGUMENTS_LIMIT = _STACK_BYTES // 4
"""Maximum number of bytes of argument strings and pointers: a quarter of the stack, as in Linux."""

_LIMIT = 0x7000_0000_0000
"""Upper bound of the addresses of segments. The mappings that the emulated kernel creates start at this address."""

_SIZE_LIMIT = 1 << 30
"""Maximum number of bytes of all segments together, and of the range from the first to the last executable segment."""

_HEADER = struct.Struct("<16s2HI3QI3H")
_PROGRAM_HEADER = struct.Struct("<2I6Q")
_CLASS_64_LITTLE_ENDIAN = b"\x02\x01"
_EM_AARCH64 = 183
_ET_EXEC, _ET_DYN = 2, 3
_PT_LOAD, _PT_INTERP, _PT_NOTE = 1, 3, 4
_NT_GNU_BUILD_ID = 3
_BUILD_ID_BYTES = 20  # maximum length in perf
_HWCAP = 0x1FB  # FP, ASIMD, AES, PMULL, SHA1, SHA2, CRC32, ATOMICS; no SVE, which `classify` does not support


class ELFHeader(NamedTuple):
    """ELF header (Elf64_Ehdr)."""

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
    """Program header (Elf64_Phdr)."""

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
    """PT_LOAD segment in memory.

    Parameters
    ----------
    start, end : int
        First address, and first address after the segment.
    content : bytes
        Content from `start`. The bytes after it, up to `end`, are zero.
    protection : int
        Protection bits (UC_PROT).
    """

    start: int
    end: int
    content: bytes
    protection: int


@dataclass(frozen=True)
class Image:
    """Process image that an executable describes.

    Parameters
    ----------
    entry : int
        Entry point.
    headers : tuple of int
        Address, entry size and number of the program headers.
    segments : tuple of Segment
    mappings : tuple of Mapping
        Mappings of the segments and of the stack, for perf. In Linux the zeros at the end of a segment are anonymous
        memory. Here they are part of the mapping of the file, so that perf finds the names of the variables in them.
    content : bytes
        Content of the file.
    build_id : bytes
        Build ID, by which perf identifies the file. Empty if the file has none.
    base : int
        Load address of a position-independent executable: the difference between an address in memory and its value in
        the file. Otherwise zero.
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
        """Address and name of each function, sorted by address. Empty for a stripped file."""
        # Read on demand: it takes 30 us per symbol, and only the message about a crash needs the names.
        try:
            table: Any = ELFFile(io.BytesIO(self.content)).get_section_by_name(".symtab")
            symbols = (symbol for symbol in table.iter_symbols() if symbol["st_info"]["type"] == "STT_FUNC")
            return sorted({(self.base + symbol["st_value"], symbol.name) for symbol in symbols})
        except Exception:
            # A program runs with invalid sections because the kernel does not read them. pyelftools raises various
            # exceptions for them.
            return []

    def load(self, uc: Uc) -> None:
        """Map the segments and write their contents.

        A page that several segments share has the union of their protection bits.
        """
        pages: dict[int, int] = {}
        for segment in self.segments:
            for page in range(_page_start(segment.start), page_align(segment.end), PAGE_BYTES):
                pages[page] = pages.get(page, 0) | segment.protection
        runs: list[list[int]] = []  # start, end, protection bits
        for page, protection in sorted(pages.items()):
            if runs and runs[-1][1:] == [page, protection]:
                runs[-1][1] += PAGE_BYTES
            else:
                runs.append([page, page + PAGE_BYTES, protection])
        for start, end, protection in runs:
            uc.mem_map(start, end - start, protection)
        for segment in self.segments:
            uc.mem_write(segment.start, segment.content)


def read_image(path: str | Path) -> Image:
    """Read the executable at `path`. As in Linux, only the ELF header and the program headers are read.

    Raises
    ------
    UserError
        If the file does not exist, is not a static AArch64 Linux executable, or cannot be emulated.
    """
    content = _read(path)
    header = _header(path, content)
    base = _PIE_BASE if header.type == _ET_DYN else 0
    table = header.phoff, header.phoff + header.phnum * _PROGRAM_HEADER.size
    if header.phentsize != _PROGRAM_HEADER.size or not header.phnum or table[1] > len(content):
        raise UserError(f"{path} must have complete program headers")
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
    # As in Linux, the address of the program headers is in the segment that contains them. Without one it is zero.
    containing = [each for each in loaded if each.offset <= header.phoff and table[1] <= each.offset + each.filesz]
    headers_address = base + containing[0].vaddr + header.phoff - containing[0].offset if containing else 0
    stack = Mapping(_STACK_TOP - _STACK_BYTES, _STACK_BYTES, 0, READ | WRITE, "[stack]")
    return Image(
        entry=entry,
        headers=(headers_address, header.phentsize, header.phnum),
        segments=segments,
        mappings=(*mappings, stack),
        content=content,
        build_id=_build_id(headers, content),
        base=base,
    )


def build_stack(uc: Uc, image: Image, argv: Sequence[str], seed: int) -> None:
    """Map the stack, write argv, an empty environment and the auxiliary vector to it, and set SP to their address.

    Raises
    ------
    UserError
        If the arguments are longer than Linux accepts.
    """
    uc.mem_map(_STACK_TOP - _STACK_BYTES, _STACK_BYTES, READ | WRITE)
    strings = [os.fsencode(argument) + b"\0" for argument in argv]
    size = sum(map(len, strings)) + 8 * len(strings)
    if size > _ARGUMENTS_LIMIT:
        raise UserError(f"the arguments of the program must be at most {_ARGUMENTS_LIMIT:,} bytes, not {size:,}")
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


def _page_start(address: int) -> int:
    """Return `address`, rounded down to a multiple of the page size."""
    return address // PAGE_BYTES * PAGE_BYTES


def _read(path: str | Path) -> bytes:
    """Return the content of a regular file. Raise UserError for another file, or if it cannot be read."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise UserError(f"{path} cannot be read: it must be a regular file")
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def _header(path: str | Path, content: bytes) -> ELFHeader:
    """Return the ELF header of an executable. Raise UserError if the file is not one."""
    if content[:4] != b"\x7fELF" or len(content) < _HEADER.size:
        raise UserError(f"{path} must be a static AArch64 Linux executable: it is not an ELF file")
    header = ELFHeader(*_HEADER.unpack_from(content))
    if header.ident[4:6] != _CLASS_64_LITTLE_ENDIAN or header.machine != _EM_AARCH64:
        raise UserError(f"{path} must be built for AArch64, 64-bit and little-endian")
    if header.type not in (_ET_EXEC, _ET_DYN):
        raise UserError(f"{path} must be an executable, not an object file or a core dump")
    return header


def _check_segment(path: str | Path, header: ProgramHeader, base: int, file_bytes: int) -> None:
    """Raise UserError if Linux would not map the segment, or if the file does not contain it."""
    prefix = f"{path} cannot be loaded: the segment at {header.vaddr:#x}"
    if header.filesz > header.memsz:
        raise UserError(f"{prefix} has {header.filesz:#x} bytes in the file and only {header.memsz:#x} in memory")
    if (header.vaddr - header.offset) % PAGE_BYTES:
        raise UserError(
            f"{prefix} has another offset in its page than in the file, where it starts at byte {header.offset:#x}"
        )
    if header.offset + header.filesz > file_bytes:
        raise UserError(
            f"{prefix} ends at byte {header.offset + header.filesz:#x} of the file, which has {file_bytes:#x} bytes"
        )
    if base + header.vaddr + header.memsz > _LIMIT:
        raise UserError(f"{prefix} must end at {_LIMIT:#x} or below, not at {base + header.vaddr + header.memsz:#x}")


def _build_id(headers: Sequence[ProgramHeader], content: bytes) -> bytes:
    """Return the build ID in the notes, or an empty string if there is none."""
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
    """Raise UserError if the segments are too large, or if code is writable."""
    executable = [segment for segment in segments if segment.protection & EXECUTE]
    if not executable:
        raise UserError(f"{path} must have an executable segment")
    span = max(segment.end for segment in executable) - min(segment.start for segment in executable)
    size = sum(segment.end - segment.start for segment in segments)
    if max(span, size) > _SIZE_LIMIT:
        raise UserError(f"{path} must have segments of at most {_SIZE_LIMIT:#x} bytes, not {max(span, size):#x}")
    writable = [segment for segment in segments if segment.protection & WRITE]
    for code in executable:
        if any(
            _page_start(code.start) < page_align(other.end) and _page_start(other.start) < page_align(code.end)
            for other in writable
        ):
            raise UserError(f"{path} must not have a writable executable segment: self-modifying code is not supported")


def _protection(header: ProgramHeader) -> int:
    """Return the UC_PROT bits of a segment."""
    flags = header.flags
    return (flags >> 2 & 1) | (flags & 2) | (flags & 1) << 2  # PF_R, PF_W, PF_X are in the opposite order


def _mapping(header: ProgramHeader, base: int, path: str) -> Mapping:
    start, end = _page_start(header.vaddr), page_align(header.vaddr + header.memsz)
    return Mapping(base + start, end - start, _page_start(header.offset), _protection(header), path)


def _segment(header: ProgramHeader, base: int, content: bytes) -> Segment:
    protection = _protection(header)
    start = base + header.vaddr
    return Segment(start, start + header.memsz, content[header.offset :][: header.filesz], protection)
