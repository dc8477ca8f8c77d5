"""Types of arguments, and access to the memory of the program, as the kernel has it."""

# Ref: Linux include/linux/syscalls.h (SYSCALL_DEFINE casts each argument to its type), include/uapi/linux/limits.h.

import errno
import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import unicorn
from unicorn.unicorn import Uc, UcError

from ...perf.process import PAGE_BYTES

__all__ = ["EXECUTE", "READ", "WRITE", "Call", "Guest", "Int", "Long", "NotEmulatedError", "UInt", "up"]

READ, WRITE, EXECUTE = unicorn.UC_PROT_READ, unicorn.UC_PROT_WRITE, unicorn.UC_PROT_EXEC
"""Protection bits of memory. Those of Linux (PROT) have the same numbers."""

_PATH_MAX = 4096

Call = Callable[..., int]

Region = tuple[int, int, int]
"""Start, end and protection bits of mapped memory."""

Int = Annotated[int, 32, "signed"]
UInt = Annotated[int, 32, "unsigned"]
Long = Annotated[int, 64, "signed"]
"""Types of the parameters of system calls. A bare `int` is an address or another unsigned number of 64 bits."""


class NotEmulatedError(OSError):
    """An error that Linux would not have returned.

    Parameters
    ----------
    number : int
        The errno that the program gets.
    what : str
        What is not emulated; follows "system call ... " in the report.
    """

    def __init__(self, number: int, what: str) -> None:
        super().__init__(number, what)
        self.number = number
        self.what = what


class Guest:
    """Memory of the program. Accesses that the program may not make itself fail with EFAULT.

    Parameters
    ----------
    uc : Uc
        Nothing else maps or protects memory from now on.
    """

    def __init__(self, uc: Uc) -> None:
        self._uc = uc
        # Unicorn takes 5 us for each region to list them.
        self._regions: list[Region] = [(first, last + 1, allowed) for first, last, allowed in sorted(uc.mem_regions())]

    def read(self, address: int, size: int) -> bytes:
        """Return `size` bytes from `address`."""
        self._check(address, size, READ)
        return bytes(self._uc.mem_read(address, size))

    def write(self, address: int, content: bytes) -> None:
        """Write `content` at `address`."""
        self._check(address, len(content), WRITE)
        self._uc.mem_write(address, content)

    def unpack(self, layout: str, address: int) -> tuple[Any, ...]:
        """Return the fields of the structure at `address`, little-endian and without alignment."""
        return struct.unpack("<" + layout, self.read(address, struct.calcsize("<" + layout)))

    def pack(self, layout: str, address: int, *fields: object) -> None:
        """Write a structure at `address`, little-endian and without alignment."""
        self.write(address, struct.pack("<" + layout, *fields))

    def text(self, address: int) -> str:
        """Return the path at `address`."""
        found = bytearray()
        while b"\0" not in found:
            if len(found) >= _PATH_MAX:
                raise OSError(errno.ENAMETOOLONG, "")
            start = address + len(found)
            found += self.read(start, PAGE_BYTES - start % PAGE_BYTES)
        return os.fsdecode(bytes(found[: found.index(0)]))

    def map(self, start: int, size: int, allowed: int) -> None:
        """Map pages of zeros with the protection bits `allowed` (UC_PROT)."""
        try:
            self._uc.mem_map(start, size, allowed)
        except UcError:
            raise NotEmulatedError(errno.ENOMEM, "for more memory than the emulator has") from None
        self._replace(start, start + size, [(start, start + size, allowed)])

    def unmap(self, start: int, size: int) -> None:
        """Unmap pages that are mapped."""
        self._uc.mem_unmap(start, size)
        self._replace(start, start + size, [])

    def protect(self, start: int, size: int, allowed: int) -> None:
        """Change the protection bits of pages that are mapped."""
        self._uc.mem_protect(start, size, allowed)
        self._replace(start, start + size, [(start, start + size, allowed)])

    def regions(self, start: int, end: int) -> Iterator[Region]:
        """Yield each mapped part of an address range, in order."""
        first, last = self._indices(start, end)
        for region_start, region_end, allowed in self._regions[first:last]:
            yield max(start, region_start), min(end, region_end), allowed

    def extent(self, address: int, size: int, allowed: int = 0) -> int:
        """Return how many of `size` bytes from `address` are mapped and have the protection bits `allowed`."""
        end = address
        for start, region_end, protection in self.regions(address, address + size):
            if start != end or protection & allowed != allowed:
                break
            end = region_end
        return end - address

    def covers(self, start: int, end: int) -> bool:
        """Return whether all of an address range is mapped."""
        return self.extent(start, end - start) == end - start

    def buffer(self, address: int, size: int, allowed: int) -> int:
        """Return how many of `size` bytes a transfer may use. Raises OSError if there is none."""
        found = self.extent(address, size, allowed)
        if size and not found:
            raise OSError(errno.EFAULT, "")
        return found

    def _indices(self, start: int, end: int) -> tuple[int, int]:
        """Return the slice of the regions that have a part of an address range."""
        first = bisect_right(self._regions, start, key=lambda region: region[1])
        return first, bisect_left(self._regions, end, lo=first, key=lambda region: region[0])

    def _replace(self, start: int, end: int, regions: list[Region]) -> None:
        """Replace what is known of an address range."""
        first, last = self._indices(start, end)
        touched = self._regions[first:last]
        before = [(region_start, start, allowed) for region_start, _, allowed in touched if region_start < start]
        after = [(end, region_end, allowed) for _, region_end, allowed in touched if region_end > end]
        self._regions[first:last] = [*before, *regions, *after]

    def _check(self, address: int, size: int, allowed: int) -> None:
        # Unicorn ignores the protection here: a system call could change code that has been classified.
        if self.extent(address, size, allowed) != size:
            raise OSError(errno.EFAULT, "")


def up(size: int) -> int:
    """Return `size`, rounded up to whole pages."""
    return -(-size // PAGE_BYTES) * PAGE_BYTES
