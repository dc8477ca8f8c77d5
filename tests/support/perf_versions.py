"""The versions of Linux perf that read our files: what is here of them."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

__all__ = ["VERSIONS", "Perf", "require_perf"]

VERSIONS = {"6.1": r"6\.1\.", "6.12": r"6\.12\.", "newest": r"([789]|\d\d)\."}
"""What `perf version` has to begin with, by the name of the version: Debian's stable ones and that of its unstable."""

_CHATTER = re.compile(r"Old SPE metadata.*|unwind: target platform=.*|No kallsyms or vmlinux .*")
"""Lines on standard error that say nothing of a file: perf 7 calls the metadata old that 6.12 cannot do without."""


class Perf(NamedTuple):
    """One version."""

    version: str
    path: str

    def run(self, *arguments: object, stdin: str | Path = os.devnull) -> tuple[str, list[str]]:
        """Return the standard output, and the lines of standard error that say something of the file."""
        environment = {**os.environ, "PAGER": "cat"}
        with Path(stdin).open("rb") as source:
            run = subprocess.run(
                [self.path, *map(str, arguments)],
                capture_output=True, text=True, timeout=60, stdin=source, env=environment, check=False,
            )  # fmt: skip
        assert run.returncode == 0, run.stderr
        return run.stdout, [line for line in run.stderr.splitlines() if line and not _CHATTER.fullmatch(line)]

    def lines(self, *arguments: object, stdin: str | Path = os.devnull) -> list[str]:
        """Return the lines of the standard output that are neither empty nor comments."""
        return [
            line
            for line in self.run(*arguments, stdin=stdin)[0].splitlines()
            if line.strip() and not line.startswith("#")
        ]


@cache
def _found(version: str) -> Perf | None:
    path = shutil.which(os.environ.get(_variable(version), "perf"))
    if path is None:
        return None
    shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return Perf(version, path) if re.match(f"perf version {VERSIONS[version]}", shown) else None


def _variable(version: str) -> str:
    return f"SPURTLE_PERF_{version.upper().replace('.', '_')}"


def require_perf(version: str) -> Perf:
    """Return that version: what SPURTLE_PERF_6_12, for instance, names, or else `perf` if it is of that version. Skip
    the test if it is not here.
    """
    if (perf := _found(version)) is None:
        pytest.skip(f"perf {version} is not here: name it in {_variable(version)}")
    return perf
