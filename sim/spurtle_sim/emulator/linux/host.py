"""Host files, accessed by path."""

import os
import stat
from dataclasses import dataclass

__all__ = ["HostPath"]

_DEV_NULL = os.makedev(1, 3)


@dataclass(frozen=True, slots=True)
class HostPath:
    """Path of a host file.

    Parameters
    ----------
    name : str
    directory : int or None
        Host descriptor of the directory to which a relative path refers. None for the working directory of Spurtle.
    follow : bool
        Whether symbolic links are followed.
    """

    name: str
    directory: int | None
    follow: bool = True

    def open(self, flags: int) -> int:
        """Open the file. Return the host descriptor."""
        return os.open(self.name, flags, dir_fd=self.directory)

    def stat(self) -> os.stat_result:
        """Return the status of the file."""
        return os.stat(self.name, dir_fd=self.directory, follow_symlinks=self.follow)

    def allows(self, mode: int, *, effective: bool) -> bool:
        """Return whether the real, or the effective, user and group have access of `mode` to the file."""
        return os.access(self.name, mode, dir_fd=self.directory, effective_ids=effective, follow_symlinks=self.follow)

    def target(self) -> str:
        """Return the target of the symbolic link."""
        return os.readlink(self.name, dir_fd=self.directory)

    def is_null(self) -> bool:
        """Return whether the file is /dev/null."""
        try:
            status = self.stat()
        except FileNotFoundError:
            return False
        return stat.S_ISCHR(status.st_mode) and status.st_rdev == _DEV_NULL
