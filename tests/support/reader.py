"""Commands of a page in Markdown, run as its reader runs them."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.paths import ROOT

__all__ = ["Reader", "ShownCommand", "code_blocks", "reader_in_checkout", "shown_commands"]

_PORT = "/dev/pts/3"
"""Pseudo-terminal that pages name for a simulated board."""

_LINKED = ("boards", "docs", "sim")
"""Folders of the repository that commands read."""

_COPIED = "examples"
"""Folder of the repository in which commands write."""


class ShownCommand(NamedTuple):
    """A command of a page, the note behind its ` # `, and the lines of its output that the page shows."""

    command: str
    note: str
    lines: list[str]


def code_blocks(page: Path, language: str) -> list[str]:
    """Return the contents of the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def shown_commands(page: Path) -> list[ShownCommand]:
    """Return the commands of the `console` blocks of a page."""
    found: list[ShownCommand] = []
    for block in code_blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *lines = part.splitlines()
            command, _, note = line.partition(" # ")
            found.append(ShownCommand(command, note, [each for each in lines if each != "..."]))
    return found


def _plain(line: str) -> str:
    """Return the words of a line. perf 6.1 writes a memory level twice."""
    return re.sub(r"(\bL\d|\bN/A) or (?=\1)", "", " ".join(line.split()))


class Reader:
    """A shell in a folder, in which the environment of the tests is activated.

    Parameters
    ----------
    folder : Path
        Working directory.
    perf : str or None
        Path of the `perf` that the commands run.
    """

    def __init__(self, folder: Path, perf: str | None = None) -> None:
        self._folder = folder
        self._simulation: subprocess.Popen[str] | None = None
        self._port = _PORT
        commands = [os.fspath(Path(sys.executable).parent), os.environ["PATH"]]
        if perf is not None:
            (folder / "bin").mkdir()
            (folder / "bin" / "perf").symlink_to(perf)
            commands.insert(0, os.fspath(folder / "bin"))
        # GNU make would pass its options to the make of a command.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "VERILATOR"))}
        self._environment = {**inherited, "PATH": os.pathsep.join(commands), "PAGER": "cat"}

    def save_programs(self, page: Path) -> None:
        """Write each program of a page to the file that its first line names."""
        for language in ("c", "python"):
            for block in code_blocks(page, language):
                if name := re.match(r"(?:/\*|#) (\w+\.\w+)", block):
                    (self._folder / name[1]).write_text(block)

    def run(self, command: str) -> str:
        """Return the standard output and the standard error of a command. Its exit status must be zero."""
        run = subprocess.run(
            ["bash", "-c", command.replace(_PORT, self._port)],
            cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=1200, check=False,
        )  # fmt: skip
        assert run.returncode == 0, f"{command}: {run.stderr}"
        return run.stdout + run.stderr

    def check(self, shown: ShownCommand, *, compare: bool = True) -> None:
        """Run a command. Its output must contain each line that the page shows, unless not to `compare`.

        A line that ends with `...` is the beginning of one.
        """
        simulates = shown.command.startswith("python -m boards.simulate ")
        text = self._simulate(shown.command) if simulates else self.run(shown.command)
        output = "\n".join(map(_plain, text.splitlines()))
        for line in shown.lines if compare else ():
            start = _plain(line.removesuffix("...").replace(_PORT, self._port))
            pattern = f"^{re.escape(start)}{'' if line.endswith('...') else '$'}"
            assert re.search(pattern, output, re.MULTILINE), f"{shown.command}: {line!r} is not in\n{output}"

    def _simulate(self, command: str) -> str:
        """Start a simulated board in the background, and return what it prints until its port exists."""
        self.stop()
        self._simulation = subprocess.Popen(
            [sys.executable, *command.split()[1:]],
            cwd=self._folder, env={**self._environment, "PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True,
            # A shell that runs the tests in the background ignores SIGINT, and so would the simulation.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        assert self._simulation.stdout is not None
        text = ""
        for line in self._simulation.stdout:
            text += line
            if port := re.match(r"next: .* (/dev/\S+)$", line):
                self._port = port[1]
                return text
        raise AssertionError(f"{command} ended: {text}")

    def stop(self) -> None:
        """Press Ctrl-C in the shell of the simulated board, if there is one."""
        if self._simulation is None:
            return
        simulation, self._simulation = self._simulation, None
        simulation.send_signal(signal.SIGINT)
        try:
            text, _ = simulation.communicate(timeout=60)
        finally:
            simulation.kill()
        assert simulation.returncode == 0 and " cycles: " in text, text


@contextmanager
def reader_in_checkout(folder: Path, perf: str | None = None) -> Generator[Reader]:
    """Return a reader in a folder that has what a checkout and its `.venv` have for the commands of the pages."""
    for name in _LINKED:
        (folder / name).symlink_to(ROOT / name)
    ignored = shutil.ignore_patterns("spurtle", "simulation*", "*.bin", "*.log")
    shutil.copytree(ROOT / _COPIED, folder / _COPIED, ignore=ignored)
    (folder / ".venv").symlink_to(sys.prefix)
    reader = Reader(folder, perf)
    try:
        yield reader
    finally:
        reader.stop()
