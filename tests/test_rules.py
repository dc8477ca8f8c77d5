"""The tables of rules in docs: what they name is there. And what docs/sampling.md says of R_LTMKQ holds."""

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from gateware import Bench, cycle

from formal.proofs import all_proofs
from spurtle.arch import PMBLIMITR_EL1, PMBSR_EL1, PMSCR_EL1, PMSICR_EL1, PMSIRR_EL1, Register
from spurtle.config import CONFIGS
from spurtle.spu import SPU

ROOT = Path(__file__).resolve().parents[1]
SECTIONS = {
    "sampling": (
        *("D17.3.1", "D17.3.2", "D17.3.3", "D17.3.4.1", "D17.3.4.2", "D17.3.4.3", "D17.3.5", "D17.3.6"),
        *("D17.3.7", "R_QWTQB", "I_QYCRM", "I_DBJXM", "I_RCCQG", "R_LTMKQ"),
    ),
    "filtering": (
        *("D17.5", "D17.5.1", "D17.5.2", "D17.5.3", "D17.5.4", "D17.5.5", "D17.6.4.3", "D17.6.4.5", "D17.6.8"),
        *("I_BWNKX", "I_ZZTZL", "R_NYZKJ", "D_DSNMB", "I_ZWMZT", "R_YGCFK", "I_LVCZH", "I_XNXRN"),
    ),
    "recording": (
        *(f"D17.6.{section}" for section in (*range(1, 7), 8)),
        *("D17.6.3.1", *(f"D17.6.4.{section}" for section in range(1, 7))),
    ),
    "security": ("D17.6.7", "D17.6.9", "Table D17-3", "D17.6.10", "Example D17-6", "D17.6.10.1", "D24.7"),
    "buffer": ("D17.4", "D17.5.5", "D17.7", "D24.7", "R_PGGHS", "R_MYXZK"),
    "packets": tuple(f"D18.2.{section}" for section in range(1, 10)),
}
"""What each page has to have a rule of."""
PROOF = re.compile(r"`([^`]+)`: `([^`]+)`")
NAME = re.compile(r"`([^`]+)`")


def table(page: str) -> list[list[str]]:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    _, _, text = text.partition("| rule | code | tests | proof |\n|---|---|---|---|\n")
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()]


ROWS = {page: table(page) for page in SECTIONS}
PROOFS = {(each.block, each.property) for each in all_proofs()}


def is_there(name: str) -> bool:
    """A test, or something of `rtl/spurtle`, by the name of its module and its own."""
    module, _, symbol = name.partition(".")
    if not module.startswith("test_"):
        return hasattr(import_module(f"spurtle.{module}"), symbol)
    tree = ast.parse((ROOT / "tests" / f"{module}.py").read_text())
    return any(isinstance(node, ast.FunctionDef) and node.name == symbol for node in tree.body)


@pytest.mark.parametrize("page", ROWS)
def test_each_section_has_its_rules(page: str) -> None:
    rules = [row[0] for row in ROWS[page]]
    assert len(rules) > 20
    text = "\n".join(rules)
    assert [section for section in SECTIONS[page] if section not in text] == []
    assert len(set(rules)) == len(rules)


@pytest.mark.parametrize("row", [row for rows in ROWS.values() for row in rows], ids=lambda row: row[0])
def test_what_a_rule_names_is_there(row: list[str]) -> None:
    assert len(row) == 4 and all(row)
    _, code, tests, proof = row
    assert [pair for pair in PROOF.findall(proof) if pair not in PROOFS] == []
    assert NAME.findall(code)
    assert tests == "not here" or any(name.startswith("test_") for name in NAME.findall(tests))
    assert tests != "not here" or proof == "the core's to keep"
    others = NAME.findall(PROOF.sub("", proof))
    assert [name for name in (*NAME.findall(code), *NAME.findall(tests), *others) if not is_there(name)] == []


@pytest.mark.parametrize("name", ["minimal", "v1p4"])
def test_when_a_collision_can_be_read(name: str) -> None:
    """Once the operations of `answer_latency` cycles have been told, and not before. An access is made a cycle after it
    came.
    """
    config = CONFIGS[name]
    dut = SPU(config)
    bench = Bench(dut)

    async def access(ctx: Any, register: Register, value: int | None = None) -> int:
        inputs = [(getattr(dut.sysreg, member), getattr(register, member)) for member in ("op1", "crn", "crm", "op2")]
        inputs += [(dut.sysreg.valid, 1), (dut.sysreg.write, value is not None), (dut.sysreg.wdata, value or 0)]
        await cycle(ctx, [*inputs, (dut.pe.el, 1)])
        await cycle(ctx, [(dut.sysreg.valid, 0), (dut.pe.el, 0)])
        return ctx.get(dut.sysreg.rdata)

    async def read_after(ctx: Any, wait: int) -> int:
        """What PMBSR_EL1 is so many cycles after that in which the operation passed that is one too many."""
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
        expected = PMBSR_EL1.pack(COLL=wait + 1 > config.answer_latency)
        assert bench.run(lambda ctx, wait=wait: read_after(ctx, wait)) == expected, f"{wait} cycles"
