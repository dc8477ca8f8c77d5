"""System calls that open files by path, and that report the status of files.

Ref: Linux fs/open.c, fs/stat.c, fs/readdir.c; include/uapi/asm-generic/{fcntl,stat}.h, include/uapi/linux/stat.h;
arch/arm64/include/uapi/asm/fcntl.h.
"""

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

__all__ = ["PathCalls"]

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW, _AT_EACCESS, _AT_EMPTY_PATH = 0x100, 0x200, 0x1000
_AT_NO_AUTOMOUNT, _AT_STATX_SYNC = 0x800, 0x6000  # accepted and ignored
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
"""Flags of AArch64 that affect a file opened for reading, and their values on the host."""

_DIRECTORY_BYTES = 1 << 16  # maximum result of one call of getdents64
_PROCESS_PATHS = re.compile(
    rf"(/proc/(self|thread-self|{PID})|/dev)/fd/(?P<number>[0-9]+)|/dev/(?P<stream>stdin|stdout|stderr)"
    rf"|/proc/(self|thread-self|{PID})(/(?P<file>.*))?"
)
_STANDARD_STREAMS = {"stdin": "0", "stdout": "1", "stderr": "2"}


class PathCalls:
    """System calls on paths. The program can read the files of the host. /proc/self refers to the program.

    Parameters
    ----------
    guest : Guest
    descriptors : Descriptors
    program : Path
        Path of the program, for /proc/self/exe.
    """

    def __init__(self, guest: Guest, descriptors: Descriptors, program: Path) -> None:
        self._guest = guest
        self._descriptors = descriptors
        self._program = program
        self._working: int | None = None  # host descriptor. None: the working directory of Spurtle
        self.calls: tuple[Call, ...] = (
            *(self.getcwd, self.chdir, self.fchdir, self.openat, self.getdents64, self.readlinkat),
            *(self.faccessat, self.faccessat2, self.newfstatat, self.fstat, self.statx),
        )

    def close(self) -> None:
        """Close the host descriptor of the working directory."""
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
        return self._set_working_directory(self._host_path(_AT_FDCWD, path, 0).open(os.O_PATH | os.O_DIRECTORY))

    def fchdir(self, descriptor: Int) -> int:
        return self._set_working_directory(
            HostPath(".", self._descriptors.host(descriptor)).open(os.O_PATH | os.O_DIRECTORY)
        )

    def _set_working_directory(self, directory: int) -> int:
        self.close()
        self._working = directory
        return 0

    # Access to files.

    def openat(self, directory: Int, path: int, flags: Int) -> int:
        file = self._host_path(directory, path, 0)
        if flags & (_O_ACCMODE | _O_CREAT | _O_TRUNC | _O_TMPFILE) and not file.is_null():
            raise NotEmulatedError(errno.EROFS, "to write a file")
        if flags & _O_DIRECT:
            raise NotEmulatedError(errno.EINVAL, "with O_DIRECT")
        host_flags = flags & _O_ACCMODE | os.O_NOCTTY | sum(host for bit, host in _OPEN_FLAGS.items() if flags & bit)
        return self._descriptors.add(file.open(host_flags), close_on_exec=bool(flags & O_CLOEXEC))

    def faccessat(self, directory: Int, path: int, mode: Int) -> int:
        return self.faccessat2(directory, path, mode, 0)

    def faccessat2(self, directory: Int, path: int, mode: Int, flags: Int) -> int:
        if mode & ~(os.R_OK | os.W_OK | os.X_OK) or flags & ~_ACCESS_FLAGS:
            return -errno.EINVAL
        file = self._host_path(directory, path, flags)
        file.stat()  # raises OSError if the file does not exist
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

    # Status of files.

    def newfstatat(self, directory: Int, path: int, buffer: int, flags: Int) -> int:
        if flags & ~_STAT_FLAGS:
            return -errno.EINVAL
        return self._stat(self._host_path(directory, path, flags).stat(), buffer)

    def fstat(self, descriptor: Int, buffer: int) -> int:
        return self._stat(os.fstat(self._descriptors.host(descriptor)), buffer)

    def statx(self, directory: Int, path: int, flags: Int, _mask: UInt, buffer: int) -> int:
        if flags & ~_STAT_FLAGS:
            return -errno.EINVAL
        status = self._host_path(directory, path, flags).stat()
        accessed, modified, changed = _times(status)
        devices = (split(device) for device in (status.st_rdev, status.st_dev) for split in (os.major, os.minor))
        self._guest.pack(
            "2IQ3IH2x4Q qI4x16x qI4x qI4x 4I 112x",
            buffer,
            *(_STATX_BASIC_STATS, status.st_blksize, 0, status.st_nlink, status.st_uid, status.st_gid, status.st_mode),
            *(status.st_ino, status.st_size, status.st_blocks, 0, *accessed, *changed, *modified, *devices),
        )
        return 0

    def _stat(self, status: os.stat_result, buffer: int) -> int:
        """Write `status` to `buffer` as a struct stat. Return the result of the system call."""
        self._guest.pack(
            "2Q4IQ8xqi4xq6q8x",
            buffer,
            *(
                status.st_dev,
                status.st_ino,
                status.st_mode,
                status.st_nlink,
                status.st_uid,
                status.st_gid,
                status.st_rdev,
            ),
            *(status.st_size, status.st_blksize, status.st_blocks, *chain(*_times(status))),
        )
        return 0

    # Lookup of paths.

    def _host_path(self, directory: int, path: int, flags: int) -> HostPath:
        """Return the host path of the file to which `directory` and the path at address `path` refer.

        `flags` are AT_EMPTY_PATH and AT_SYMLINK_NOFOLLOW.
        """
        name = self._guest.read_string(path)
        if not name and flags & _AT_EMPTY_PATH:
            name = "." if directory == _AT_FDCWD else f"/proc/self/fd/{self._descriptors.host(directory)}"
            return HostPath(name, self._working)
        absolute = name.startswith("/")
        base = self._working if absolute or directory == _AT_FDCWD else self._descriptors.host(directory)
        process_path = self._process_path(Path(name) if absolute else _folder(base) / name) if name else None
        return process_path or HostPath(name, base, not flags & _AT_SYMLINK_NOFOLLOW)

    def _process_path(self, path: Path) -> HostPath | None:
        """Return the host path of a file in /proc/self or /dev that depends on the process, or None for other files.

        On the host, `path` refers to the process of Spurtle.
        """
        match = _PROCESS_PATHS.fullmatch(os.path.normpath(path))
        if not match:
            return None
        if match["file"] == "exe":
            return HostPath(str(self._program), None)
        number = _STANDARD_STREAMS.get(match["stream"]) or match["number"]
        if number is None:
            raise NotEmulatedError(errno.ENOENT, f"on {path}")
        if not self._descriptors.is_open(int(number)):
            raise OSError(errno.ENOENT, "")
        return HostPath(f"/proc/self/fd/{self._descriptors.host(int(number))}", None)


def _folder(directory: int | None) -> Path:
    """Return the path of the directory of a host descriptor. None stands for the working directory of Spurtle."""
    return Path.cwd() if directory is None else Path(f"/proc/self/fd/{directory}").readlink()


def _times(status: os.stat_result) -> list[tuple[int, int]]:
    """Return seconds and nanoseconds of the last access, modification and change."""
    return [divmod(time, 10**9) for time in (status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns)]


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
