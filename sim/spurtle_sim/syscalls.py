"""The few Linux system calls that a small static program makes, answered the same way at each run."""

# Ref: Linux include/uapi/asm-generic/unistd.h (the numbers of AArch64) and errno-base.h.

import errno
import os
import random
import stat
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import unicorn
from unicorn.unicorn import Uc, UcError

__all__ = ["PAGE", "Kernel"]

PAGE = 4096
_MEMORY_LIMIT = 1 << 30
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4
_MAP_FIXED, _MAP_ANONYMOUS = 0x10, 0x20
_AT_FDCWD, _AT_EMPTY_PATH = 2**32 - 100, 0x1000
_PID = 1000
_SIGNAL_STATUS = 128


class Kernel:
    """Memory, files and the odd question of one process.

    The standard streams are the host's, its files can be read, nothing else of it can be seen. Time is what `now` says
    and random bytes come from a seed, so that a run can be repeated.

    Parameters
    ----------
    uc : Uc
        Holds the memory of the process.
    path : Path
        The program, for /proc/self/exe.
    end : int
        First address after the program: the heap starts on the next page.
    now : callable
        Nanoseconds since the program started.
    seed : int
        Of the random numbers.
    mapped : callable
        Receives start, length, protection and name of memory that the program has asked for.

    Attributes
    ----------
    exit_status : int or None
        As `wait` reports it: 128 + signal after a fatal signal. None while the program runs.
    """

    def __init__(
        self,
        uc: Uc,
        *,
        path: Path,
        end: int,
        now: Callable[[], int],
        seed: int,
        mapped: Callable[[int, int, int, str], None] = lambda *_: None,
    ) -> None:
        self.exit_status: int | None = None
        self._uc = uc
        self._path = path
        self._now = now
        self._report = mapped
        self._random = random.Random(seed)
        self._break = self._heap = self._heap_end = -(-end // PAGE) * PAGE
        self._next_mapping = 0x7000_0000_0000
        self._mapped = 0
        self._files: dict[int, int] = {}
        self._unknown: set[int] = set()
        self._calls: dict[int, Callable[..., int]] = {
            23: self._not_there,  # dup
            25: lambda *_: 0,  # fcntl
            29: lambda *_: -errno.ENOTTY,  # ioctl: no stream is a terminal
            48: self._faccessat,
            56: self._openat,
            57: self._close,
            62: self._lseek,
            63: self._read,
            64: self._write,
            66: self._writev,
            71: self._not_there,  # sendfile: programs read and write instead
            78: self._readlinkat,
            79: self._newfstatat,
            80: self._fstat,
            93: self._exit,
            94: self._exit,  # exit_group
            96: lambda *_: _PID,  # set_tid_address
            98: lambda *_: 0,  # futex: nobody else could wait or wake
            99: lambda *_: 0,  # set_robust_list
            113: self._clock_gettime,
            129: self._signal,  # kill
            130: self._signal,  # tkill
            131: lambda _group, pid, number, *_: self._signal(pid, number),  # tgkill
            132: lambda *_: 0,  # sigaltstack
            134: lambda *_: 0,  # rt_sigaction: no signal is ever delivered
            135: self._rt_sigprocmask,
            144: lambda *_: 0,  # setgid: to what it is
            146: lambda *_: 0,  # setuid
            160: self._uname,
            167: self._not_there,  # prctl
            169: self._gettimeofday,
            172: lambda *_: _PID,  # getpid
            173: lambda *_: 1,  # getppid
            174: lambda *_: _PID,  # getuid
            175: lambda *_: _PID,  # geteuid
            176: lambda *_: _PID,  # getgid
            177: lambda *_: _PID,  # getegid
            178: lambda *_: _PID,  # gettid
            179: self._not_there,  # sysinfo
            214: self._brk,
            215: self._munmap,
            216: self._not_there,  # mremap: realloc copies instead
            222: self._mmap,
            226: self._mprotect,
            233: lambda *_: 0,  # madvise
            261: self._prlimit64,
            278: self._getrandom,
            293: self._not_there,  # rseq
        }

    def call(self, number: int, arguments: tuple[int, ...]) -> int:
        """The result of system call `number`, negative for an errno. Unknown calls are named once on standard error."""
        handler = self._calls.get(number)
        if handler is None:
            if number not in self._unknown:
                self._unknown.add(number)
                print(f"spurtle: the program made system call {number}, which is not there (ENOSYS)", file=sys.stderr)
            return -errno.ENOSYS
        try:
            return handler(*arguments)
        except OSError as error:
            return -(error.errno or errno.EIO)
        except UcError:
            return -errno.EFAULT

    def close(self) -> None:
        """Close the host files that the program left open."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()

    def _not_there(self, *_: int) -> int:
        return -errno.ENOSYS

    # Process.

    def _exit(self, status: int, *_: int) -> int:
        self.exit_status = status & 0xFF
        return 0

    def _signal(self, _pid: int, number: int, *_: int) -> int:
        if number:
            self.exit_status = _SIGNAL_STATUS + number
        return 0

    def _rt_sigprocmask(self, _how: int, _new: int, old: int, size: int, *_: int) -> int:
        if old:
            self._uc.mem_write(old, bytes(size))
        return 0

    def _uname(self, buffer: int, *_: int) -> int:
        fields = ("Linux", "spurtle", "6.1.0", "#1", "aarch64", "(none)")
        self._uc.mem_write(buffer, b"".join(field.encode().ljust(65, b"\0") for field in fields))
        return 0

    def _prlimit64(self, _pid: int, resource: int, _new: int, old: int, *_: int) -> int:
        stack = 3
        if old:
            self._uc.mem_write(old, struct.pack("<2Q", *((8 << 20,) * 2 if resource == stack else (2**64 - 1,) * 2)))
        return 0

    def _getrandom(self, buffer: int, length: int, *_: int) -> int:
        self._uc.mem_write(buffer, self._random.randbytes(length))
        return length

    def _clock_gettime(self, _clock: int, buffer: int, *_: int) -> int:
        self._uc.mem_write(buffer, struct.pack("<2q", *divmod(self._now(), 10**9)))
        return 0

    def _gettimeofday(self, buffer: int, *_: int) -> int:
        seconds, nanoseconds = divmod(self._now(), 10**9)
        self._uc.mem_write(buffer, struct.pack("<2q", seconds, nanoseconds // 1000))
        return 0

    # Memory.

    def _brk(self, wanted: int, *_: int) -> int:
        if self._heap <= wanted <= self._heap + _MEMORY_LIMIT:
            end = -(-wanted // PAGE) * PAGE
            if end > self._heap_end:
                self._uc.mem_map(self._heap_end, end - self._heap_end, unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
                self._heap_end = end
                self._report(self._heap, end - self._heap, _PROT_READ | _PROT_WRITE, "[heap]")
            self._break = wanted
        return self._break

    def _mmap(self, _address: int, length: int, protection: int, flags: int, *_: int) -> int:
        size = -(-length // PAGE) * PAGE
        if not size or flags & _MAP_FIXED:
            return -errno.EINVAL
        if protection & _PROT_EXEC:
            return -errno.EACCES
        if not flags & _MAP_ANONYMOUS:
            return -errno.ENODEV
        if self._mapped + size > _MEMORY_LIMIT:
            return -errno.ENOMEM
        address = self._next_mapping
        self._uc.mem_map(address, size, _protection(protection))
        self._mapped += size
        self._report(address, size, protection, "//anon")
        self._next_mapping += size + PAGE  # a hole behind each mapping: overruns crash
        return address

    def _munmap(self, address: int, length: int, *_: int) -> int:
        size = -(-length // PAGE) * PAGE
        self._uc.mem_unmap(address, size)
        self._mapped -= size
        return 0

    def _mprotect(self, address: int, length: int, protection: int, *_: int) -> int:
        if protection & _PROT_EXEC:
            return -errno.EACCES
        self._uc.mem_protect(address, -(-length // PAGE) * PAGE, _protection(protection))
        return 0

    # Files.

    def _text(self, address: int) -> str:
        """The string at `address`."""
        found = bytearray()
        while not found.endswith(b"\0"):
            found += self._uc.mem_read(address + len(found), 1)
        return os.fsdecode(bytes(found[:-1]))

    def _host(self, descriptor: int) -> int:
        """The host's descriptor: standard streams are themselves."""
        if descriptor in (0, 1, 2):
            return descriptor
        if descriptor not in self._files:
            raise OSError(errno.EBADF, "")
        return self._files[descriptor]

    def _directory(self, descriptor: int) -> int | None:
        """What `dir_fd` of the host's calls wants."""
        return None if descriptor & 0xFFFF_FFFF == _AT_FDCWD else self._host(descriptor)

    def _faccessat(self, directory: int, path: int, mode: int, *_: int) -> int:
        if mode & os.W_OK:
            return -errno.EROFS
        return 0 if os.access(self._text(path), mode, dir_fd=self._directory(directory)) else -errno.ENOENT

    def _openat(self, directory: int, path: int, flags: int, *_: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return -errno.EROFS
        descriptor = next(number for number in range(3, 1024) if number not in self._files)
        self._files[descriptor] = os.open(self._text(path), os.O_RDONLY, dir_fd=self._directory(directory))
        return descriptor

    def _close(self, descriptor: int, *_: int) -> int:
        if descriptor > 2:
            os.close(self._host(descriptor))
            del self._files[descriptor]
        return 0

    def _lseek(self, descriptor: int, offset: int, whence: int, *_: int) -> int:
        if descriptor <= 2:
            return -errno.ESPIPE
        return os.lseek(self._host(descriptor), _signed(offset), whence)

    def _read(self, descriptor: int, buffer: int, length: int, *_: int) -> int:
        content = os.read(self._host(descriptor), length)
        self._uc.mem_write(buffer, content)
        return len(content)

    def _write(self, descriptor: int, buffer: int, length: int, *_: int) -> int:
        if descriptor not in (1, 2):
            return -errno.EBADF
        content = bytes(self._uc.mem_read(buffer, length))
        written = 0
        while written < length:
            written += os.write(descriptor, content[written:])
        return length

    def _writev(self, descriptor: int, vectors: int, count: int, *_: int) -> int:
        total = 0
        for index in range(count):
            address, length = struct.unpack("<2Q", self._uc.mem_read(vectors + 16 * index, 16))
            result = self._write(descriptor, address, length)
            if result < 0:
                return result
            total += result
        return total

    def _readlinkat(self, _directory: int, path: int, buffer: int, length: int, *_: int) -> int:
        if self._text(path) != "/proc/self/exe":
            return -errno.EINVAL
        content = os.fsencode(self._path)[:length]
        self._uc.mem_write(buffer, content)
        return len(content)

    def _newfstatat(self, directory: int, path: int, buffer: int, flags: int, *_: int) -> int:
        name = self._text(path)
        if not name and flags & _AT_EMPTY_PATH:
            return self._fstat(directory, buffer)
        return self._stat(os.stat(name, dir_fd=self._directory(directory)), buffer)

    def _fstat(self, descriptor: int, buffer: int, *_: int) -> int:
        return self._stat(None if descriptor in (0, 1, 2) else os.fstat(self._host(descriptor)), buffer)

    def _stat(self, found: os.stat_result | None, buffer: int) -> int:
        """struct stat, as far as reading the file needs it. A standard stream is a character device, whatever it is."""
        mode, size = (found.st_mode, found.st_size) if found else (stat.S_IFCHR | 0o620, 0)
        fields = struct.pack("<2Q4I2Qq2i8q", 0, 1, mode, 1, _PID, _PID, 0, 0, size, PAGE, 0, -(-size // 512), *[0] * 7)
        self._uc.mem_write(buffer, fields)
        return 0


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _protection(linux: int) -> int:
    """Unicorn's word for PROT_READ and PROT_WRITE: the same bits."""
    return linux & (unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
