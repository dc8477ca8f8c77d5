"""Mutants: the draw, equivalence, the selection of tests, and the report."""

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from campaign import mutants as command
from campaign import selection
from campaign.draw import draw
from campaign.equivalence import compare, netlist
from campaign.fault_list import listed_mutants
from campaign.faults import Mutant, MutantError, MutantKind, apply, mutants_of, sources
from campaign.mutants import Campaign, main
from campaign.report import Difference, Effect, MutantResult, MutantState, Report, publish, table
from campaign.trial import Trial, commit_of
from spurtle.support.errors import UserError
from tests.support.paths import ROOT

# The faults.

GATEWARE = """\
__all__ = ["Block"]
class Block(wiring.Component):
    def block(self, m, width: int = 3):
        if width > 8:
            raise ValueError(f"width must be at most {8 + 0}")
        count = Signal(width, init=2)
        last = Signal()
        m.d.sync += [
            count.eq(count - 1),
            last.eq(~(count[0])),
        ]
        m.d.comb += self.o.eq(Mux(last, count, 0))
        with m.If(count < self.most):
            m.next = "IDLE"
        self.both = self.one and last == 0
"""

FAULTS = {
    MutantKind.OPERATOR: [
        "count.eq(count + 1),",
        "last.eq((count[0])),",
        "with m.If(count <= self.most):",
        "self.both = self.one or last == 0",
        "self.both = self.one and last != 0",
    ],
    MutantKind.CONSTANT: [
        "def block(self, m, width: int = 4):",
        "count = Signal(width, init=3)",
        "count.eq(count - 0),",
        "m.d.comb += self.o.eq(Mux(last, count, 1))",
        "self.both = self.one and last == 1",
    ],
    MutantKind.WIDTH: ["count = Signal(width - 1, init=2)", "last.eq(~(count[1])),"],
    MutantKind.SWAP: [
        "count.eq(1 - count),",
        "m.d.comb += self.o.eq(Mux(last, 0, count))",
        "with m.If(self.most < count):",
    ],
    MutantKind.ASSIGNMENT: ["*(),", "*(),", "pass", "pass", "pass"],
    MutantKind.RESET: [
        "count = Signal(width)",
        "count = Signal(width, init=2, reset_less=True)",
        "last = Signal(reset_less=True)",
    ],
}


def changed(source: str, mutant: Mutant) -> list[str]:
    """Return the lines of the mutant that differ."""
    lines = zip(source.splitlines(), apply(mutant, source).splitlines(), strict=True)
    return [new.strip() for old, new in lines if old != new]


def test_each_kind_of_fault_is_found_only_in_behavior() -> None:
    found = mutants_of("block.py", GATEWARE)
    assert {kind: [changed(GATEWARE, mutant) for mutant in mutants] for kind, mutants in found.items()} == {
        kind: [[line] for line in lines] for kind, lines in FAULTS.items()
    }


def test_repeated_text_is_extended_until_it_is_unique() -> None:
    mutants = mutants_of("twice.py", "a = 2\nb = x[i]\nc = 3\nb = x[i]\n\ndef f(x):\n    return x + y\n\ny = x + y\n")
    assert [mutant.text for mutant in mutants[MutantKind.OPERATOR]] == ["return x + y", "y = x + y"]
    message = r"twice\.py must contain the text of a mutant once, not 2 times: 'b = x\[i\]'"
    with pytest.raises(MutantError, match=message):
        apply(Mutant("twice.py", "b = x[i]", ""), "b = x[i]\nb = x[i]\n")
    repeated = "if a:\n    x += 1\nif b:\n    x += 1\n"
    assert [mutant.text for mutant in mutants_of("twice.py", repeated)[MutantKind.OPERATOR]] == [
        "if a:\n    x += 1",
        "if b:\n    x += 1",
    ]


def all_legal(mutants: Sequence[Mutant]) -> Sequence[Mutant]:
    return mutants


def test_draw_has_every_kind_and_each_mutant_changes_one_line() -> None:
    drawn = draw(ROOT, 60, 1, all_legal)
    assert {kind: [*drawn.values()].count(kind) for kind in MutantKind} == dict.fromkeys(MutantKind, 10)
    assert len({mutant.file for mutant in drawn}) > len(sources(ROOT)) // 3
    for mutant in drawn:
        source = (ROOT / mutant.file).read_text()
        assert len(changed(source, mutant)) == 1
        ast.parse(apply(mutant, source))


def test_draw_depends_on_the_seed_and_replaces_illegal_mutants() -> None:
    drawn = [*draw(ROOT, 12, 1, all_legal)]
    assert drawn == [*draw(ROOT, 12, 1, all_legal)]
    assert drawn != [*draw(ROOT, 12, 2, all_legal)]
    illegal = {*drawn[::2]}
    others = draw(ROOT, 12, 1, lambda mutants: [mutant for mutant in mutants if mutant not in illegal])
    assert len(others) == 12
    assert {*drawn[1::2]} < {*others}


def test_listed_faults_fit_the_code(tmp_path: Path) -> None:
    assert listed_mutants(ROOT, "named")
    assert not {*listed_mutants(ROOT, "named")} & {*listed_mutants(ROOT, "equivalent")}
    with pytest.raises(UserError, match=r"campaign/faults\.toml does not fit the code: .*rtl/spurtle/\S+\.py"):
        listed_mutants(tmp_path, "named")


def test_tests_of_the_campaign_are_excluded(tmp_path: Path) -> None:
    """They would catch each fault of `faults.toml`, because its text does not occur in the code of the mutant."""
    tests = Trial(ROOT, tmp_path).tests("rtl/spurtle/gateware/spu.py")
    assert "tests/gateware/test_spu.py" in tests
    assert "tests/campaign/test_mutants.py" not in tests


# Equivalent mutants.


class Inner(wiring.Component):
    def __init__(self, edit: str):
        self._edit = edit
        super().__init__({"a": In(2), "b": In(2), "o": Out(3)})

    def elaborate(self, platform):
        m = Module()
        register = Signal(3, init=5 if self._edit == "other init" else 4, reset_less=self._edit == "no reset")
        unread = Signal()
        match self._edit:
            case "same":
                m.d.sync += register.eq(self.a + self.b + 0)
            case "difference":
                m.d.sync += register.eq(self.a - self.b)
            case _:
                m.d.sync += register.eq(self.a + self.b)
        m.d.comb += [self.o.eq(register), unread.eq(self.a == (1 if self._edit == "unread" else 2))]
        return m


class Outer(wiring.Component):
    def __init__(self, edit: str = ""):
        self._edit = edit
        super().__init__({"a": In(2), "o": Out(2 if edit == "narrow" else 3)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = Inner(self._edit)
        m.d.comb += [inner.a.eq(self.a), self.o.eq(inner.o)]
        m.d.comb += inner.b.eq(self.a[0] if self._edit == "outer" else self.a)
        return m


@pytest.mark.parametrize(
    ("edit", "difference"),
    [
        ("", Difference(Effect.EQUIVALENT, "")),
        ("same", Difference(Effect.EQUIVALENT, r"\top.inner is proved to be equivalent")),
        ("unread", Difference(Effect.EQUIVALENT, r"\top.inner is proved to be equivalent")),
        ("difference", Difference(Effect.DIFFERENT, r"\top.inner differs")),
        ("no reset", Difference(Effect.DIFFERENT, r"\top.inner differs")),
        ("other init", Difference(Effect.DIFFERENT, r"\top.inner differs")),
        ("outer", Difference(Effect.DIFFERENT, r"\top differs")),
        ("narrow", Difference(Effect.DIFFERENT, r"\top differs")),
    ],
)
def test_difference_is_found_in_the_smallest_module(edit: str, difference: Difference) -> None:
    assert compare(netlist(Outer()), netlist(Outer(edit))) == difference


# Selection of tests.


def project(root: Path, files: dict[str, str]) -> Path:
    """Write files and commit them to a Git repository."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run([*git, *arguments], cwd=root, check=True)
    return root


def test_tests_that_reach_a_file_are_selected_nearest_first(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nscripts = {block = "pack.command:main"}\n',
        "rtl/pack/__init__.py": "",
        "rtl/pack/block.py": "from . import types\n",
        "rtl/pack/types.py": "",
        "rtl/pack/command.py": "def main():\n    from pack.block import Block\n",
        "tests/helper.py": "import pack.block\n",
        "tests/process.py": "from pack import block\n",
        "tests/test_block.py": "from pack.block import Block\n",
        "tests/test_everything.py": "from pack import block, types\nfrom tests import helper\n",
        "tests/test_helper.py": "from tests.helper import help\n",
        "tests/test_command.py": "run(['block', '--help'])\n",
        "tests/test_process.py": "start('tests.process')\n",
        "tests/test_types.py": "from pack import types\n",
    }
    project(tmp_path, files)
    imported = selection.imports(tmp_path, files)
    assert selection.tests_of("rtl/pack/block.py", imported) == [
        f"tests/test_{name}.py" for name in ("block", "everything", "command", "helper", "process")
    ]
    assert "tests/test_types.py" in selection.tests_of("rtl/pack/types.py", imported)


# Complete runs, on a project whose model is an adder.

MODEL = "sim/spurtle_sim/model/adder.py"
ADDER = """\
def add(a, b):
    while a > 100:
        a = 100
    return a + b

def negate(a):
    return 0 - a

def unused(a):
    return a + 3

def broken(a, b=2):
    return a
"""
TESTS = """\
import pytest
from spurtle_sim.model.adder import add, negate

def test_add(): assert add(1, 2) == 3

def test_much(): assert add(200, 2) == 102

@pytest.mark.full
def test_negate(): assert negate(3) == -3
"""
FAST_MARK = """\
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if not item.get_closest_marker("full"):
            item.add_marker("fast")
"""


EQUIVALENCE = """\
import sys, pathlib

if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).mkdir()  # a comparison fails, because the folder exists
"""
OPTIONS = """\
[tool.pytest.ini_options]
markers = ["fast", "full"]
addopts = "-p xdist.plugin"
"""


@pytest.fixture
def adder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    # Plugins take most of the time of a short run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    plugin = (ROOT / "campaign" / "mutant_plugin.py").read_text()
    assert "_SECONDS = 900.0" in plugin
    return project(
        tmp_path / "project",
        {
            "pyproject.toml": OPTIONS,
            "campaign/__init__.py": "",
            "campaign/mutant_plugin.py": plugin.replace("_SECONDS = 900.0", "_SECONDS = 2.0"),
            "campaign/equivalence.py": EQUIVALENCE,
            "sim/spurtle_sim/__init__.py": "",
            "sim/spurtle_sim/model/__init__.py": "",
            MODEL: ADDER,
            "tests/conftest.py": FAST_MARK,
            "tests/test_adder.py": TESTS,
        },
    )


CAUGHT = Mutant(MODEL, "return a + b", "return a - b")
ENDLESS = Mutant(MODEL, "a = 100", "pass")
ONLY_FULL = Mutant(MODEL, "return 0 - a", "return 1 - a")
MISSED = Mutant(MODEL, "return a + 3", "return a - 3")
ILLEGAL = Mutant(MODEL, "def broken(a, b=2):", "def broken(a=1, b):")
LEGAL = [CAUGHT, ENDLESS, ONLY_FULL, MISSED]


def campaign(root: Path, folder: Path) -> tuple[Campaign, Report]:
    trial = Trial(root, folder)
    report = Report(1, commit_of(root, clean=True), trial.code, trial.tree)
    report.resume(folder / "report.json")
    return Campaign(trial, report, folder / "report.json"), report


@pytest.mark.long
def test_run_reports_what_each_tier_catches_and_is_resumed(
    adder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "output"
    run, report = campaign(adder, folder)
    assert run.compare([*LEGAL, ILLEGAL]) == LEGAL
    assert report.differences[ILLEGAL] == Difference(Effect.ILLEGAL, "it cannot be imported")
    run.test(LEGAL)
    expected = {
        CAUGHT: MutantResult(MutantState.CAUGHT, "tests/test_adder.py::test_add"),
        ENDLESS: MutantResult(MutantState.CAUGHT, "tests/test_adder.py::test_much", ended=False),
        ONLY_FULL: MutantResult(MutantState.ONLY_FULL, "tests/test_adder.py::test_negate"),
        MISSED: MutantResult(MutantState.MISSED),
    }
    assert report.results == expected
    lines = capsys.readouterr().err.splitlines()
    assert any(re.match(rf"\[fast tier 4/4, \d+ min\] {re.escape(MODEL)}: ", line) for line in lines)
    assert sum("return 0 - a -> return 1 - a: caught by the full tier alone" in line for line in lines) == 1
    assert (adder / MODEL).read_text() == ADDER

    monkeypatch.setattr(Trial, "compare", None)
    monkeypatch.setattr(Trial, "test", None)
    run, report = campaign(adder, folder)
    run.compare([*LEGAL, ILLEGAL])
    run.test(LEGAL)
    assert report.results == expected

    # After a change all tests run again, the test that caught a mutant first.
    (adder / "tests" / "test_other.py").write_text("from spurtle_sim.model.adder import unused\n")
    project(adder, {})
    _, report = campaign(adder, folder)
    assert not report.results
    assert report.differences
    assert report.tests[CAUGHT] == "tests/test_adder.py::test_add"


def test_mutant_is_not_illegal_if_the_comparison_fails(adder: Path, tmp_path: Path) -> None:
    project(adder, {"rtl/spurtle/gateware/block.py": "width = 4\n"})
    run, report = campaign(adder, tmp_path)
    mutant = Mutant("rtl/spurtle/gateware/block.py", "width = 4", "width = 5")
    with pytest.raises(UserError, match=r"the comparison of .*block.* failed: (.|\n)*FileExistsError"):
        run.compare([mutant])
    assert mutant not in report.differences


def test_tests_that_fail_without_a_fault_are_refused(adder: Path, tmp_path: Path) -> None:
    project(adder, {"tests/test_wrong.py": "from spurtle_sim.model.adder import add\ndef test_it(): assert False\n"})
    run, report = campaign(adder, tmp_path)
    with pytest.raises(UserError, match=r"the fast tier fails without a fault: (.|\n)*test_wrong\.py::test_it"):
        run.test([CAUGHT])
    assert not report.results


def test_interrupted_run_saves_its_results(adder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = campaign(adder, tmp_path)
    outcomes = iter([Difference(Effect.DIFFERENT, ""), KeyboardInterrupt()])

    def compare(trial: Trial, mutant: Mutant) -> Difference:
        if isinstance(outcome := next(outcomes), BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(command.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(Trial, "compare", compare)
    with pytest.raises(KeyboardInterrupt):
        run.compare([CAUGHT, MISSED])
    assert [entry["mutant"]["text"] for entry in json.loads((tmp_path / "report.json").read_text())["differences"]] == [
        CAUGHT.text
    ]


# The report.


def reported(found: dict[Mutant, MutantState | None]) -> Report:
    report = Report(5, "abcdef01", "", "", day="2026-12-01")
    for mutant, state in found.items():
        report.differences[mutant] = Difference(Effect.DIFFERENT if state else Effect.EQUIVALENT, "")
        if state:
            report.results[mutant] = MutantResult(state)
    return report


def test_tables_count_each_outcome(tmp_path: Path) -> None:
    page = Path(shutil.copy(ROOT / "docs" / "verification.md", tmp_path))
    gateware = [Mutant("rtl/spurtle/gateware/filter.py", f"line {number}", "") for number in range(3)]
    report = reported(
        {CAUGHT: MutantState.CAUGHT, **dict(zip(gateware, [MutantState.MISSED, MutantState.CAUGHT, None], strict=True))}
    )
    lines = [
        "|  | mutants | equivalent | caught by the fast tier | caught by the full tier alone | missed |",
        "| --- | --- | --- | --- | --- | --- |",
        "| `filter.py` | 3 | 1 | 1 | 0 | 1 |",
        "| reference model | 1 | 0 | 1 | 0 | 0 |",
        "| **all** | 4 | 1 | 2 | 0 | 1 |",
    ]
    assert table(report.differences, report).splitlines() == lines
    publish(page, report.differences, report)
    text = page.read_text()
    assert "\n".join(lines) in text
    assert "| 2026-12-01 | `abcdef01` | 5 | 3 | 2 (67%) |" in text


class UncalledTrial:
    """Trial that must not be called: all results are known."""

    code = tree = ""
    compare = test = None


@pytest.mark.parametrize(("caught", "status"), [(9, 0), (8, 1)], ids=["nine of ten", "eight of ten"])
def test_exit_status_depends_on_the_share_of_caught_mutants(
    caught: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "OUTPUT", tmp_path / "mutants")
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "Trial", lambda root, folder: UncalledTrial())
    monkeypatch.setattr(command, "commit_of", lambda root, clean: "abcdef01")
    monkeypatch.setattr(command, "listed_mutants", lambda root, section: {})
    mutants = [Mutant(MODEL, f"line {number}", f"{number}") for number in range(11)]
    monkeypatch.setattr(
        command, "draw", lambda root, count, seed, legal: dict.fromkeys(legal(mutants), MutantKind.WIDTH)
    )
    states: list[MutantState | None] = [MutantState.CAUGHT] * caught + [MutantState.MISSED] * (10 - caught) + [None]
    report = reported(dict(zip(mutants, states, strict=True)))
    report.save(tmp_path / "mutants" / "report.json")
    assert main(["--seed", "5"]) == status
    shown = capsys.readouterr()
    assert "60 mutants drawn with seed 5" in shown.err
    assert f"missed: {MODEL}: line 9 -> 9" in shown.out
    assert f"the fast tier catches {caught} of 10 mutants; report: mutants/report.json" in shown.out


def test_only_committed_files_are_published(adder: Path) -> None:
    assert commit_of(adder, clean=True) == commit_of(adder, clean=False)
    (adder / MODEL).write_text("")
    commit_of(adder, clean=False)
    with pytest.raises(UserError, match="changed files must be committed before results are published"):
        commit_of(adder, clean=True)


@pytest.mark.parametrize("option", ["--seed", "--count"])
def test_invalid_number_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([option, "-1"])
    assert ended.value.code == 2
    with pytest.raises(SystemExit):
        main([option, "x"])
    assert f"argument {option}: must be a number of at least 0, not 'x'" in capsys.readouterr().err
