"""System calls that move data between the memory of the program and its files."""

# Ref: Linux fs/read_write.c, fs/select.c; include/uapi/asm-generic/poll.h.

import errno
import os
import select
import stat

from .clock import Clock
from .descriptors import DESCRIPTORS, Descriptors
from .guest import READ, WRITE, Call, Guest, Int, Long, NotEmulatedError, UInt
from .signals import SIGPIPE, Signals

__all__ = ["Streams"]

_MAX_BYTES = 0x7FFF_F000  # of one transfer: MAX_RW_COUNT
_MAX_VECTORS = 1024
_MAX_WAIT = 2**31 - 1  # milliseconds, of the host's poll
_ALWAYS = select.POLLERR | select.POLLHUP | select.POLLNVAL  # events that need not be asked for
_CHUNK = 1 << 20  # of sendfile, which may return less than what is wanted


class Streams:
    """Transfers: from each file, and to the standard streams, pipes and /dev/null.

    Parameters
    ----------
    guest : Guest
    descriptors : Descriptors
    clock : Clock
    signals : Signals
    """

    def __init__(self, guest: Guest, descriptors: Descriptors, clock: Clock, signals: Signals) -> None:
        self._guest = guest
        self._descriptors = descriptors
        self._host = descriptors.host
        self._clock = clock
        self._signals = signals
        self.calls: tuple[Call, ...] = (
            *(self.lseek, self.read, self.write, self.readv, self.writev, self.pread64, self.sendfile, self.ppoll),
            self.fadvise64,
        )

    def lseek(self, descriptor: Int, offset: Long, whence: Int) -> int:
        return os.lseek(self._host(descriptor), offset, whence)

    def read(self, descriptor: Int, buffer: int, length: int) -> int:
        content = os.read(self._host(descriptor), self._transfer(buffer, length, WRITE))
        self._guest.write(buffer, content)
        return len(content)

    def pread64(self, descriptor: Int, buffer: int, length: int, offset: Long) -> int:
        content = os.pread(self._host(descriptor), self._transfer(buffer, length, WRITE), offset)
        self._guest.write(buffer, content)
        return len(content)

    def readv(self, descriptor: Int, vectors: int, count: Long) -> int:
        parts = self._parts(vectors, count, WRITE)
        content = os.read(self._host(descriptor), sum(length for _, length in parts))
        done = 0
        for buffer, length in parts:
            self._guest.write(buffer, content[done : done + length])
            done += length
        return len(content)

    def write(self, descriptor: Int, buffer: int, length: int) -> int:
        host = self._host(descriptor)
        return self._write(host, self._guest.read(buffer, self._transfer(buffer, length, READ)))

    def writev(self, descriptor: Int, vectors: int, count: Long) -> int:
        host = self._host(descriptor)
        return self._write(host, b"".join(self._guest.read(*part) for part in self._parts(vectors, count, READ)))

    def sendfile(self, target: Int, source: Int, offset: int, length: Long) -> int:
        host, output = self._host(source), self._host(target)
        if length < 0 or not stat.S_ISREG(os.fstat(host).st_mode):
            return -errno.EINVAL
        (start,) = self._guest.unpack("q", offset) if offset else (os.lseek(host, 0, os.SEEK_CUR),)
        content = os.pread(host, min(length, _CHUNK), start)
        written = self._write(output, content)
        if written > 0 and offset:
            self._guest.pack("q", offset, start + written)
        elif written > 0:
            os.lseek(host, start + written, os.SEEK_SET)
        return written

    def fadvise64(self, descriptor: Int, offset: Long, length: Long, advice: Int) -> int:
        os.posix_fadvise(self._host(descriptor), offset, length, advice)
        return 0

    def ppoll(self, entries: int, count: UInt, timeout: int, mask: int) -> int:
        if count > DESCRIPTORS:
            return -errno.EINVAL
        if mask and self._signals.pending:
            raise NotEmulatedError(errno.ENOSYS, "with a mask while signals are pending")
        duration = self._clock.duration(timeout) if timeout else None
        wanted: list[tuple[int, int]] = [self._guest.unpack("iH", entries + 8 * index) for index in range(count)]
        found = self._poll(wanted, duration)
        for index, events in enumerate(found):
            self._guest.pack("H", entries + 8 * index + 6, events)
        ready = sum(events != 0 for events in found)
        if not ready and duration is not None:
            self._clock.sleep(duration)
            self._guest.pack("2q", timeout, 0, 0)
        return ready

    def _poll(self, wanted: list[tuple[int, int]], duration: int | None) -> list[int]:
        """Return the events of each descriptor and its mask. Wait on the host for one, up to `duration` nanoseconds."""
        masks: dict[int, int] = {}
        for descriptor, mask in wanted:
            masks[descriptor] = masks.get(descriptor, 0) | mask
        found, hosts, poll = dict.fromkeys(masks, 0), dict[int, int](), select.poll()
        for descriptor, mask in masks.items():
            if self._descriptors.is_open(descriptor):
                hosts[self._host(descriptor)] = descriptor
                poll.register(self._host(descriptor), mask)
            elif descriptor >= 0:
                found[descriptor] = select.POLLNVAL
        if any(found.values()) or (duration is not None and not hosts):  # a sleep ends at once
            wait = 0
        else:
            wait = None if duration is None else min(-(-duration // 10**6), _MAX_WAIT)
        for host, events in poll.poll(wait):
            found[hosts[host]] = events
        return [found[descriptor] & (mask | _ALWAYS) for descriptor, mask in wanted]

    def _parts(self, vectors: int, count: int, allowed: int) -> list[tuple[int, int]]:
        """Return address and length of each buffer, cut to what one call transfers."""
        if not 0 <= count <= _MAX_VECTORS:
            raise OSError(errno.EINVAL, "")
        parts: list[tuple[int, int]] = []
        left = _MAX_BYTES
        for index in range(count):
            address, length = self._guest.unpack("Qq", vectors + 16 * index)
            if length < 0:
                raise OSError(errno.EINVAL, "")
            parts.append((address, self._transfer(address, min(length, left), allowed)))
            left -= parts[-1][1]
        return parts

    def _transfer(self, buffer: int, length: int, allowed: int) -> int:
        """Return the bytes that one call transfers: no file gives data that the memory cannot take."""
        if length >> 63:
            raise OSError(errno.EFAULT, "")
        return self._guest.buffer(buffer, min(length, _MAX_BYTES), allowed)

    def _write(self, host: int, content: bytes) -> int:
        try:
            return os.write(host, content)
        except BrokenPipeError:
            self._signals.send(SIGPIPE)
            raise
