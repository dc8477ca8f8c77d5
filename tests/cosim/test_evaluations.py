"""One evaluation per cycle and a gated clock, as in the compiled SPU, compared with the unchanged Verilog."""

import ctypes
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from spurtle.arch import PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, PMSCR_EL1, PMSICR_EL1, PMSIRR_EL1, Register
from spurtle.config import CONFIGS
from spurtle.export import verilog
from spurtle.export.ports import Port
from spurtle_sim.cosim.compiled import load_model
from spurtle_sim.cosim.designs import gated, on_each_edge
from spurtle_sim.cosim.layout import gated_inputs
from spurtle_sim.cosim.pack import pe_members
from spurtle_sim.model.pe import PEState
from tests.support.seeds import SEED
from tests.support.tiers import tiers

CYCLES = 20_000
PERIOD = 500
"""Cycles between two times at which software programs the SPU again and empties the buffer."""

BASE = 0x1000
PROGRAM = (
    (PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1, CX=1, PA=1, TS=1)),
    (PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1, RND=1)),
    (PMSICR_EL1, 10),
    (PMBPTR_EL1, BASE),
    (PMBLIMITR_EL1, BASE + 4096 | 1),
    (PMBSR_EL1, 0),
)

CHANCES = {
    "rst": 0.0005,
    "sampling__valid": 0.7,
    "in_flight__issued": 0.2,
    "in_flight__completed": 0.2,
    "in_flight__translating": 0.5,
    "finish__valid": 0.1,
    "finish__vanished": 0.02,
    "sysreg__valid": 0.005,
    "drain__request": 0.02,
    "write__beat__ready": 0.7,
    "write__done": 0.2,
    "write__abort": 0.001,
    "branch__valid": 0.1,
}
"""Probability that a bit of a port is set. Other ports are random, except for the PE's state, which rarely changes."""

BUSY = "sampling__valid", "pe__physical_count", "rst"
"""Ports that change in each cycle. In every second group of QUIET cycles at most one of the others does."""

QUIET = 100


class Table:
    """Layout of a table row: each port begins at a 32-bit word."""

    def __init__(self, ports: Sequence[Port]):
        self.words_of: dict[str, slice] = {}
        self.ports = {port.name: port for port in ports}
        self.words = 0
        for port in ports:
            self.words_of[port.name] = slice(self.words, self.words + (port.width + 31) // 32)
            self.words += (port.width + 31) // 32

    def macro(self, visit: str, names: Sequence[str]) -> str:
        """Return a call of a macro for each port, in the way Verilator spells it."""
        return " ".join(f"{visit}(spu.{name.replace('__', '___05F')}, {self.words_of[name].start})" for name in names)

    def numbers(self, rows: NDArray[np.uint32], name: str) -> list[int]:
        """Return the value of a port in each row."""
        return [int.from_bytes(row.tobytes(), "little") for row in rows[:, self.words_of[name]]]


def random_inputs(table: Table, pe: dict[str, int]) -> NDArray[np.uint32]:
    """Return a row of inputs for each cycle."""
    random = np.random.default_rng(SEED)
    rows = np.zeros((CYCLES, table.words), np.uint32)
    quiet = np.arange(CYCLES) // QUIET % 2 == 1
    changes = np.where(random.random(CYCLES) < 0.2, random.integers(0, len(table.ports), CYCLES), -1)
    for index, (name, port) in enumerate(table.ports.items()):
        words = table.words_of[name]
        widths = [min(32, port.width - bit) for bit in range(0, port.width, 32)]
        number = random.integers(0, 1 << np.array(widths), (CYCLES, len(widths)), np.uint64)
        if name in CHANCES:
            bits = random.random((CYCLES, port.width)) < CHANCES[name]
            number = (bits << np.arange(port.width)).sum(axis=1, keepdims=True)
        elif name.startswith("pe__") and name != "pe__physical_count":
            usual = [pe[name.removeprefix("pe__")] >> 32 * word & 0xFFFF_FFFF for word in range(len(widths))]
            rarely = random.random((CYCLES, 1)) < 0.002
            number = np.where(rarely, number, usual)
        elif name == "write__fault":
            number = np.where(random.random((CYCLES, 1)) < 0.05, number, 0)
        if name not in BUSY:
            alone = quiet & (changes == index)
            number[quiet] = 0 if name in CHANCES else number[np.flatnonzero(quiet) // QUIET * QUIET]
            number[alone] = random.integers(0, 1 << np.array(widths), (np.count_nonzero(alone), len(widths)), np.uint64)
        rows[:, words] = number
    rows[:3, table.words_of["rst"]] = 1
    for cycle, (register, value) in programming():
        access(table, rows[cycle], register, value)
    return rows


def programming() -> Iterator[tuple[int, tuple[Register, int]]]:
    """Yield the cycle, register and value of each write of software."""
    for start in range(5, CYCLES - len(PROGRAM), PERIOD):
        yield from enumerate(PROGRAM, start)


def access(table: Table, row: NDArray[np.uint32], register: Register, value: int) -> None:
    """Make a row write a register at EL2, which has access to all of them."""
    members = {"valid": 1, "write": 1, "op1": register.op1, "crn": register.crn, "crm": register.crm}
    members |= {"op2": register.op2, "wdata": value}
    for name, number in (
        ("pe__el", 2),
        ("pe__ns", 1),
        *((f"sysreg__{name}", value) for name, value in members.items()),
    ):
        row[table.words_of[name]] = [
            number >> 32 * word & 0xFFFF_FFFF for word in range(-(-table.ports[name].width // 32))
        ]


@pytest.mark.parametrize("name", tiers(full=["minimal"], long=["v1p4", "neoverse_n1", "arm_model"]))
def test_one_evaluation_equals_two(name: str) -> None:
    """Outputs that are read before the edge do not depend on the inputs of the cycle. All outputs are equal."""
    config = CONFIGS[name]
    design = verilog.spu(config)
    inputs = Table([port for port in design.ports if port.direction == "in" and port.name != "clk"])
    outputs = Table([port for port in design.ports if port.direction == "out"])
    write = [name for name in outputs.ports if name.startswith("write__beat__")]
    macros = {
        "INPUT_WORDS": inputs.words,
        "OUTPUT_WORDS": outputs.words,
        "INPUTS": inputs.macro("INPUT", [*inputs.ports]),
        "WRITE": outputs.macro("OUTPUT", write),
        "OUTPUTS": outputs.macro("OUTPUT", [name for name in outputs.ports if name not in write]),
    }
    lines = [f"#define {name} {value}" for name, value in macros.items()]
    driver = Path(__file__).with_name("evaluations.cpp")
    rows = random_inputs(inputs, pe_members(config, PEState()))

    def run(text: str, evaluations: int, *declarations: str) -> tuple[NDArray[np.uint32], int]:
        library = load_model(design.module, text, driver, [*lines, f"#define EVALUATIONS {evaluations}", *declarations])
        found = np.zeros((CYCLES, outputs.words), np.uint32)
        pointers = [each.ctypes.data_as(ctypes.c_void_p) for each in (rows, found)]
        library.evaluate.restype = ctypes.c_uint64
        return found, library.evaluate(pointers[0], ctypes.c_uint64(CYCLES), pointers[1])

    two, _ = run(design.text, 2)
    with_gate = gated(config)
    ungated, _ = run(on_each_edge(design.text), 1)
    one, edges = run(with_gate.text, 1, "#define GATED 1", gated_inputs(with_gate.inputs))
    for found in (ungated, one):
        for port, words in outputs.words_of.items():
            differ = np.flatnonzero((found[:, words] != two[:, words]).any(axis=1))
            assert len(differ) == 0, f"{port} differs in cycle {differ[0]}"
    beats = sum(outputs.numbers(two, "write__beat__valid"))
    sampled = sum(outputs.numbers(two, "sampling__sampled"))
    assert beats > 100 and sampled > 20
    assert CYCLES / 2 < edges < 0.9 * CYCLES
