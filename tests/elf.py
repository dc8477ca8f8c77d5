"""A static AArch64 executable from instruction words."""

import struct
from collections.abc import Sequence
from pathlib import Path

CODE = 0x400000
DATA = 0x410000
DATA_BYTES = 0x2000

EXIT = (0xD2800BC8, 0xD4000001)  # mov x8, #94; svc #0


def write_elf(path: Path, words: Sequence[int], *, machine: int = 183, kind: int = 2, flags: int = 0b101) -> Path:
    """`words` at CODE, which is the entry, and zeros at DATA. `flags` are of the code's segment: PF_R and PF_X."""
    code = struct.pack(f"<{len(words)}I", *words)
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = struct.pack("<16s2HI3QI6H", ident, kind, machine, 1, CODE, 64, 0, 0, 64, 56, 2, 64, 0, 0)
    text = struct.pack("<2I6Q", 1, flags, 0x1000, CODE, CODE, len(code), len(code), 0x1000)
    data = struct.pack("<2I6Q", 1, 0b110, 0x1000, DATA, DATA, 0, DATA_BYTES, 0x1000)
    path.write_bytes((header + text + data).ljust(0x1000, b"\0") + code)
    return path
