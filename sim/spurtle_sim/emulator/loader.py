"""Loader of static AArch64 Linux executables, and of their initial stack.

Ref: ELF for the Arm 64-bit Architecture (AAELF64); Linux Documentation/arch/arm64/elf_hwcaps.rst.
"""

import os
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from unicorn import arm64_const as regs
from unicorn.unicorn import Uc

from spurtle.support.errors import UserError

from ..perf.process import PAGE_BYTES, Mapping
from .elf import ProgramHeader, page_start, protection_bits, read_headers
from .front_end import QEMU_HINT
from .functions import read_functions
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

_HWCAP = 0x1FB  # FP, ASIMD, AES, PMULL, SHA1, SHA2, CRC32, ATOMICS; no SVE, which `classify` does not support


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
        # Read on demand: only the message about a crash needs the names.
        return read_functions(self.content, self.base)

    def load(self, uc: Uc) -> None:
        """Map the segments and write their contents.

        A page that several segments share has the union of their protection bits.
        """
        pages: dict[int, int] = {}
        for segment in self.segments:
            for page in range(page_start(segment.start), page_align(segment.end), PAGE_BYTES):
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
    headers = read_headers(path)
    header, content, loaded = headers.elf, headers.content, headers.loaded
    base = _PIE_BASE if headers.relocatable else 0
    table_end = header.phoff + header.phnum * header.phentsize
    if headers.interpreter is not None:
        raise UserError(f"{path} must be linked statically (-static): it needs a dynamic linker; {QEMU_HINT}")
    for each in loaded:
        _check_segment(path, each, base, len(content))
    segments = tuple(_segment(each, base, content) for each in loaded)
    _check_memory(path, segments)
    file = str(Path(path).absolute())
    mappings = headers.mappings(base, file)
    entry = base + header.entry
    if not any(mapping.executable and mapping.start <= entry < mapping.end for mapping in mappings):
        raise UserError(f"{path} must start in an executable segment, not at {header.entry:#x}")
    # As in Linux, the address of the program headers is in the segment that contains them. Without one it is zero.
    containing = [each for each in loaded if each.offset <= header.phoff and table_end <= each.offset + each.filesz]
    headers_address = base + containing[0].vaddr + header.phoff - containing[0].offset if containing else 0
    stack = Mapping(_STACK_TOP - _STACK_BYTES, _STACK_BYTES, 0, READ | WRITE, "[stack]")
    return Image(
        entry=entry,
        headers=(headers_address, header.phentsize, header.phnum),
        segments=segments,
        mappings=(*mappings, stack),
        content=content,
        build_id=headers.build_id,
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
            page_start(code.start) < page_align(other.end) and page_start(other.start) < page_align(code.end)
            for other in writable
        ):
            raise UserError(f"{path} must not have a writable executable segment: self-modifying code is not supported")


def _segment(header: ProgramHeader, base: int, content: bytes) -> Segment:
    start = base + header.vaddr
    return Segment(start, start + header.memsz, content[header.offset :][: header.filesz], protection_bits(header))
