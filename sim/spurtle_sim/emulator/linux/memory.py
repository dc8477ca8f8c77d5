"""System calls on the memory of the program.

Ref: Linux mm/mmap.c, mm/mprotect.c, mm/madvise.c; include/uapi/asm-generic/mman-common.h.
"""

import errno
from collections.abc import Callable

from ...perf.process import PAGE_BYTES
from .guest import EXECUTE, READ, WRITE, Call, Guest, Int, NotEmulatedError, Region, page_align

__all__ = ["LIMIT", "MemoryCalls"]

LIMIT = 1 << 30
"""Maximum number of bytes of the heap, and of all anonymous mappings. sysinfo reports it as the size of memory."""
_FIRST_MAPPING = 0x7000_0000_0000
_LAST_ADDRESS = 1 << 47  # the end of the stack
_PROT_ALL = 0xF  # PROT_READ, WRITE, EXEC, SEM
_MAP_TYPE, _MAP_SHARED, _MAP_PRIVATE = 0xF, 1, 2
_MAP_FIXED, _MAP_ANONYMOUS, _MAP_FIXED_NOREPLACE = 0x10, 0x20, 0x10_0000
_MADV_DONTNEED = 4
_HINTS = {
    *(0, 1, 2, 3),  # MADV_NORMAL, RANDOM, SEQUENTIAL, WILLNEED
    8,  # MADV_FREE: the kernel is not required to discard the content
    *(10, 11),  # MADV_DONTFORK, DOFORK: no process is created
    *(12, 13, 14, 15),  # MADV_MERGEABLE, UNMERGEABLE, HUGEPAGE, NOHUGEPAGE
    *(16, 17),  # MADV_DONTDUMP, DODUMP: no core file is written
    *(18, 19),  # MADV_WIPEONFORK, KEEPONFORK
    *(20, 21, 22, 23, 25),  # MADV_COLD, PAGEOUT, POPULATE_READ, POPULATE_WRITE, COLLAPSE
}
"""Advice that has no effect that the program can observe."""


class MemoryCalls:
    """System calls on the heap and on anonymous mappings.

    Parameters
    ----------
    guest : Guest
    end : int
        First address after the program. The heap starts at the next page boundary.
    on_map : callable
        Called with start, length, protection and name of each anonymous mapping that the program creates, and of the
        complete heap when it grows.

    Attributes
    ----------
    mapped_bytes : int
        Number of bytes of the anonymous mappings.
    """

    def __init__(self, guest: Guest, end: int, on_map: Callable[[int, int, int, str], None]) -> None:
        self.mapped_bytes = 0
        self._on_map = on_map
        self._guest = guest
        self._break = self._heap = page_align(end)
        self._next_mapping = _FIRST_MAPPING
        self._shared: list[tuple[int, int]] = []
        self.calls: tuple[Call, ...] = (self.brk, self.mmap, self.munmap, self.mprotect, self.madvise)

    def brk(self, address: int) -> int:
        if not self._heap <= address <= self._heap + LIMIT:
            return self._break
        old, new = page_align(self._break), page_align(address)
        if new > old:
            self._guest.map(old, new - old, _protection(WRITE))
            self._on_map(self._heap, new - self._heap, READ | WRITE, "[heap]")
        else:
            self._unmap(new, old)
        self._break = address
        return address

    def mmap(self, address: int, length: int, protection: int, flags: int) -> int:
        size = page_align(length)
        if not size or flags & _MAP_TYPE not in (_MAP_SHARED, _MAP_PRIVATE):
            return -errno.EINVAL
        fixed = flags & _MAP_FIXED
        if fixed and address % PAGE_BYTES:
            return -errno.EINVAL
        # The heap is the lowest memory that a program may replace. C libraries make guard pages in it.
        if flags & _MAP_FIXED_NOREPLACE or (fixed and not self._heap <= address <= _LAST_ADDRESS - size):
            raise NotEmulatedError(errno.EINVAL, "at this fixed address")
        if not flags & _MAP_ANONYMOUS:
            raise NotEmulatedError(errno.ENODEV, "of a file")
        _check_not_executable(protection)
        if self.mapped_bytes + size > LIMIT:
            raise NotEmulatedError(errno.ENOMEM, f"beyond {LIMIT >> 20} MiB")
        if fixed:
            self.munmap(address, size)
        else:
            address = self._next_mapping
            self._next_mapping += size + PAGE_BYTES  # an unmapped page follows, so that an overrun crashes
        self._guest.map(address, size, _protection(protection))
        if address >= _FIRST_MAPPING:
            self.mapped_bytes += size
        self._on_map(address, size, protection, "//anon")
        if flags & _MAP_TYPE == _MAP_SHARED:
            self._shared.append((address, address + size))
        return address

    def munmap(self, address: int, length: int) -> int:
        if address % PAGE_BYTES or not length:
            return -errno.EINVAL
        end = address + page_align(length)
        # Programs can also unmap the heap, the stack and the executable, which are not counted.
        for first, last, _ in self._unmap(address, end):
            if _FIRST_MAPPING <= first < self._next_mapping:
                self.mapped_bytes -= last - first
        return 0

    def mprotect(self, address: int, length: int, protection: int) -> int:
        if address % PAGE_BYTES or protection & ~_PROT_ALL:
            return -errno.EINVAL
        _check_not_executable(protection)
        if not self._guest.is_mapped(address, address + length):
            return -errno.ENOMEM
        if length:
            self._guest.protect(address, page_align(length), _protection(protection))
        return 0

    def madvise(self, address: int, length: int, advice: Int) -> int:
        if address % PAGE_BYTES:
            return -errno.EINVAL
        end = address + page_align(length)
        if advice == _MADV_DONTNEED:
            self._check_private(address, end)
        elif advice not in _HINTS:
            raise NotEmulatedError(errno.EINVAL, f"with advice {advice}")
        if not self._guest.is_mapped(address, end):
            return -errno.ENOMEM
        if advice == _MADV_DONTNEED:
            self._clear(address, end)
        return 0

    def _unmap(self, start: int, end: int) -> list[Region]:
        """Unmap the mapped parts of an address range, and return them."""
        regions = [*self._guest.regions(start, end)]
        for first, last, _ in regions:
            self._guest.unmap(first, last - first)
        return regions

    def _clear(self, start: int, end: int) -> None:
        """Clear the mapped pages of an address range."""
        for first, last, protection in [*self._guest.regions(start, end)]:
            self._guest.unmap(first, last - first)
            self._guest.map(first, last - first, protection)

    def _check_private(self, start: int, end: int) -> None:
        """Raise NotEmulatedError for pages that Linux would not clear: pages of the executable, and shared pages."""
        if start < self._heap or any(start < last and end > first for first, last in self._shared):
            raise NotEmulatedError(errno.EINVAL, "with MADV_DONTNEED on other than private anonymous memory")


def _check_not_executable(protection: int) -> None:
    """Raise NotEmulatedError for executable memory: only the code of the file is classified."""
    if protection & EXECUTE:
        raise NotEmulatedError(errno.EACCES, "for executable memory")


def _protection(linux: int) -> int:
    """Return UC_PROT bits for PROT bits. Writable memory is also readable, as on every AArch64 kernel."""
    writable = linux & WRITE
    return writable | (READ if writable else linux & READ)
