"""A file of the host, by its path."""

import os
import stat
from dataclasses import dataclass

__all__ = ["HostPath"]

_DEV_NULL = os.makedev(1, 3)


@dataclass(frozen=True, slots=True)
class HostPath:
    """A path on the host.

    Parameters
    ----------
    name : str
    directory : int or None
        Descriptor of the directory that a relative path starts at; None for the working directory of Spurtle.
    follow : bool
        Whether a symbolic link stands for its target.
    """

    name: str
    directory: int | None
    follow: bool = True

    def open(self, flags: int) -> int:
        """Return a new descriptor of the host."""
        return os.open(self.name, flags, dir_fd=self.directory)

    def stat(self) -> os.stat_result:
        """Return the facts of the file."""
        return os.stat(self.name, dir_fd=self.directory, follow_symlinks=self.follow)

    def allows(self, mode: int, *, effective: bool) -> bool:
        """Return whether real or effective user and group have the access `mode`."""
        return os.access(self.name, mode, dir_fd=self.directory, effective_ids=effective, follow_symlinks=self.follow)

    def target(self) -> str:
        """Return the content of the symbolic link."""
        return os.readlink(self.name, dir_fd=self.directory)

    def is_null(self) -> bool:
        """Return whether this is /dev/null."""
        try:
            found = self.stat()
        except FileNotFoundError:
            return False
        return stat.S_ISCHR(found.st_mode) and found.st_rdev == _DEV_NULL
