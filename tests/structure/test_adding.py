"""Test the additions of CONTRIBUTING.md: after the first edit, a failure names the next file to edit."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.tiers import tiers

COPIED = ("rtl", "sim", "boards", "bench", "campaign", "formal", "docs", "tests", "configurations.py", "pyproject.toml")


@dataclass(frozen=True)
class Addition:
    """The first edit of an addition.

    Parameters
    ----------
    file : str
        Edited file.
    edits : dict of str to str
        Texts that occur once in the file, and the text to insert after each.
    command : tuple of str
        Arguments of the interpreter, which must fail.
    message : str
        Text of its output, which names the next file.
    """

    file: str
    edits: dict[str, str]
    command: Sequence[str]
    message: str


def completeness_test(test: str) -> tuple[str, ...]:
    """Return the arguments that run a test of test_completeness.py."""
    return ("-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/structure/test_completeness.py::{test}")


WIDE = """
from dataclasses import replace
from amaranth.back import rtlil
from spurtle.config import CONFIGS
from spurtle.gateware.spu import SPU
rtlil.convert(SPU(replace(CONFIGS["minimal"], name="wide", ops_per_cycle=12)))
"""

ADDITIONS = {
    "event": Addition(
        "rtl/spurtle/arch/events.py",
        {
            "    SMCU = 25\n": "    EXAMPLE = 26\n",
            "\nEVENTS = (\n": '    EventRow(Event.EXAMPLE, "example", Operations.LOADS, "EXAMPLE", True),\n',
        },
        completeness_test("test_events"),
        "rtl/spurtle/config/named.py: EXAMPLE among the events of v1p4",
    ),
    "register": Addition(
        "rtl/spurtle/arch/registers.py",
        {
            "    crn=15,\n    trap=Trap.TPMS,\n)\n": 'EXAMPLE_EL1 = Register("EXAMPLE_EL1", 0, 10, 5, "", {})\n',
            "\nREGISTERS = (\n": "    EXAMPLE_EL1,\n",
        },
        completeness_test("test_registers"),
        "rtl/spurtle/gateware/registers.py: RegisterFile.example",
    ),
    "packet": Addition(
        "rtl/spurtle/config/record_layouts.py",
        {'    PREVIOUS_TARGET = "PREVIOUS_TARGET"\n': '    EXAMPLE = "EXAMPLE"\n'},
        ("-c", "import spurtle.config"),
        "layout must have a field for EXAMPLE",
    ),
    "named configuration": Addition(
        "rtl/spurtle/config/named.py",
        {'SPUConfig(name="minimal", layout=MINIMAL),\n': 'SPUConfig(name="example", layout=MINIMAL, slots=2),\n'},
        completeness_test("test_named_configurations"),
        "tests/export/golden/example.ports",
    ),
    "lane width": Addition(
        "rtl/spurtle/config/checks.py",
        {'"ops_per_cycle", choices.ops_per_cycle, 1, ': "1"},  # 18 instead of 8
        ("-c", WIDE),
        "ops_per_cycle must be at most 8, two groups, not 12",
    ),
    "board": Addition(
        "boards/board.py",
        {"            ),\n            _ULX3S,\n": 'replace(_ULX3S, name="example", title="Example", number=7),\n'},
        completeness_test("test_boards"),
        "docs/reference/boards.md: example",
    ),
}


@pytest.mark.parametrize("name", tiers(fast=["lane width"], full=ADDITIONS))
def test_a_failure_names_the_next_file(name: str, tmp_path: Path) -> None:
    addition = ADDITIONS[name]
    for each in COPIED:
        if (ROOT / each).is_dir():
            shutil.copytree(ROOT / each, tmp_path / each, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / each, tmp_path / each)
    file = tmp_path / addition.file
    text = file.read_text()
    for before, added in addition.edits.items():
        assert text.count(before) == 1, before
        text = text.replace(before, before + added)
    file.write_text(text)
    run = subprocess.run(
        [sys.executable, *addition.command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(str(tmp_path / part) for part in ("rtl", "sim"))},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode != 0
    assert addition.message in run.stdout + run.stderr


def test_the_guide_has_a_section_for_each() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text()
    for name, addition in ADDITIONS.items():
        article = "An" if name[0] in "aeiou" else "A"
        _, found, section = guide.partition(f"### {article} {name}\n")
        assert found, name
        section, _, _ = section.partition("\n#")
        numbered = re.findall(r"^\d\. `(.*?)`", section, re.MULTILINE)
        assert numbered[0] == addition.file
        assert len([file for file in numbered if not file.startswith("docs/")]) <= 4, "too many files"
        assert [file for file in numbered if not (ROOT / file).exists()] == []
