"""Rows of docs/rules.toml name all rules, and existing code, tests and proofs. The latency of COLL (R_LTMKQ)."""

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from docs.rules import RULES
from formal.proofs import all_proofs
from spurtle.arch import PMBLIMITR_EL1, PMBSR_EL1, PMSCR_EL1, PMSICR_EL1, PMSIRR_EL1, Register
from spurtle.config import CONFIGS
from spurtle.gateware.spu import SPU
from spurtle.interface.sysreg import ACCESS_LATENCY
from tests.support.gateware import Bench, cycle
from tests.support.paths import DATA, ROOT

NAMED = tomllib.loads((DATA / "arm_rules.toml").read_text())
"""Sections and names of rules that each chapter must have a row for."""
NAMES = [name for chapter in NAMED.values() for name in chapter.get("names", ())]
NAME_OF_A_RULE = re.compile(r"\b[RID]_[A-Z]{5}\b")
NAME_OF_A_TEST = re.compile(r"`(\w+\.test_\w+\.test_\w+)`")
PROOFS = {f"{proof.block}: {proof.property}" for proof in all_proofs()}
ROWS = [row for rows in RULES.values() for row in rows]


def exists(name: str) -> bool:
    """Return whether there is such a test, or such a name in a module of `rtl/spurtle`."""
    module, _, symbol = name.rpartition(".")
    if not symbol.startswith("test_"):
        return hasattr(import_module(f"spurtle.{module}"), symbol)
    return symbol in functions_of(module)


@cache
def functions_of(module: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / f"{module.replace('.', '/')}.py").read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("chapter", NAMED)
def test_each_section_and_each_named_rule_has_a_row(chapter: str) -> None:
    named = {word for row in RULES[chapter] for word in row.rule.split()}
    expected = [*NAMED[chapter]["sections"], *NAMED[chapter].get("names", ())]
    assert [word for word in expected if word not in named] == []


def test_tests_that_notes_and_documents_name_exist() -> None:
    pages = [ROOT / "docs" / "rules.toml", *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    names = {name for page in pages for name in NAME_OF_A_TEST.findall(page.read_text())}
    assert "docs.test_rules.test_a_collision_can_be_read_after_answer_latency_cycles" in names
    assert [name for name in sorted(names) if not exists(name)] == []


@pytest.mark.parametrize("chapter", RULES)
def test_code_tests_and_proofs_of_a_row_exist(chapter: str) -> None:
    for row in RULES[chapter]:
        assert row.code, row.says
        assert [name for name in (*row.code, *row.tests) if not exists(name)] == []
        assert [proof for proof in row.proofs if proof not in PROOFS] == []
        assert all(".test_" in name for name in row.tests)
        assert row.tests or not row.proofs, f"the core keeps it, or there is a test: {row.says}"


def test_names_of_rules_are_those_of_the_architecture() -> None:
    folders = ("docs", "rtl", "sim", "formal", "boards", "tests")
    paths = [path for folder in folders for kind in ("py", "md", "toml") for path in (ROOT / folder).rglob(f"*.{kind}")]
    found = {name for path in paths for name in NAME_OF_A_RULE.findall(path.read_text())}
    assert found == {*NAMES}


def test_each_choice_names_a_section_or_a_register() -> None:
    _, *tables = (ROOT / "docs" / "choices.md").read_text().split("| topic | rule | choice |\n|---|---|---|\n")
    lines = [line for table in tables for line in table.partition("\n\n")[0].splitlines()]
    rows = [line.strip("| ").split(" | ") for line in lines]
    assert len(rows) > 80
    assert [topic for topic, rule, _ in rows if not re.search(r"\bD\d+\.\d|\bPM\w+_EL1", rule)] == []


def test_requirements_are_short_and_different() -> None:
    assert [row.says for row in ROWS if len(row.says) > 100 or row.says.endswith(".")] == []
    assert [pair for pair, count in Counter((row.rule, row.says) for row in ROWS).items() if count > 1] == []


@pytest.mark.parametrize("name", ["minimal", "v1p4"])
def test_a_collision_can_be_read_after_answer_latency_cycles(name: str) -> None:
    """COLL reads as one from `answer_latency` cycles after the collision (R_LTMKQ).

    An access is executed `ACCESS_LATENCY` - 1 cycles after its request.
    """
    config = CONFIGS[name]
    dut = SPU(config)
    bench = Bench(dut)

    async def access(ctx: Any, register: Register, value: int | None = None) -> int:
        inputs = [(getattr(dut.sysreg, member), getattr(register, member)) for member in ("op1", "crn", "crm", "op2")]
        inputs += [(dut.sysreg.valid, 1), (dut.sysreg.write, value is not None), (dut.sysreg.wdata, value or 0)]
        await cycle(ctx, [*inputs, (dut.pe.el, 1)])
        for _ in range(ACCESS_LATENCY - 1):
            await cycle(ctx, [(dut.sysreg.valid, 0), (dut.pe.el, 0)])
        return ctx.get(dut.sysreg.rdata)

    async def read_after(ctx: Any, wait: int) -> int:
        """Return PMBSR_EL1, read `wait` cycles after the operation that collides has passed."""
        # Non-secure EL1 owns the buffer.
        owned = {"ns": 1, "mdcr_el3_nspb": 0b11, "mdcr_el2_e2pb": 0b11}
        for name in owned.keys() & dut.pe.signature.members:
            ctx.set(getattr(dut.pe, name), owned[name])
        await access(ctx, PMBLIMITR_EL1, PMBLIMITR_EL1.pack(E=1, LIMIT=1))
        await access(ctx, PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1))
        await access(ctx, PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1))
        for number in range(config.slots + 1):
            await access(ctx, PMSICR_EL1, PMSICR_EL1.pack(COUNT=1))
            await cycle(ctx, [(dut.sampling.valid, 1)])
            idle = config.answer_latency + 1 if number < config.slots else wait - 1
            ctx.set(dut.sampling.valid, 0)
            for _ in range(idle):
                await cycle(ctx, [])
        return await access(ctx, PMBSR_EL1)

    for wait in range(1, config.answer_latency + 3):
        expected = PMBSR_EL1.pack(COLL=wait + ACCESS_LATENCY - 1 > config.answer_latency)
        assert bench.run(lambda ctx, wait=wait: read_after(ctx, wait)) == expected, f"{wait} cycles"
