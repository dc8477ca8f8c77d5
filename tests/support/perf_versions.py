"""The versions of Linux perf that read the files of `spurtle profile`, as far as this machine has them."""

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
"""Beginnings of the numbers that `perf --version` prints, as patterns: those of Debian stable and unstable."""

_CHATTER = re.compile(r"Old SPE metadata.*|unwind: target platform=.*|No kallsyms or vmlinux .*")
"""Lines on standard error that are not about a file. perf 7 warns of the old metadata, which perf 6.12 requires."""


class Perf(NamedTuple):
    """An installed version of perf."""

    version: str
    path: str

    def run(self, *arguments: object, stdin: str | Path = os.devnull) -> tuple[str, list[str]]:
        """Return the standard output, and the lines of standard error that are about the file."""
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
    """Return a version of perf. Skip the test if this machine does not have it.

    The environment names the program, in SPURTLE_PERF_6_12 for instance. The default is `perf`, if its version matches.
    """
    if (perf := _found(version)) is None:
        pytest.skip(f"perf {version} is not installed; {_variable(version)} in the environment can name it")
    return perf
