"""System calls on the memory of the program."""

# Ref: Linux mm/mmap.c, mm/mprotect.c, mm/madvise.c; include/uapi/asm-generic/mman-common.h.

import errno
from collections.abc import Callable

from ...perf.process import PAGE_BYTES
from .guest import EXECUTE, READ, WRITE, Call, Guest, Int, NotEmulatedError, up

__all__ = ["LIMIT", "Memory"]

LIMIT = 1 << 30
_FIRST_MAPPING = 0x7000_0000_0000
_PROT_ALL = 0xF
_MAP_TYPE, _MAP_SHARED, _MAP_PRIVATE = 0xF, 1, 2
_MAP_FIXED, _MAP_ANONYMOUS, _MAP_FIXED_NOREPLACE = 0x10, 0x20, 0x10_0000
_MADV_DONTNEED = 4
_HINTS = {
    *(0, 1, 2, 3),  # MADV_NORMAL, RANDOM, SEQUENTIAL, WILLNEED
    8,  # MADV_FREE: the kernel may keep the content
    *(10, 11),  # MADV_DONTFORK, DOFORK: no process is made
    *(12, 13, 14, 15),  # MADV_MERGEABLE, UNMERGEABLE, HUGEPAGE, NOHUGEPAGE
    *(16, 17),  # MADV_DONTDUMP, DODUMP: no core file is written
    *(18, 19),  # MADV_WIPEONFORK, KEEPONFORK
    *(20, 21, 22, 23, 25),  # MADV_COLD, PAGEOUT, POPULATE_READ, POPULATE_WRITE, COLLAPSE
}
"""Advice that changes nothing that the program can see."""


class Memory:
    """Heap and anonymous mappings.

    Parameters
    ----------
    guest : Guest
    end : int
        First address after the program: the heap starts on the next page.
    report : callable
        Receives start, length, protection and name of what is mapped.

    Attributes
    ----------
    mapped : int
        Bytes of the mappings.
    """

    def __init__(self, guest: Guest, end: int, report: Callable[[int, int, int, str], None]) -> None:
        self.mapped = 0
        self._report = report
        self._guest = guest
        self._break = self._heap = up(end)
        self._next_mapping = _FIRST_MAPPING
        self._shared: list[tuple[int, int]] = []
        self.calls: tuple[Call, ...] = (self.brk, self.mmap, self.munmap, self.mprotect, self.madvise)

    def brk(self, wanted: int) -> int:
        if not self._heap <= wanted <= self._heap + LIMIT:
            return self._break
        old, new = up(self._break), up(wanted)
        if new > old:
            self._guest.map(old, new - old, _protection(WRITE))
            self._report(self._heap, new - self._heap, READ | WRITE, "[heap]")
        else:
            self._unmap(new, old)
        self._break = wanted
        return wanted

    def mmap(self, _address: int, length: int, protection: int, flags: int) -> int:
        size = up(length)
        if not size or flags & _MAP_TYPE not in (_MAP_SHARED, _MAP_PRIVATE):
            return -errno.EINVAL
        if flags & (_MAP_FIXED | _MAP_FIXED_NOREPLACE):
            raise NotEmulatedError(errno.EINVAL, "at a fixed address")
        if not flags & _MAP_ANONYMOUS:
            raise NotEmulatedError(errno.ENODEV, "of a file")
        _refuse_code(protection)
        if self.mapped + size > LIMIT:
            raise NotEmulatedError(errno.ENOMEM, f"beyond {LIMIT >> 20} MiB")
        address = self._next_mapping
        self._guest.map(address, size, _protection(protection))
        self.mapped += size
        self._report(address, size, protection, "//anon")
        self._next_mapping += size + PAGE_BYTES  # the page after it stays unmapped, so that an overrun is a crash
        if flags & _MAP_TYPE == _MAP_SHARED:
            self._shared.append((address, address + size))
        return address

    def munmap(self, address: int, length: int) -> int:
        if address % PAGE_BYTES or not length:
            return -errno.EINVAL
        self.mapped -= self._unmap(address, address + up(length))
        return 0

    def mprotect(self, address: int, length: int, protection: int) -> int:
        if address % PAGE_BYTES or protection & ~_PROT_ALL:
            return -errno.EINVAL
        _refuse_code(protection)
        if not self._guest.covers(address, address + length):
            return -errno.ENOMEM
        if length:
            self._guest.protect(address, up(length), _protection(protection))
        return 0

    def madvise(self, address: int, length: int, advice: Int) -> int:
        if address % PAGE_BYTES:
            return -errno.EINVAL
        end = address + up(length)
        if advice == _MADV_DONTNEED:
            self._check_private(address, end)
        elif advice not in _HINTS:
            raise NotEmulatedError(errno.EINVAL, f"with advice {advice}")
        if not self._guest.covers(address, end):
            return -errno.ENOMEM
        if advice == _MADV_DONTNEED:
            self._clear(address, end)
        return 0

    def _unmap(self, start: int, end: int) -> int:
        """Unmap what is mapped of an address range; return the number of bytes."""
        parts = [(first, last - first) for first, last, _ in self._guest.regions(start, end)]
        for first, size in parts:
            self._guest.unmap(first, size)
        return sum(size for _, size in parts)

    def _clear(self, start: int, end: int) -> None:
        """Replace the content of mapped pages by zeros."""
        for first, last, allowed in [*self._guest.regions(start, end)]:
            self._guest.unmap(first, last - first)
            self._guest.map(first, last - first, allowed)

    def _check_private(self, start: int, end: int) -> None:
        """Refuse to discard pages whose content would come back: of the program's file, and shared ones."""
        if start < self._heap or any(start < last and end > first for first, last in self._shared):
            raise NotEmulatedError(errno.EINVAL, "with MADV_DONTNEED on other than private anonymous memory")


def _refuse_code(protection: int) -> None:
    if protection & EXECUTE:
        raise NotEmulatedError(errno.EACCES, "for memory that can be executed")


def _protection(linux: int) -> int:
    """Return the UC_PROT bits, which are those of Linux. What can be written can be read, as on each AArch64 kernel."""
    writable = linux & WRITE
    return writable | (READ if writable else linux & READ)
