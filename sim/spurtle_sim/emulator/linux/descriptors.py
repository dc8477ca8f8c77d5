"""File descriptors of the program, and the system calls that affect only descriptors.

Ref: Linux fs/fcntl.c, fs/file.c, fs/ioctl.c; include/uapi/asm-generic/{fcntl,ioctls}.h,
arch/arm64/include/uapi/asm/fcntl.h.
"""

import errno
import fcntl
import os

from .guest import Call, Guest, Int, NotEmulatedError, UInt

__all__ = ["DESCRIPTORS", "O_CLOEXEC", "O_NONBLOCK", "Descriptors"]

DESCRIPTORS = 1024
"""Maximum number of descriptors (RLIMIT_NOFILE)."""

O_NONBLOCK, O_CLOEXEC = 0o4000, 0o2000000
_O_APPEND, _O_DIRECT = 0o2000, 0o200000
_STATUS_FLAGS = {_O_APPEND: os.O_APPEND, O_NONBLOCK: os.O_NONBLOCK}
"""Flags that F_SETFL can change, and their values on the host. Other flags can have other values on the host."""

_F_DUPFD, _F_GETFD, _F_SETFD, _F_GETFL, _F_SETFL, _F_DUPFD_CLOEXEC = 0, 1, 2, 3, 4, 1030
_FD_CLOEXEC = 1
_O_ASYNC = 0o20000
_FILE_CALLS = {
    *(0x541B, 0x5421, 0x5450),  # FIONREAD, FIONBIO, FIONCLEX
    *(0x5451, 0x5452, 0x5460),  # FIOCLEX, FIOASYNC, FIOQSIZE
}
"""Commands of ioctl that do not require a terminal. They are not emulated."""


class Descriptors:
    """Descriptors of the program, and the host descriptors that they refer to.

    Descriptors 0 to 2 refer to the standard streams of the host.

    Parameters
    ----------
    guest : Guest
    """

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._hosts = {0: 0, 1: 1, 2: 2}
        self._close_on_exec: set[int] = set()
        self.calls: tuple[Call, ...] = (self.dup, self.dup3, self.fcntl, self.ioctl, self.close, self.pipe2)

    def is_open(self, descriptor: int) -> bool:
        """Return whether `descriptor` is open."""
        return descriptor in self._hosts

    def host(self, descriptor: int) -> int:
        """Return the host descriptor of `descriptor`. Raise OSError if `descriptor` is not open."""
        if not self.is_open(descriptor):
            raise OSError(errno.EBADF, "")
        return self._hosts[descriptor]

    def add(self, host: int, *, close_on_exec: bool, minimum: int = 0) -> int:
        """Assign the lowest free descriptor, `minimum` or above, to a host descriptor, and return it.

        The host descriptor is closed with it, or immediately if no descriptor is free.
        """
        descriptor = next((number for number in range(minimum, DESCRIPTORS) if number not in self._hosts), None)
        if descriptor is None:
            os.close(host)
            raise OSError(errno.EMFILE, "")
        self._set(descriptor, host, close_on_exec)
        return descriptor

    def close_all(self) -> None:
        """Close all files that the program has not closed."""
        for descriptor in [*self._hosts]:
            self.close(descriptor)

    def close(self, descriptor: Int) -> int:
        host = self.host(descriptor)
        del self._hosts[descriptor]
        if host > 2:  # the standard streams of the host stay open
            os.close(host)
        return 0

    def dup(self, old: Int) -> int:
        return self.add(os.dup(self.host(old)), close_on_exec=False)

    def dup3(self, old: Int, new: Int, flags: Int) -> int:
        if flags & ~O_CLOEXEC or old == new:
            return -errno.EINVAL
        if not 0 <= new < DESCRIPTORS:
            return -errno.EBADF
        host = os.dup(self.host(old))
        if new in self._hosts:
            self.close(new)
        self._set(new, host, bool(flags))
        return new

    def pipe2(self, result: int, flags: Int) -> int:
        if flags & ~(O_CLOEXEC | O_NONBLOCK | _O_DIRECT):
            return -errno.EINVAL
        if flags & _O_DIRECT:
            raise NotEmulatedError(errno.EINVAL, "with O_DIRECT")
        ends: list[int] = []
        for host in os.pipe():
            os.set_blocking(host, not flags & O_NONBLOCK)
            ends.append(self.add(host, close_on_exec=bool(flags & O_CLOEXEC)))
        self._guest.pack("2i", result, *ends)
        return 0

    def fcntl(self, descriptor: Int, command: Int, argument: int) -> int:
        host = self.host(descriptor)
        if command in (_F_DUPFD, _F_DUPFD_CLOEXEC):
            if argument >= DESCRIPTORS:
                return -errno.EINVAL
            return self.add(os.dup(host), close_on_exec=command == _F_DUPFD_CLOEXEC, minimum=argument)
        if command == _F_GETFD:
            return _FD_CLOEXEC if descriptor in self._close_on_exec else 0
        if command == _F_SETFD:
            self._set(descriptor, host, bool(argument & _FD_CLOEXEC))
            return 0
        if command == _F_GETFL:
            return _status(host)
        if command == _F_SETFL:
            return _set_status(host, argument)
        raise NotEmulatedError(errno.EINVAL, f"with command {command}")

    def ioctl(self, descriptor: Int, command: UInt) -> int:
        self.host(descriptor)
        if command in _FILE_CALLS:
            raise NotEmulatedError(errno.ENOTTY, f"with command 0x{command:x}")
        return -errno.ENOTTY  # no stream is a terminal

    def _set(self, descriptor: int, host: int, close_on_exec: bool) -> None:
        self._hosts[descriptor] = host
        if close_on_exec:
            self._close_on_exec.add(descriptor)
        else:
            self._close_on_exec.discard(descriptor)


def _status(host: int) -> int:
    """Return access mode and status flags with the values of AArch64."""
    flags = fcntl.fcntl(host, fcntl.F_GETFL)
    return flags & os.O_ACCMODE | sum(guest for guest, bit in _STATUS_FLAGS.items() if flags & bit)


def _set_status(host: int, requested: int) -> int:
    if requested & (_O_DIRECT | _O_ASYNC):
        raise NotEmulatedError(errno.EINVAL, "with O_DIRECT or O_ASYNC")
    flags = fcntl.fcntl(host, fcntl.F_GETFL)
    for guest, bit in _STATUS_FLAGS.items():
        flags = flags | bit if requested & guest else flags & ~bit
    fcntl.fcntl(host, fcntl.F_SETFL, flags)
    return 0
