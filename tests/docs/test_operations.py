"""The tables of docs/reference/operations.md.

The facts of each row give its types, in the reference model and in the RTL, and its word is its example.
"""

import re
from typing import Any, NamedTuple

import capstone
import pytest

from spurtle.config import CONFIGS
from spurtle.config.record_layouts import Packet
from spurtle.gateware.filter import Filter
from spurtle_sim.cosim.pack import sample_bits
from spurtle_sim.emulator.a64 import UnsupportedInstructionError, classify, classify_every
from spurtle_sim.model import filtering, records
from spurtle_sim.model.operation import Facts, Operation, Sample, Start, Vectors
from spurtle_sim.records.operation_type import OperationType, operation_type
from spurtle_sim.trace.instruction import FACT
from spurtle_sim.trace.vectors import VECTORS, unpack_vectors
from tests.support.gateware import Bench
from tests.support.paths import ROOT

CONFIG = CONFIGS["v1p4"]
FLAGS = ("ST", "LD", "B", "FP", "SIMD")
HEADER = "| kind | example | word | facts | types | rule |\n|---|---|---|---|---|---|\n"
DISASSEMBLER = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)

KINDS = (
    "integer", "conditional select", "conditional compare", "MRS transformed into a load (FEAT_NV2)", "load",
    "load, unprivileged", "load of a pair", "store of a pair", "Load-Acquire", "Load-AcquirePC", "Store-Release",
    "Load-Exclusive", "Store-Exclusive, passed or failed", "atomic, with a result", "atomic, without a result",
    "atomic, result discarded", "swap", "swap, result discarded", "compare and swap, equal or not",
    "floating-point atomic, with a result", "floating-point atomic, without a result", "64-byte load", "64-byte store",
    "load of an Allocation Tag", "store of an Allocation Tag", "Memory Copy", "Memory Set", "data cache zero",
    "load of a SIMD&FP register, B to D", "store of a SIMD&FP register, B to D", "load of a Q register",
    "store of a pair of Q registers", "load of structures", "store of structures", "load of one element to one lane",
    "load and replicate", "scalar floating point", "floating-point compare", "floating-point conversion",
    "Advanced SIMD, integer", "Advanced SIMD scalar, integer", "duplicate", "UMOV", "AES",
    "Advanced SIMD, floating point", "Advanced SIMD scalar, floating point", "SVE", "SVE, floating point",
    "SVE, predicates", "SVE load", "SVE store", "SVE gather", "SVE prefetch", "SME array", "SME load", "prefetch",
    "data cache maintenance", "instruction cache maintenance", "TLB maintenance", "address translation", "branch",
    "conditional branch, taken or not", "indirect branch", "call", "indirect call", "return", "exception return",
    "supervisor call", "breakpoint", "UNDEFINED instruction", "Instruction Synchronization Barrier",
    "branch that generated an exception", "load that generated an exception",
    "call that pushes to the Guarded control stack", "return that pops from the Guarded control stack",
    "Guarded control stack store", "Guarded control stack push", "Guarded control stack pop",
    "Guarded control stack switch, first part", "Guarded control stack switch, second part",
)  # fmt: skip
"""Kinds that D17.5.1 and D17.6.3 to D17.6.8 distinguish, at least."""


class Row(NamedTuple):
    kind: str
    example: str
    word: str
    facts: str
    flags: tuple[str, ...]

    def sampled(self) -> Operation:
        """Return a retired operation with the facts of the row and vectors of 256 bits."""
        names = self.facts.split()
        facts = Facts(**{name: 1 for name in names if name not in Vectors.__slots__}, retired=1, taken=1)
        vectors = Vectors(**{name: 1 for name in names if name in Vectors.__slots__}, bits=256, count=1)
        return Operation(facts=facts, vectors=vectors)


def rows() -> list[Row]:
    _, *tables = (ROOT / "docs" / "reference" / "operations.md").read_text().split(HEADER)
    result: list[Row] = []
    for line in (line for table in tables for line in table.partition("\n\n")[0].splitlines()):
        kind, example, word, facts, types, rule = (cell.strip() for cell in line.strip("|").split("|"))
        assert re.fullmatch(r"(D1[78]\.[\d.]+|choice)\b.*", rule), line
        flags = tuple(types.split(", ")) if types != "—" else ()
        assert set(flags) <= set(FLAGS), line
        names = " ".join(re.findall(r"`(\w+)`", facts))
        result.append(Row(kind, example.strip("`"), word.strip("—"), names, flags))
    return result


ROWS = rows()


class FilterBench(Bench):
    def __init__(self) -> None:
        self.dut: Any = Filter(CONFIG)
        super().__init__(self.dut, clocked=False)


def test_each_kind_has_a_row() -> None:
    kinds = [row.kind for row in ROWS]
    assert [kind for kind in KINDS if kind not in kinds] == []
    assert len(set(kinds)) == len(kinds) > 110


def test_types_of_the_reference() -> None:
    found = {row: filtering.type_flags(CONFIG, row.sampled().facts) for row in ROWS}
    names = {row: {name for bit, name in enumerate(CONFIG.filter_types) if flags >> bit & 1}
             for row, flags in found.items()}  # fmt: skip
    assert {row: flags for row, flags in names.items() if flags != {*row.flags}} == {}


# Format of the Operation Type packet (D18.2.7) for some kinds.
FORMS = {
    "MRS transformed into a load (FEAT_NV2)": "nv2",
    "MSR transformed into a store (FEAT_NV2)": "nv2",
    "Load-Acquire": "extended",
    "Store-Exclusive, passed or failed": "extended",
    "atomic, without a result": "extended",
    "64-byte load": "general",
    "load of an Allocation Tag": "tag",
    "store of an Allocation Tag": "tag",
    "store of an Allocation Tag and of data": "unspecified",
    "Memory Copy": "memory_copy",
    "Memory Set": "memory_set",
    "data cache zero": "unspecified",
    "load of a Q register": "simd_fp",
    "Advanced SIMD, integer": "other",
    "SVE": "sve",
    "SVE, predicates": "sve",
    "multiple of the vector length": "other",
    "SVE load": "sve",
    "SVE prefetch": "other",
    "SME array": "sme",
    "SME array, complete": "sme",
    "SME load": "sve",
    "SME store": "sve",
    "prefetch": "other",
    "call that pushes to the Guarded control stack": "branch",
    "call that pushes to the Guarded control stack, with an exception": "gcs",
    "pop of a return, as a micro-op": "gcs",
    "Guarded control stack switch, second part": "gcs",
}


def test_operation_types() -> None:
    found: dict[str, OperationType] = {}
    for row in ROWS:
        packets = dict(records.packets(CONFIG, Sample(start=Start(), operation=row.sampled())))
        header, payload = packets[Packet.OPERATION]
        found[row.kind] = operation_type(header & 0b11, payload)
        # The type for the filter is the type in the record.
        kinds = {"load": "LD", "store": "ST", "branch": "B"}
        assert kinds.get(found[row.kind].kind, "other") in (*row.flags, "other"), row
    assert {kind: found[kind].form for kind in FORMS} == FORMS
    assert {kind for kind, what in found.items() if what.kind == "reserved"} == set()
    procedures = {kind: found[kind].attributes["procedure"] for kind in found if found[kind].kind == "branch"}
    expected = {"call": "call", "indirect call": "call", "return": "return"}
    expected |= {
        "call that pushes to the Guarded control stack": "call",
        "return that pops from the Guarded control stack": "return",
    }
    assert {kind: what for kind, what in procedures.items() if what != "neither"} == expected
    sizes = {kind: found[kind].attributes["bits"] for kind in ("SVE", "SME array", "SME array, complete")}
    assert sizes == {"SVE": 256, "SME array": 256, "SME array, complete": "all"}


def test_types_of_the_rtl() -> None:
    bench = FilterBench()

    async def scenario(ctx: Any) -> dict[Row, set[str]]:
        found: dict[Row, set[str]] = {}
        for row in ROWS:
            sample = Sample(start=Start(), operation=row.sampled())
            ctx.set(bench.dut.sample.as_value(), sample_bits(CONFIG, sample))
            feed = {"B": bench.dut.feed.br, **{name: bench.dut.feed[name.lower()] for name in FLAGS if name != "B"}}
            found[row] = {name for name, port in feed.items() if ctx.get(port)}
        return found

    assert {row: flags for row, flags in bench.run(scenario).items() if flags != {*row.flags}} == {}


def test_words_are_the_examples() -> None:
    rows = [row for row in ROWS if row.word]
    assert len(rows) > 80
    for row in rows:
        digits, _, remark = row.word.partition(", ")
        word = int(digits, 16)
        found = next(DISASSEMBLER.disasm(word.to_bytes(4, "little"), 0))
        assert f"{found.mnemonic} {found.op_str}".strip() == row.example
        if remark:
            assert remark == "not run"
            with pytest.raises(UnsupportedInstructionError):
                classify(word)
        instruction = classify_every(word)
        if instruction is not None:
            facts = [name for name, bit in FACT.items() if instruction.facts & bit]
            vectors = unpack_vectors(instruction.vectors)
            facts += [name for name in VECTORS if name not in ("count", "bits") and getattr(vectors, name)]
            assert facts == row.facts.split(), row.example
        else:  # SME, 64-byte accesses, the Guarded control stack: neither front end executes them
            assert remark, row.example
