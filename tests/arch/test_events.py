"""Table of events: model and gateware record an event for the operations that the table lists."""

from typing import Any

import pytest

from spurtle.arch import PMSVer
from spurtle.arch.events import EVENTS, Event, EventRow, Operations, defined_events, events_of, mask, required_events
from spurtle.config import CONFIGS
from spurtle.config.record_layouts import Packet
from spurtle.gateware.record import RecordBuilder
from spurtle_sim.cosim.pack import sample_bits
from spurtle_sim.model import records
from spurtle_sim.model.operation import Facts, Operation, Sample, Start, Vectors
from tests.support.gateware import Bench

V1P4 = CONFIGS["v1p4"]
ALL = mask(range(8 * V1P4.events_bytes))

KINDS = {
    "branch": Operation(facts=Facts(retired=1, branch=1, taken=1), events=ALL),
    "conditional": Operation(facts=Facts(retired=1, conditional=1), events=ALL),
    "exception": Operation(facts=Facts(retired=1, exception=1), events=ALL),
    "load": Operation(facts=Facts(retired=1, load=1), events=ALL),
    "store": Operation(facts=Facts(retired=1, store=1), events=ALL),
    "vector": Operation(facts=Facts(retired=1, asynchronous=1), events=ALL, vectors=Vectors(sve=1, bits=128, count=1)),
}
KINDS_WITH = {
    Operations.ALL: {*KINDS},
    Operations.EXCEPTIONS: {"exception"},
    Operations.CONDITIONAL: {"conditional"},
    Operations.BRANCHES: {"branch"},
    Operations.ACCESSES: {"load", "store"},
    Operations.LOADS: {"load"},
    Operations.VECTORS: {"vector"},
}
"""Kinds of operation that have the events of a row. The core reports all events for each kind."""


def expected(kind: str) -> int:
    events = {row.event for row in EVENTS if kind in KINDS_WITH[row.operations]}
    # Whether an operation executed on an SMCU is a separate fact.
    events -= {Event.SMCU} if kind != "vector" else set()
    imp = events_of(Operations.ACCESSES) if kind in KINDS_WITH[Operations.ACCESSES] else set()
    return mask((events | imp) & V1P4.events)


def difference(found: int, kind: str) -> list[str]:
    return [Event(bit).name for bit in sorted(V1P4.events & {*Event}) if (found ^ expected(kind)) >> bit & 1]


@pytest.mark.parametrize("kind", KINDS)
def test_model_records_events_of_the_table(kind: str) -> None:
    wrong = difference(records.events(V1P4, Sample(start=Start(), operation=KINDS[kind])), kind)
    assert not wrong, (
        f"sim/spurtle_sim/model records {', '.join(wrong)} for other operations than spurtle.arch.events lists"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_gateware_records_events_of_the_table(kind: str) -> None:
    dut = RecordBuilder(V1P4)

    async def scenario(ctx: Any) -> int:
        ctx.set(dut.sample.as_value(), sample_bits(V1P4, Sample(start=Start(), operation=KINDS[kind])))
        await ctx.tick()
        await ctx.tick()
        octets = ctx.get(dut.packets.octets) >> 8 * (V1P4.layout.offsets(V1P4.packet_bytes)[Packet.EVENTS] + 1)
        return octets & (1 << 8 * V1P4.events_bytes) - 1

    wrong = difference(Bench(dut).run(scenario), kind)
    assert not wrong, (
        f"rtl/spurtle/gateware/reported_events.py reports {', '.join(wrong)} for other operations than "
        "spurtle.arch.events lists"
    )


@pytest.mark.parametrize("row", EVENTS, ids=lambda row: row.event.name)
def test_a_tested_kind_has_each_event(row: EventRow) -> None:
    assert row.event in V1P4.events
    assert any(expected(kind) >> row.event & 1 for kind in KINDS)


def test_each_event_has_one_row() -> None:
    assert [row.event for row in EVENTS] == [*Event]


def test_required_and_defined_events() -> None:
    assert required_events(PMSVer.SPE, ()) == {*range(8)}
    assert defined_events(PMSVer.SPE, ()) == {*range(11), *range(12, 16), *range(24, 32), *range(48, 64)}
    assert required_events(PMSVer.SPE_V1P1, ["sve"]) == {*range(8), 17, 18}
    every = {"sve", "sme", "spe_sme"}
    assert defined_events(PMSVer.SPE_V1P4, every) == {*range(16), *range(17, 26), *range(48, 64)}
    assert required_events(PMSVer.SPE_V1P4, every) == {*range(8), 17, 18, 24, 25}
