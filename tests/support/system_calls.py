"""System calls of the emulator without a program."""

import errno
import os
import struct
from pathlib import Path

from unicorn import UC_ARCH_ARM64, UC_MODE_ARM, UC_PROT_ALL, UC_PROT_READ
from unicorn.unicorn import Uc

from spurtle_sim.emulator.linux.names import NAMES
from spurtle_sim.emulator.syscalls import Kernel
from spurtle_sim.perf.process import PAGE_BYTES

__all__ = [
    "AT_EMPTY_PATH",
    "AT_FDCWD",
    "AT_SYMLINK_NOFOLLOW",
    "BUFFER",
    "CODE_PAGE",
    "HANDLER",
    "NUMBERS",
    "PATH",
    "SIGUSR1",
    "SIG_IGN",
    "Caller",
]

NUMBERS = {name: number for number, name in NAMES.items()}
PATH, BUFFER, CODE_PAGE = 0x1000, 0x1800, 0x4000
AT_FDCWD = -100
SIGUSR1, SIG_IGN, HANDLER = 10, 1, 0x400000
AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW = 0x1000, 0x100


class Caller:
    """A kernel of the emulator, with a page of memory for arguments and a page of code.

    The object is called with the name and the arguments of a system call, and returns its result. Strings are at PATH
    and structures at BUFFER.
    """

    def __init__(self) -> None:
        self.uc = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        self.uc.mem_map(0x1000, PAGE_BYTES, UC_PROT_ALL)
        self.uc.mem_map(CODE_PAGE, PAGE_BYTES, UC_PROT_READ)
        self.instructions = 2_000_000_007
        self.kernel = Kernel(self.uc, path=Path("/bin/program"), end=0x5345, now=lambda: self.instructions, seed=1)

    def __call__(self, name: str, *arguments: int) -> int:
        values = tuple(argument % 2**64 for argument in arguments)
        return self.kernel.call(NUMBERS[name], (*values, *[0] * (6 - len(arguments))))

    def fails(self, name: str, *arguments: int) -> str:
        """Call a system call that fails. Return the name of its errno."""
        return errno.errorcode[-self(name, *arguments)]

    def path(self, name: str | Path) -> int:
        """Write a path to memory. Return its address."""
        self.uc.mem_write(PATH, os.fsencode(name) + b"\0")
        return PATH

    def put(self, layout: str, *fields: int, at: int = BUFFER) -> int:
        """Write a structure to memory. Return its address. `layout` is of `struct`, as for `get`."""
        self.uc.mem_write(at, struct.pack("<" + layout, *fields))
        return at

    def get(self, layout: str, at: int = BUFFER) -> tuple[int, ...]:
        """Return the fields of a structure in memory."""
        return struct.unpack("<" + layout, self.uc.mem_read(at, struct.calcsize("<" + layout)))

    def bytes(self, length: int, at: int = BUFFER) -> bytes:
        """Return bytes of memory."""
        return bytes(self.uc.mem_read(at, length))

    def open(self, path: Path, flags: int = 0) -> int:
        """Open a file. Return its descriptor."""
        return self("openat", AT_FDCWD, self.path(path), flags)
