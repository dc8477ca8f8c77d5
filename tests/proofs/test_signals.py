"""Signals that proofs read: ports, and signals that components list. Each listed signal exists and is read."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.lib import wiring

import formal
from configurations import OUTSTANDING
from formal.engine import sby
from formal.engine.induction import inductive
from formal.engine.proof import Proof, Result
from formal.engine.signals import UnlistedSignal, signal_names
from formal.engine.transition import Transition, Wires, transition, with_history
from formal.serializer.cutter import CutterSpec
from spurtle.config import CONFIGS
from spurtle.gateware.control import ProfilingControl
from spurtle.gateware.inflight import InFlight
from spurtle.gateware.interval import IntervalCounter
from spurtle.gateware.registers import RegisterFile
from spurtle.gateware.spu import SPU, RecordPath
from spurtle.shell.shell import Shell
from tests.support.countdown import Countdown, zero_flag_is_correct
from tests.support.gateware import components

LISTED = {
    (component.__name__, entry) for component in components() for entry in getattr(component, "proof_signals", ())
}
"""Listed signals, each with its component."""

V1P4 = CONFIGS["v1p4"]

DESIGNS = (
    lambda: Shell(OUTSTANDING["outstanding_packed"], "axi4-apb"),
    # Registers with EL2, fields of fixed size and FEAT_SPE_SME, several lanes, several slots.
    lambda: RegisterFile(V1P4),
    lambda: ProfilingControl(V1P4),
    lambda: RecordPath(V1P4),
    lambda: IntervalCounter(V1P4),
    lambda: InFlight(V1P4),
)
"""Designs that together have all listed signals."""


class Unlisted(Countdown):
    proof_signals = ()


@pytest.fixture(scope="module")
def unlisted() -> Transition:
    return transition(Unlisted())


# A proof reads no other signal.


def test_a_proof_cannot_read_an_unlisted_signal(subject: Transition, unlisted: Transition) -> None:
    assert "zero" in subject.wires(0)
    with pytest.raises(UnlistedSignal, match=r"^zero must be a port, .* or in Unlisted\.proof_signals$"):
        inductive(unlisted, zero_flag_is_correct)
    with pytest.raises(UnlistedSignal):
        _ = "zero" in unlisted.wires(0)


def test_the_evidence_of_such_a_proof_is_one_sentence(unlisted: Transition) -> None:
    row = Proof("p", "b", "c", "m", lambda: inductive(unlisted, zero_flag_is_correct)).run()
    assert row.result is Result.ERROR
    assert row.evidence == "zero must be a port, a history register of the proof, or in Unlisted.proof_signals"


def test_a_proof_reads_its_history_registers(unlisted: Transition) -> None:
    def follow(wires: Wires) -> Wires:
        return {"before": wires["value"]}

    assert "before" in with_history(unlisted, {"before": 4}, follow, {}).wires(0)
    with pytest.raises(UnlistedSignal):
        _ = unlisted.wires(0)["before"]


def test_a_probe_of_sby_is_a_listed_signal(build: Path) -> None:
    with pytest.raises(UnlistedSignal, match=r"^dut\.index must .* or in Cutter\.proof_signals$"):
        sby.check(CutterSpec(CONFIGS["minimal"]), "unlisted", mode="prove", depth=2, probes={"beat": "dut.index"})


def test_a_signal_is_listed_by_its_own_component() -> None:
    names = signal_names(SPU(V1P4))
    for listed in ("inflight.slot_0.executing", "inflight.start_0.collect.pa", "inflight.operations[1]"):
        names.check(listed)
    for name, component in {
        "inflight.executing": "InFlight",
        "inflight.slot_0.start_0": "Slot",
        "inflight.slot_9.executing": "InFlight",
        "record_path.has_pc": "RecordPath",
        "completion.rejection": "Completion",
    }.items():
        with pytest.raises(UnlistedSignal, match=rf"or in {component}\.proof_signals$"):
            names.check(name)


# Each listed signal is one that a proof reads.


def _netlist(component: wiring.Component) -> Iterator[str]:
    """Yield the names of the wires and memories of the netlist, with their paths."""
    path = ""
    for line in rtlil.convert(component, name="top", emit_src=False).splitlines():
        if module := re.match(r"module \\top\.?(\S*)$", line):
            path = f"{module[1]}." if module[1] else ""
        elif wire := re.match(r"  (?:wire|memory) .*\\(\S+)$", line):
            yield path + wire[1]


def test_each_listed_signal_is_in_a_netlist() -> None:
    found: set[tuple[str, str] | None] = set()
    for build in DESIGNS:
        names = signal_names(build())
        found.update(names.listing(name) for name in _netlist(build()))
    assert LISTED - found == set()


def _names_in_proofs() -> Iterator[str]:
    """Yield the strings in the proofs that can be names, and the parameters of references, which name wires."""
    for path in Path(formal.__path__[0]).glob("*/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.arg):
                yield node.arg
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
                yield node.value


def test_each_listed_signal_is_named_by_a_proof() -> None:
    text = "\n".join(_names_in_proofs())

    def named(entry: str) -> bool:
        # `*` stands for text that a proof inserts.
        pieces = rf"(?<!\w){re.escape(entry)}(?!\w)".split(r"\*")
        return all(re.search(piece, text) for piece in pieces)

    assert sorted(entry for entry in LISTED if not named(entry[1])) == []
