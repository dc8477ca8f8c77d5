"""Types of system call arguments, and access to the memory of the program.

Ref: Linux include/linux/syscalls.h (SYSCALL_DEFINE casts each argument to its type), include/uapi/linux/limits.h.
"""

import errno
import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import unicorn
from unicorn.unicorn import Uc, UcError

from ...perf.process import PAGE_BYTES

__all__ = [
    "EXECUTE",
    "READ",
    "WRITE",
    "Call",
    "Guest",
    "Int",
    "Long",
    "NotEmulatedError",
    "Region",
    "UInt",
    "page_align",
]

READ, WRITE, EXECUTE = unicorn.UC_PROT_READ, unicorn.UC_PROT_WRITE, unicorn.UC_PROT_EXEC
"""Protection bits of memory. PROT_READ, PROT_WRITE and PROT_EXEC of Linux have the same values."""

_PATH_MAX = 4096

Call = Callable[..., int]

Region = tuple[int, int, int]
"""Start, end and protection bits of mapped memory."""

Int = Annotated[int, 32, "signed"]
UInt = Annotated[int, 32, "unsigned"]
Long = Annotated[int, 64, "signed"]
"""Types of the parameters of system calls. `int` is an address or another unsigned 64-bit number."""


class NotEmulatedError(OSError):
    """An error that Linux would not have returned.

    Parameters
    ----------
    number : int
        Errno that the program receives.
    feature : str
        Feature that is not emulated. The report has it after the name of the system call.
    """

    def __init__(self, number: int, feature: str) -> None:
        super().__init__(number, feature)
        self.number = number
        self.feature = feature


class Guest:
    """Memory of the program. Accesses that the protection of the memory does not permit fail with EFAULT.

    Parameters
    ----------
    uc : Uc
        Emulator. From now on, memory must be mapped, unmapped and protected only through this object.
    """

    def __init__(self, uc: Uc) -> None:
        self._uc = uc
        # The regions are stored here because Unicorn takes 5 us per region to list them.
        self._regions: list[Region] = [
            (first, last + 1, protection) for first, last, protection in sorted(uc.mem_regions())
        ]

    def read(self, address: int, size: int) -> bytes:
        """Return `size` bytes from `address`."""
        self._check(address, size, READ)
        return bytes(self._uc.mem_read(address, size))

    def write(self, address: int, content: bytes) -> None:
        """Write `content` at `address`."""
        self._check(address, len(content), WRITE)
        self._uc.mem_write(address, content)

    def unpack(self, layout: str, address: int) -> tuple[Any, ...]:
        """Return the fields of the structure at `address`.

        `layout` is a format of `struct` without the byte order, which is little-endian. Fields are not aligned.
        """
        return struct.unpack("<" + layout, self.read(address, struct.calcsize("<" + layout)))

    def pack(self, layout: str, address: int, *fields: object) -> None:
        """Write a structure at `address`. `layout` is as for `unpack`."""
        self.write(address, struct.pack("<" + layout, *fields))

    def read_string(self, address: int) -> str:
        """Return the string at `address`. Raise OSError if it is longer than a path can be."""
        content = bytearray()
        while b"\0" not in content:
            if len(content) >= _PATH_MAX:
                raise OSError(errno.ENAMETOOLONG, "")
            start = address + len(content)
            content += self.read(start, PAGE_BYTES - start % PAGE_BYTES)
        return os.fsdecode(bytes(content[: content.index(0)]))

    def map(self, start: int, size: int, protection: int) -> None:
        """Map zeroed pages with the protection bits `protection` (UC_PROT)."""
        try:
            self._uc.mem_map(start, size, protection)
        except UcError:
            raise NotEmulatedError(errno.ENOMEM, "for more memory than the emulator can map") from None
        self._replace(start, start + size, [(start, start + size, protection)])

    def unmap(self, start: int, size: int) -> None:
        """Unmap mapped pages."""
        self._uc.mem_unmap(start, size)
        self._replace(start, start + size, [])

    def protect(self, start: int, size: int, protection: int) -> None:
        """Change the protection bits of mapped pages."""
        self._uc.mem_protect(start, size, protection)
        self._replace(start, start + size, [(start, start + size, protection)])

    def regions(self, start: int, end: int) -> Iterator[Region]:
        """Yield the mapped parts of an address range, in order of addresses."""
        first, last = self._indices(start, end)
        for region_start, region_end, protection in self._regions[first:last]:
            yield max(start, region_start), min(end, region_end), protection

    def accessible_bytes(self, address: int, size: int, required: int = 0) -> int:
        """Return how many of `size` bytes from `address` are mapped and have the protection bits `required`."""
        end = address
        for start, region_end, protection in self.regions(address, address + size):
            if start != end or protection & required != required:
                break
            end = region_end
        return end - address

    def is_mapped(self, start: int, end: int) -> bool:
        """Return whether the complete address range is mapped."""
        return self.accessible_bytes(start, end - start) == end - start

    def transfer_bytes(self, address: int, size: int, required: int) -> int:
        """Return how many of `size` bytes from `address` can be transferred. Raise OSError if there are none."""
        count = self.accessible_bytes(address, size, required)
        if size and not count:
            raise OSError(errno.EFAULT, "")
        return count

    def _indices(self, start: int, end: int) -> tuple[int, int]:
        """Return the slice of the regions that overlap an address range."""
        first = bisect_right(self._regions, start, key=lambda region: region[1])
        return first, bisect_left(self._regions, end, lo=first, key=lambda region: region[0])

    def _replace(self, start: int, end: int, regions: list[Region]) -> None:
        """Replace the regions of an address range by `regions`."""
        first, last = self._indices(start, end)
        overlapping = self._regions[first:last]
        before = [
            (region_start, start, protection) for region_start, _, protection in overlapping if region_start < start
        ]
        after = [(end, region_end, protection) for _, region_end, protection in overlapping if region_end > end]
        self._regions[first:last] = [*before, *regions, *after]

    def _check(self, address: int, size: int, required: int) -> None:
        # Unicorn does not check the protection here. A system call could write to code that is already classified.
        if self.accessible_bytes(address, size, required) != size:
            raise OSError(errno.EFAULT, "")


def page_align(size: int) -> int:
    """Return `size`, rounded up to a multiple of the page size."""
    return -(-size // PAGE_BYTES) * PAGE_BYTES
