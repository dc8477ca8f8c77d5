"""System calls that transfer data between the memory of the program and files.

Ref: Linux fs/read_write.c, fs/select.c; include/uapi/asm-generic/poll.h.
"""

import errno
import os
import select
import stat

from .clock import Clock
from .descriptors import DESCRIPTORS, Descriptors
from .guest import READ, WRITE, Call, Guest, Int, Long, NotEmulatedError, UInt
from .signals import SIGPIPE, SignalCalls

__all__ = ["StreamCalls"]

_MAX_BYTES = 0x7FFF_F000  # maximum of one transfer: MAX_RW_COUNT
_MAX_VECTORS = 1024
_MAX_WAIT = 2**31 - 1  # milliseconds; limit of poll on the host
_ALWAYS = select.POLLERR | select.POLLHUP | select.POLLNVAL  # events that are reported without a request
_CHUNK = 1 << 20  # maximum of one sendfile, which can transfer less than requested


class StreamCalls:
    """System calls that read files, and that write to the standard streams, pipes and /dev/null.

    Parameters
    ----------
    guest : Guest
    descriptors : Descriptors
    clock : Clock
    signals : SignalCalls
    """

    def __init__(self, guest: Guest, descriptors: Descriptors, clock: Clock, signals: SignalCalls) -> None:
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
        content = os.read(self._host(descriptor), self._transfer_bytes(buffer, length, WRITE))
        self._guest.write(buffer, content)
        return len(content)

    def pread64(self, descriptor: Int, buffer: int, length: int, offset: Long) -> int:
        content = os.pread(self._host(descriptor), self._transfer_bytes(buffer, length, WRITE), offset)
        self._guest.write(buffer, content)
        return len(content)

    def readv(self, descriptor: Int, vectors: int, count: Long) -> int:
        buffers = self._buffers(vectors, count, WRITE)
        content = os.read(self._host(descriptor), sum(length for _, length in buffers))
        offset = 0
        for buffer, length in buffers:
            self._guest.write(buffer, content[offset : offset + length])
            offset += length
        return len(content)

    def write(self, descriptor: Int, buffer: int, length: int) -> int:
        host = self._host(descriptor)
        return self._write(host, self._guest.read(buffer, self._transfer_bytes(buffer, length, READ)))

    def writev(self, descriptor: Int, vectors: int, count: Long) -> int:
        host = self._host(descriptor)
        return self._write(host, b"".join(self._guest.read(*buffer) for buffer in self._buffers(vectors, count, READ)))

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
        duration = self._clock.read_timespec(timeout) if timeout else None
        requests: list[tuple[int, int]] = [self._guest.unpack("iH", entries + 8 * index) for index in range(count)]
        results = self._poll(requests, duration)
        for index, events in enumerate(results):
            self._guest.pack("H", entries + 8 * index + 6, events)
        ready = sum(events != 0 for events in results)
        if not ready and duration is not None:
            self._clock.sleep(duration)
            self._guest.pack("2q", timeout, 0, 0)
        return ready

    def _poll(self, requests: list[tuple[int, int]], duration: int | None) -> list[int]:
        """Return the events of each pair of descriptor and mask.

        Wait on the host until there is an event, for up to `duration` nanoseconds.
        """
        masks: dict[int, int] = {}
        for descriptor, mask in requests:
            masks[descriptor] = masks.get(descriptor, 0) | mask
        results, hosts, poll = dict.fromkeys(masks, 0), dict[int, int](), select.poll()
        for descriptor, mask in masks.items():
            if self._descriptors.is_open(descriptor):
                hosts[self._host(descriptor)] = descriptor
                poll.register(self._host(descriptor), mask)
            elif descriptor >= 0:
                results[descriptor] = select.POLLNVAL
        if any(results.values()) or (duration is not None and not hosts):  # a sleep returns immediately
            wait = 0
        else:
            wait = None if duration is None else min(-(-duration // 10**6), _MAX_WAIT)
        for host, events in poll.poll(wait):
            results[hosts[host]] = events
        return [results[descriptor] & (mask | _ALWAYS) for descriptor, mask in requests]

    def _buffers(self, vectors: int, count: int, required: int) -> list[tuple[int, int]]:
        """Return address and length of each buffer, limited to the bytes that one call transfers."""
        if not 0 <= count <= _MAX_VECTORS:
            raise OSError(errno.EINVAL, "")
        buffers: list[tuple[int, int]] = []
        remaining = _MAX_BYTES
        for index in range(count):
            address, length = self._guest.unpack("Qq", vectors + 16 * index)
            if length < 0:
                raise OSError(errno.EINVAL, "")
            buffers.append((address, self._transfer_bytes(address, min(length, remaining), required)))
            remaining -= buffers[-1][1]
        return buffers

    def _transfer_bytes(self, buffer: int, length: int, required: int) -> int:
        """Return how many bytes one call transfers: no more than the memory permits, so that no data is lost."""
        if length >> 63:
            raise OSError(errno.EFAULT, "")
        return self._guest.transfer_bytes(buffer, min(length, _MAX_BYTES), required)

    def _write(self, host: int, content: bytes) -> int:
        """Write to a host descriptor. A broken pipe sends SIGPIPE to the program."""
        try:
            return os.write(host, content)
        except BrokenPipeError:
            self._signals.send(SIGPIPE)
            raise
