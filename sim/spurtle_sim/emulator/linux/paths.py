"""System calls that find files by their path, and say what they are."""

# Ref: Linux fs/open.c, fs/stat.c, fs/readdir.c; include/uapi/asm-generic/{fcntl,stat}.h, include/uapi/linux/stat.h;
# arch/arm64/include/uapi/asm/fcntl.h.

import ctypes
import errno
import os
import re
from functools import cache
from itertools import chain
from pathlib import Path

from ...perf.process import PID
from .descriptors import O_CLOEXEC, O_NONBLOCK, Descriptors
from .guest import Call, Guest, Int, NotEmulatedError, UInt
from .host import HostPath

__all__ = ["Paths"]

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW, _AT_EACCESS, _AT_EMPTY_PATH = 0x100, 0x200, 0x1000
_AT_NO_AUTOMOUNT, _AT_STATX_SYNC = 0x800, 0x6000  # the host decides
_STAT_FLAGS = _AT_SYMLINK_NOFOLLOW | _AT_NO_AUTOMOUNT | _AT_EMPTY_PATH | _AT_STATX_SYNC
_ACCESS_FLAGS = _AT_SYMLINK_NOFOLLOW | _AT_EACCESS | _AT_EMPTY_PATH
_STATX_BASIC_STATS = 0x7FF

_O_ACCMODE, _O_CREAT, _O_TRUNC, _O_DIRECT, _O_TMPFILE = 3, 0o100, 0o1000, 0o200000, 0o20000000
_OPEN_FLAGS = {
    O_NONBLOCK: os.O_NONBLOCK,
    0o40000: os.O_DIRECTORY,
    0o100000: os.O_NOFOLLOW,
    0o1000000: os.O_NOATIME,
    0o10000000: os.O_PATH,
}
"""Flags of AArch64 that matter to a file that is read, and the host's."""

_DIRECTORY_BYTES = 1 << 16  # of one call of getdents64
_OWN = re.compile(
    rf"(/proc/(self|thread-self|{PID})|/dev)/fd/(?P<number>[0-9]+)|/dev/(?P<stream>stdin|stdout|stderr)"
    rf"|/proc/(self|thread-self|{PID})(/(?P<file>.*))?"
)
_STANDARD = {"stdin": "0", "stdout": "1", "stderr": "2"}


class Paths:
    """Files of the host, to be read, by the names that it has. /proc/self is the program's own.

    Parameters
    ----------
    guest : Guest
    descriptors : Descriptors
    program : Path
        /proc/self/exe.
    """

    def __init__(self, guest: Guest, descriptors: Descriptors, program: Path) -> None:
        self._guest = guest
        self._descriptors = descriptors
        self._program = program
        self._working: int | None = None  # descriptor of the host; None: where Spurtle runs
        self.calls: tuple[Call, ...] = (
            *(self.getcwd, self.chdir, self.fchdir, self.openat, self.getdents64, self.readlinkat),
            *(self.faccessat, self.faccessat2, self.newfstatat, self.fstat, self.statx),
        )

    def close(self) -> None:
        """Close the working directory."""
        if self._working is not None:
            os.close(self._working)
            self._working = None

    # The working directory.

    def getcwd(self, buffer: int, length: int) -> int:
        content = os.fsencode(_folder(self._working)) + b"\0"
        if len(content) > length:
            return -errno.ERANGE
        self._guest.write(buffer, content)
        return len(content)

    def chdir(self, path: int) -> int:
        return self._enter(self._host_path(_AT_FDCWD, path, 0).open(os.O_PATH | os.O_DIRECTORY))

    def fchdir(self, descriptor: Int) -> int:
        return self._enter(HostPath(".", self._descriptors.host(descriptor)).open(os.O_PATH | os.O_DIRECTORY))

    def _enter(self, directory: int) -> int:
        self.close()
        self._working = directory
        return 0

    # Access.

    def openat(self, directory: Int, path: int, flags: Int) -> int:
        file = self._host_path(directory, path, 0)
        if flags & (_O_ACCMODE | _O_CREAT | _O_TRUNC | _O_TMPFILE) and not file.is_null():
            raise NotEmulatedError(errno.EROFS, "to write a file")
        if flags & _O_DIRECT:
            raise NotEmulatedError(errno.EINVAL, "with O_DIRECT")
        wanted = flags & _O_ACCMODE | os.O_NOCTTY | sum(host for bit, host in _OPEN_FLAGS.items() if flags & bit)
        return self._descriptors.add(file.open(wanted), close_on_exec=bool(flags & O_CLOEXEC))

    def faccessat(self, directory: Int, path: int, mode: Int) -> int:
        return self.faccessat2(directory, path, mode, 0)

    def faccessat2(self, directory: Int, path: int, mode: Int, flags: Int) -> int:
        if mode & ~(os.R_OK | os.W_OK | os.X_OK) or flags & ~_ACCESS_FLAGS:
            return -errno.EINVAL
        file = self._host_path(directory, path, flags)
        file.stat()  # for the error of a file that is absent
        if not file.allows(mode, effective=bool(flags & _AT_EACCESS)):
            return -errno.EACCES
        if mode & os.W_OK and not file.is_null():
            raise NotEmulatedError(errno.EROFS, "to write a file")
        return 0

    def readlinkat(self, directory: Int, path: int, buffer: int, length: Int) -> int:
        if length <= 0:
            return -errno.EINVAL
        file = self._host_path(directory, path, 0)
        target = str(self._program.resolve()) if file.name == str(self._program) else file.target()
        content = os.fsencode(target)[:length]
        self._guest.write(buffer, content)
        return len(content)

    def getdents64(self, descriptor: Int, buffer: int, length: UInt) -> int:
        content = ctypes.create_string_buffer(min(length, _DIRECTORY_BYTES))
        count = _libc().getdents64(self._descriptors.host(descriptor), content, len(content))
        if count < 0:
            return -ctypes.get_errno()
        self._guest.write(buffer, content.raw[:count])
        return count

    # Facts.

    def newfstatat(self, directory: Int, path: int, buffer: int, flags: Int) -> int:
        if flags & ~_STAT_FLAGS:
            return -errno.EINVAL
        return self._stat(self._host_path(directory, path, flags).stat(), buffer)

    def fstat(self, descriptor: Int, buffer: int) -> int:
        return self._stat(os.fstat(self._descriptors.host(descriptor)), buffer)

    def statx(self, directory: Int, path: int, flags: Int, _mask: UInt, buffer: int) -> int:
        if flags & ~_STAT_FLAGS:
            return -errno.EINVAL
        found = self._host_path(directory, path, flags).stat()
        accessed, modified, changed = _times(found)
        devices = (split(device) for device in (found.st_rdev, found.st_dev) for split in (os.major, os.minor))
        self._guest.pack(
            "2IQ3IH2x4Q qI4x16x qI4x qI4x 4I 112x",
            buffer,
            *(_STATX_BASIC_STATS, found.st_blksize, 0, found.st_nlink, found.st_uid, found.st_gid, found.st_mode),
            *(found.st_ino, found.st_size, found.st_blocks, 0, *accessed, *changed, *modified, *devices),
        )
        return 0

    def _stat(self, found: os.stat_result, buffer: int) -> int:
        """Write struct stat."""
        self._guest.pack(
            "2Q4IQ8xqi4xq6q8x",
            buffer,
            *(found.st_dev, found.st_ino, found.st_mode, found.st_nlink, found.st_uid, found.st_gid, found.st_rdev),
            *(found.st_size, found.st_blksize, found.st_blocks, *chain(*_times(found))),
        )
        return 0

    # Names.

    def _host_path(self, directory: int, path: int, flags: int) -> HostPath:
        """Return the file that a system call names; `flags` are AT_EMPTY_PATH and AT_SYMLINK_NOFOLLOW."""
        name = self._guest.text(path)
        if not name and flags & _AT_EMPTY_PATH:
            name = "." if directory == _AT_FDCWD else f"/proc/self/fd/{self._descriptors.host(directory)}"
            return HostPath(name, self._working)
        absolute = name.startswith("/")
        base = self._working if absolute or directory == _AT_FDCWD else self._descriptors.host(directory)
        own = self._own(Path(name) if absolute else _folder(base) / name) if name else None
        return own or HostPath(name, base, not flags & _AT_SYMLINK_NOFOLLOW)

    def _own(self, path: Path) -> HostPath | None:
        """Return the host's path of a file below /proc/self or /dev that is the program's own, not Spurtle's."""
        found = _OWN.fullmatch(os.path.normpath(path))
        if not found:
            return None
        if found["file"] == "exe":
            return HostPath(str(self._program), None)
        number = _STANDARD.get(found["stream"]) or found["number"]
        if number is None:
            raise NotEmulatedError(errno.ENOENT, f"on {path}")
        if not self._descriptors.is_open(int(number)):
            raise OSError(errno.ENOENT, "")
        return HostPath(f"/proc/self/fd/{self._descriptors.host(int(number))}", None)


def _folder(directory: int | None) -> Path:
    """Return the path of a descriptor of the host; None is the working directory of Spurtle."""
    return Path.cwd() if directory is None else Path(f"/proc/self/fd/{directory}").readlink()


def _times(found: os.stat_result) -> list[tuple[int, int]]:
    """Return seconds and nanoseconds of the last access, modification and change."""
    return [divmod(time, 10**9) for time in (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)]


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
