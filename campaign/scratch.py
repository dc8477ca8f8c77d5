"""Copies of the repository with a fault, and programs that run in them."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .faults import Mutant, applied

__all__ = ["Programs", "scratch"]


@contextmanager
def scratch(root: Path, files: Sequence[str], mutant: Mutant | None = None) -> Generator[Path]:
    """Copy files below `root` into a folder, the mutant in the place of its file; remove the folder at the end.

    Links lead to what the tests need and git does not hold: `.venv`, and the user's cache with the sources of Linux.
    Compiled circuits with a fault are removed with the folder, because no later run has a use for them.
    """
    with tempfile.TemporaryDirectory(prefix="spurtle-mutants-") as name:
        folder = Path(name)
        for file in files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / file, folder / file)
        if mutant is not None:
            (folder / mutant.file).write_text(applied(mutant, (folder / mutant.file).read_text()))
        if (root / ".venv").exists():
            (folder / ".venv").symlink_to(root / ".venv")
        cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
        (folder / ".cache" / "spurtle").mkdir(parents=True)
        for entry in (*cache.glob("*"), *cache.glob("spurtle/*")):
            if entry != cache / "spurtle":
                (folder / ".cache" / entry.relative_to(cache)).symlink_to(entry)
        (folder / ".tmp").mkdir()
        yield folder


class Programs:
    """Runs programs in scratch copies. `end` ends those that run, and no more are started."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._ended = False

    def python(self, folder: Path, *arguments: str) -> tuple[int, str]:
        """Run the interpreter in a scratch copy, on the packages in it; return its exit status and what it printed.

        All processes that it has started are ended with it.
        """
        # Before those that the environment has installed.
        path = os.pathsep.join(str(folder / part) for part in ("rtl", "sim"))
        environment = os.environ | {
            "PYTHONPATH": path,
            "XDG_CACHE_HOME": str(folder / ".cache"),
            "TMPDIR": str(folder / ".tmp"),
        }
        with (folder / "output").open("w+") as output:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            self._running.add(process)
            try:
                if self._ended:
                    _kill(process)
                process.wait()
            finally:
                self._running.discard(process)
                _kill(process)
            output.seek(0)
            return process.returncode, output.read()

    def end(self) -> None:
        """End all programs that run."""
        self._ended = True
        for process in list(self._running):
            _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """End what is left of a process's session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
