"""Temporary copies of the repository with a fault, and programs that run in them."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .faults import Mutant, apply

__all__ = ["Programs", "scratch"]


@contextmanager
def scratch(root: Path, files: Sequence[str], mutant: Mutant | None = None) -> Generator[Path]:
    """Copy files below `root` into a temporary folder, with the fault of the mutant in its file.

    The folder has links to files that the tests need and that git does not track: `.venv`, and the user's cache with
    the sources of Linux. Compiled circuits with a fault are deleted with the folder, because no later run uses them.
    """
    with tempfile.TemporaryDirectory(prefix="spurtle-mutants-") as name:
        folder = Path(name)
        for file in files:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / file, folder / file)
        if mutant is not None:
            (folder / mutant.file).write_text(apply(mutant, (folder / mutant.file).read_text()))
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
    """Programs that run in scratch copies. After `end`, no program runs or is started."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._ended = False

    def python(self, folder: Path, *arguments: str) -> tuple[int, str]:
        """Run Python in a scratch copy, with the packages of the copy; return its exit status and output.

        Processes that it has started are killed when it exits.
        """
        # PYTHONPATH has priority over the packages that are installed in the environment.
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
        """Kill all running programs, and start no more."""
        self._ended = True
        for process in list(self._running):
            _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill the remaining processes of a session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
