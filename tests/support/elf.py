"""Static AArch64 executables from instruction words."""

import struct
from collections.abc import Sequence
from pathlib import Path

CODE = 0x400000
DATA = 0x410000
DATA_BYTES = 0x2000

EXIT = (0xD2800BC8, 0xD4000001)  # mov x8, #94; svc #0


def write_elf(path: Path, words: Sequence[int], *, machine: int = 183, kind: int = 2, flags: int = 0b101) -> Path:
    """Write an executable with `words` at CODE, the entry point, and DATA_BYTES zero bytes at DATA.

    `flags` are the p_flags of the segment of the code: PF_R and PF_X by default. Return `path`.
    """
    code = struct.pack(f"<{len(words)}I", *words)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<16s2HI3QI6H", ident, kind, machine, 1, CODE, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    text = struct.pack("<2I6Q", 1, flags, 0x1000, CODE, CODE, len(code), len(code), 0x1000)
    data = struct.pack("<2I6Q", 1, 0b110, 0x1000, DATA, DATA, 0, DATA_BYTES, 0x1000)
    path.write_bytes((header + text + data).ljust(0x1000, b"\0") + code)
    return path


def write_with_build_id(source: Path, path: Path, build_id: bytes) -> None:
    """Write a copy of an executable with a build ID.

    The build ID is in the section .note.gnu.build-id and in a PT_NOTE segment that replaces PT_GNU_STACK.
    """
    content = bytearray(source.read_bytes())
    headers, sections = struct.unpack_from("<2Q", content, 32)
    count, _, section_count, names = struct.unpack_from("<4H", content, 56)
    note = struct.pack("<3I4s", 4, len(build_id), 3, b"GNU") + build_id
    old = [struct.unpack_from("<2I4Q2I2Q", content, sections + 64 * index) for index in range(section_count)]
    strings = content[old[names][4] : old[names][4] + old[names][5]]
    content += bytes(-len(content) % 8)
    offset = len(content)
    content += note + bytes(-len(note) % 8)
    for index in range(count):
        header = headers + 56 * index
        if struct.unpack_from("<I", content, header)[0] == 0x6474_E551:
            struct.pack_into("<2I6Q", content, header, 4, 4, offset, offset, offset, len(note), len(note), 4)
    name = len(strings)
    strings += b".note.gnu.build-id\0"
    new = [*old, (name, 7, 0, 0, offset, len(note), 0, 0, 4, 0)]
    new[names] = (*old[names][:4], len(content), len(strings), *old[names][6:])
    content += strings + bytes(-len(strings) % 8)
    struct.pack_into("<Q", content, 40, len(content))
    struct.pack_into("<H", content, 60, len(new))
    path.write_bytes(content + b"".join(struct.pack("<2I4Q2I2Q", *section) for section in new))
