"""Headers of AArch64 Linux executables and shared libraries.

Ref: ELF for the Arm 64-bit Architecture (AAELF64).
"""

import stat
import struct
from pathlib import Path
from typing import NamedTuple

from spurtle.support.errors import UserError

from ..perf.process import PAGE_BYTES, Mapping

__all__ = [
    "ELFHeader",
    "Headers",
    "ProgramHeader",
    "build_id_of",
    "page_start",
    "protection_bits",
    "read_headers",
    "segment_mapping",
]

_HEADER = struct.Struct("<16s2HI3QI3H")
_PROGRAM_HEADER = struct.Struct("<2I6Q")
_CLASS_64_LITTLE_ENDIAN = b"\x02\x01"
_EM_AARCH64 = 183
_ET_EXEC, _ET_DYN = 2, 3
_PT_LOAD, _PT_INTERP, _PT_NOTE = 1, 3, 4
_NT_GNU_BUILD_ID = 3
_BUILD_ID_BYTES = 20  # maximum length in perf


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


class Headers(NamedTuple):
    """Headers of an executable or shared library.

    Members
    -------
    elf : ELFHeader
    program : list of ProgramHeader
    content : bytes
        Content of the file.
    """

    elf: ELFHeader
    program: list[ProgramHeader]
    content: bytes

    @property
    def relocatable(self) -> bool:
        """Whether the file can be loaded at any address."""
        return self.elf.type == _ET_DYN

    @property
    def loaded(self) -> list[ProgramHeader]:
        """Headers of the segments in memory."""
        return [each for each in self.program if each.type == _PT_LOAD and each.memsz]

    @property
    def interpreter(self) -> str | None:
        """Path of the dynamic linker. None if the file needs none."""
        for each in self.program:
            if each.type == _PT_INTERP:
                return self.content[each.offset :][: each.filesz].partition(b"\0")[0].decode(errors="surrogateescape")
        return None

    @property
    def build_id(self) -> bytes:
        """Build ID in the notes, by which perf identifies the file. Empty if there is none."""
        for header in self.program:
            notes = self.content[header.offset :][: header.filesz] if header.type == _PT_NOTE else b""
            if found := build_id_of(notes):
                return found
        return b""

    def mappings(self, base: int, path: str) -> list[Mapping]:
        """Return the mappings of the segments, if the file `path` is loaded at `base`."""
        return [segment_mapping(each, base, path) for each in self.loaded]


def build_id_of(notes: bytes) -> bytes:
    """Return the build ID in the content of a note section or segment. Empty if it has none."""
    while len(notes) >= 12:
        name_bytes, size, kind = struct.unpack_from("<3I", notes)
        start = 12 + -(-name_bytes // 4) * 4
        if kind == _NT_GNU_BUILD_ID and notes[12 : 12 + name_bytes] == b"GNU\0":
            return notes[start : start + size][:_BUILD_ID_BYTES]
        notes = notes[start + -(-size // 4) * 4 :]
    return b""


def read_headers(path: str | Path) -> Headers:
    """Read the headers of the executable at `path`.

    Raises
    ------
    UserError
        If the file does not exist, or is not an AArch64 Linux executable.
    """
    content = _read(path)
    header = _header(path, content)
    end = header.phoff + header.phnum * _PROGRAM_HEADER.size
    if header.phentsize != _PROGRAM_HEADER.size or not header.phnum or end > len(content):
        raise UserError(f"{path} must have complete program headers")
    table = _PROGRAM_HEADER.iter_unpack(content[header.phoff : end])
    return Headers(header, [ProgramHeader(*fields) for fields in table], content)


def segment_mapping(header: ProgramHeader, base: int, path: str) -> Mapping:
    """Return the mapping of a segment, if the file `path` is loaded at `base`."""
    start, end = page_start(header.vaddr), page_start(header.vaddr + header.memsz + PAGE_BYTES - 1)
    return Mapping(base + start, end - start, page_start(header.offset), protection_bits(header), path)


def page_start(address: int) -> int:
    """Return `address`, rounded down to a multiple of the page size."""
    return address // PAGE_BYTES * PAGE_BYTES


def protection_bits(header: ProgramHeader) -> int:
    """Return the bits PROT_READ, PROT_WRITE and PROT_EXEC of a segment."""
    flags = header.flags
    return (flags >> 2 & 1) | (flags & 2) | (flags & 1) << 2  # PF_R, PF_W, PF_X are in the opposite order


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
