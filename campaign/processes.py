"""Runs of single tests, each in a pytest process with its own seed."""

import os
import secrets
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from xml.etree import ElementTree

from spurtle.support.errors import UserError

from .results import RunResult

__all__ = ["Run", "collect", "command_of"]

_PYTEST = (sys.executable, "-m", "pytest")
_CLEANUP_SECONDS = 10.0
"""Seconds that an interrupted test has to clean up."""


def collect(root: Path) -> list[str]:
    """Return the node ids of the long tier.

    Raises
    ------
    UserError
        If the long tier is empty, or if pytest cannot collect it.
    """
    command = [*_PYTEST, "--collect-only", "-q", "-m", "long"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode == 5:
        raise UserError("no test is marked `long`")
    if done.returncode:
        raise UserError(f"pytest cannot collect the tests:\n{(done.stdout + done.stderr).strip()}")
    return done.stdout.partition("\n\n")[0].splitlines()


def command_of(result: RunResult) -> str:
    """Return the command that repeats a test with its seed."""
    return f"SPURTLE_SEED={result.seed} .venv/bin/python -m pytest {shlex.quote(result.test)}"


def _commit(root: Path) -> str:
    """Return the commit that is checked out.

    Raises
    ------
    UserError
        If `root` is not in a Git repository with a commit.
    """
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"{root} must have a Git commit, which each result names: {done.stderr.strip()}")
    return done.stdout.strip()


class Run:
    """A running test with a fresh seed.

    Parameters
    ----------
    root : Path
        Root of the repository.
    folder : Path
        Folder of the log, which is kept only if the test fails.
    test : str
        Node id of pytest.

    Raises
    ------
    UserError
        If `root` has no commit, or `folder` cannot be written.
    """

    def __init__(self, root: Path, folder: Path, test: str):
        self.test = test
        self._root = root
        self._commit = _commit(root)
        self._seed = secrets.randbits(32)
        self._log = folder / f"{self._seed}.log"
        self._report = folder / f"{self._seed}.xml"
        self._start = monotonic()
        # In its own session, the test receives no interrupt of a terminal, and `end` reaches all its processes.
        # The report format xunit1 has the properties of a test; the schema of xunit2, the default, has none.
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with self._log.open("w") as log:
                self._process = subprocess.Popen(
                    [*_PYTEST, f"--junitxml={self._report}", "-o", "junit_family=xunit1", test],
                    cwd=root,
                    env={**os.environ, "SPURTLE_SEED": str(self._seed)},
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise UserError(f"cannot run a test in {folder}: {error.strerror}") from error

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return monotonic() - self._start

    @property
    def done(self) -> bool:
        """Whether pytest has exited."""
        return self._process.poll() is not None

    def result(self) -> RunResult:
        """Return the outcome, once `done`."""
        seconds = self.seconds
        outcome, figures, detail = self._outcome()
        if outcome == "failed":
            detail = f"{detail}; see {self._log.relative_to(self._root)}"
        self._clean(keep_log=outcome == "failed")
        return RunResult(
            test=self.test,
            commit=self._commit,
            seed=self._seed,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            seconds=round(seconds, 1),
            outcome=outcome,
            figures=figures,
            detail=detail,
        )

    def _outcome(self) -> tuple[str, dict[str, str], str]:
        status = self._process.returncode
        if status not in (0, 1) or not self._report.exists():
            return "failed", {}, f"pytest exited with status {status}"
        report = ElementTree.parse(self._report)
        figures = {entry.get("name", ""): entry.get("value", "") for entry in report.iter("property")}
        for kind, outcome in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
            if (found := report.find(f".//{kind}")) is not None:
                return outcome, figures, found.get("message", "").partition("\n")[0]
        if status:
            return "failed", figures, f"pytest exited with status {status}"
        return "passed", figures, ""

    def end(self) -> None:
        """Terminate the test, and delete its log and report."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_CLEANUP_SECONDS)
        self._clean(keep_log=False)

    def _clean(self, *, keep_log: bool) -> None:
        # Processes that the test has started may still run.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._report.unlink(missing_ok=True)
        if not keep_log:
            self._log.unlink(missing_ok=True)
