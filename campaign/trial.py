"""Trials of mutants in scratch copies: whether they are equivalent, and whether tests catch them."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from spurtle.support.errors import UserError

from .faults import Mutant, is_model
from .mutant_plugin import CURRENT_TEST, TIMED_OUT
from .report import Difference, Effect, MutantResult, MutantState
from .scratch import Programs, scratch
from .selection import imports, reachable, tests_of

__all__ = ["Trial", "commit_of", "tracked"]

_FAILED, _INTERRUPTED, _INTERNAL, _USAGE, _NO_TESTS = range(1, 6)
"""Exit statuses of pytest: tests failed, a module could not be collected, internal error, wrong usage, no test ran.

A mutant whose tests fail, or cannot be collected, is caught.
"""

_PYTEST = ("-m", "pytest", "-q", "-x")

_FAULT_LIST = "campaign/fault_list.py"

_STATES = {"fast": (MutantState.CAUGHT, MutantState.OPEN), "full": (MutantState.ONLY_FULL, MutantState.MISSED)}
"""State of a mutant by tier: if a test fails, and if none fails."""


def tracked(root: Path) -> list[str]:
    """Return the files of the repository, except those that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in set(listed.split("\0")) if name and (root / name).is_file())


def commit_of(root: Path, *, clean: bool) -> str:
    """Return the commit that is checked out.

    Raises
    ------
    UserError
        If `clean` is set and the working tree differs from the commit.
    """

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    if clean and git("status", "--porcelain"):
        raise UserError("changed files must be committed before results are published, because these name the commit")
    return git("rev-parse", "--short=8", "HEAD")


class Trial:
    """Trial of mutants in copies of a repository.

    Parameters
    ----------
    root : Path
    folder : Path
        Folder for the netlists without a fault.

    Attributes
    ----------
    code, tree : str
        Hashes of the files that decide whether a mutant is equivalent, and of all files.
    """

    def __init__(self, root: Path, folder: Path):
        self._root = root
        self._folder = folder
        self._files = tracked(root)
        self._imported = imports(root, self._files)
        self._programs = Programs()
        self.code = self._digest(reachable("campaign/equivalence.py", self._imported))
        self.tree = self._digest(self._files)

    def _digest(self, files: Iterable[str]) -> str:
        digest = hashlib.sha256()
        for file in sorted(files):
            digest.update(f"{file}\0".encode() + hashlib.sha256((self._root / file).read_bytes()).digest())
        return digest.hexdigest()

    def end(self) -> None:
        """Kill all running programs, and start no more."""
        self._programs.end()

    def prepare(self) -> None:
        """Write the netlists without a fault, unless they exist."""
        if self._netlists.exists():
            return
        shutil.rmtree(self._netlists.parent, ignore_errors=True)
        self._netlists.parent.mkdir(parents=True)
        with scratch(self._root, self._files) as copy:
            status, printed = self._programs.python(copy, "-m", "campaign.equivalence", "netlists")
            if status:
                raise UserError(f"the designs cannot be elaborated without a fault: {_last(printed)}")
            shutil.move(copy / "netlists", self._netlists)

    @property
    def _netlists(self) -> Path:
        return self._folder / "netlists" / self.code[:16]

    def compare(self, mutant: Mutant) -> Difference:
        """Return the effect of the fault, as far as it can be determined without tests.

        Raises
        ------
        UserError
            If the comparison fails.
        """
        module = "campaign.equivalence"
        if is_model(mutant.file):
            module = ".".join(Path(mutant.file).with_suffix("").parts[1:])
        with scratch(self._root, self._files, mutant) as copy:
            status, _ = self._programs.python(copy, "-c", f"import {module}")
            if status:
                return Difference(Effect.ILLEGAL, "it cannot be imported")
            if is_model(mutant.file):
                return Difference(Effect.DIFFERENT, "")
            report = copy / "difference.json"
            status, printed = self._programs.python(copy, "-m", module, str(self._netlists), report.name)
            if status:
                raise UserError(f"the comparison of {mutant} failed: {_last(printed)}")
            found = json.loads(report.read_text())
            return Difference(Effect(found["effect"]), found["reason"])

    def tests(self, file: str) -> list[str]:
        """Return the test modules that import or start a file, the nearest first.

        Tests of the campaign are excluded: they compare the code with the texts of the faults, and would therefore
        catch each fault of `faults.toml`.
        """
        return [test for test in tests_of(file, self._imported) if _FAULT_LIST not in reachable(test, self._imported)]

    def test(self, mutant: Mutant, tier: str, first: str = "") -> MutantResult:
        """Run the tests of a tier that import or start the file of the mutant, the nearest first, until one fails.

        Parameters
        ----------
        mutant : Mutant
        tier : str
        first : str
            Test whose module runs before the others.
        """
        tests = self.tests(mutant.file)
        tests.sort(key=lambda test: test != first.partition("::")[0])
        with scratch(self._root, self._files, mutant) as copy:
            status, printed = self._programs.python(copy, *_PYTEST, "-p", "campaign.mutant_plugin", "-m", tier, *tests)
            current = copy / CURRENT_TEST
            test = current.read_text() if current.exists() else ""
        if status in (0, _NO_TESTS):
            return MutantResult(_STATES[tier][1])
        if status in (_INTERNAL, _USAGE):
            raise UserError(f"pytest cannot be run on {mutant}: {_last(printed)}")
        return MutantResult(_STATES[tier][0], test, ended=status != TIMED_OUT)

    def check(self, mutants: Sequence[Mutant], tier: str) -> None:
        """Run the tests of the mutants on the code without a fault: a test that fails here would catch every mutant.

        Raises
        ------
        UserError
            If a test fails.
        """
        tests = sorted({test for mutant in mutants for test in self.tests(mutant.file)})
        cores = str(os.cpu_count() or 1)
        with scratch(self._root, self._files) as copy:
            status, printed = self._programs.python(copy, *_PYTEST, "-n", cores, "-m", tier, *tests)
        if status not in (0, _NO_TESTS):
            raise UserError(f"the {tier} tier fails without a fault: {_last(printed)}")


def _last(printed: str) -> str:
    return "\n".join(printed.splitlines()[-8:])
