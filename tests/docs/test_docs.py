"""Timing diagrams of the documents, played on the SPU, and the commands and the code of pages for integrators."""

import re
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
import yaml
from amaranth.hdl import Value
from amaranth.lib.wiring import In

from docs import timing
from spurtle import arch
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.parse import vary
from spurtle.gateware.spu import SPU
from spurtle.interface.memory import WriteFaultKind
from spurtle.interface.operation import LocationLayout
from spurtle.interface.sysreg import AccessOutcome
from spurtle_sim.cli import main
from spurtle_sim.cosim.pack import operation_bits
from spurtle_sim.model.operation import Facts, Location, Operation
from spurtle_sim.records.decode import Record, decode_records
from tests.support.gateware import Bench, cycle
from tests.support.paths import ROOT
from tests.support.seeds import SEED

DOCS = ROOT / "docs"

LIMIT = 0x1000
BRANCHES = {name: Location(address, el=0, ns=1) for name, address in (("A", 0x40_0000), ("B", 0x40_0100))}
OPERATIONS = {
    "load": Operation(facts=Facts(load=1, va_valid=1, retired=1, taken=1), pc=0x40_0010, va=0x7F_0000),
    "to B": Operation(facts=Facts(branch=1, taken=1, retired=1), pc=0x40_0020, target=BRANCHES["B"]),
}
"""Values of the labels in the diagrams."""

READY = {
    "PMBPTR_EL1": 0,
    "PMBLIMITR_EL1": LIMIT | arch.PMBLIMITR_EL1.pack(E=1),
    "PMSIRR_EL1": arch.PMSIRR_EL1.pack(INTERVAL=1),
    "PMSICR_EL1": arch.PMSICR_EL1.pack(COUNT=1),
    "PMSCR_EL1": arch.PMSCR_EL1.pack(E0SPE=1),
}


class Situation(NamedTuple):
    """Actions before a diagram starts.

    Members
    -------
    registers : mapping of str to int
        Values of registers by name, in the order in which they are written.
    then : mapping of str to int, or None
        Registers that are written after a load was sampled and has finished, while memory has not accepted a beat of
        its record. None: no operation has passed.
    """

    registers: Mapping[str, int]
    then: Mapping[str, int] | None = None


SITUATIONS = {
    "after reset": Situation({}),
    "the next operation is selected": Situation(READY),
    "a record waits": Situation(READY, then={}),
    **{
        f"the last record that fits waits{suffix}": Situation(
            READY | {"PMBPTR_EL1": LIMIT - CONFIGS[name].max_record_bytes}, then={}
        )
        for name, suffix in (("minimal", ""), ("arm_model", ", of 128 bytes"))
    },
    "a record waits, and the next operation is selected": Situation(READY, then={"PMSICR_EL1": READY["PMSICR_EL1"]}),
}
"""Situations by the heading of a diagram, which follows the name of the configuration."""

ENCODING = ("op1", "crn", "crm", "op2")
REGISTER = "sysreg.op1 to op2"
"""Name of the row with the encoding of a register."""

EL1_OWNS = {"pe.ns": 1, "branch.ns": 1, "pe.mdcr_el2_e2pb": 0b11, "pe.mdcr_el3_nspb": 0b11}
"""State of the PE in all diagrams: Non-secure, and EL1 owns the Profiling Buffer."""


class Row(NamedTuple):
    """A row of a diagram: paths of ports, and their values in each cycle, None where they are not drawn."""

    paths: tuple[str, ...]
    values: tuple[tuple[int, ...] | None, ...]


class Diagram(NamedTuple):
    config: SPUConfig
    situation: Situation
    rows: tuple[Row, ...]


def read(page: str) -> str:
    return (DOCS / f"{page}.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    """Return the contents of the code blocks in that language."""
    return re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", read(page), re.DOTALL | re.MULTILINE)


def parse(block: str) -> Diagram:
    """Return the diagram in a source of WaveDrom."""
    drawn = yaml.safe_load(block)
    name, _, situation = drawn["head"]["text"].partition(": ")
    config = CONFIGS[name]
    rows = [_row(config, signal) for signal in drawn["signal"] if signal["name"] != "clk"]
    assert len({len(row.values) for row in rows}) == 1, f"{drawn['head']['text']}: rows of several lengths"
    return Diagram(config, SITUATIONS[situation], tuple(rows))


def _row(config: SPUConfig, signal: Mapping[str, Any]) -> Row:
    paths = tuple(f"sysreg.{part}" for part in ENCODING) if signal["name"] == REGISTER else (signal["name"],)
    labels = iter(signal.get("data", ()))
    values: list[tuple[int, ...] | None] = []
    for level in signal["wave"]:
        match level:
            case "0" | "1":
                values.append((int(level),) * len(paths))
            case "x":
                values.append(None)
            case ".":
                values.append(values[-1])
            case "=":
                values.append(_meaning(config, paths, str(next(labels))))
            case _:
                raise ValueError(f"{signal['name']}: a wave must be of 0, 1, x, = and ., not {level!r}")
    assert next(labels, None) is None, f"{signal['name']}: a label that no cycle uses"
    return Row(paths, tuple(values))


def _meaning(config: SPUConfig, paths: tuple[str, ...], label: str) -> tuple[int, ...]:
    if label in OPERATIONS:
        return (operation_bits(config, OPERATIONS[label]),)
    if label in BRANCHES:
        location = BRANCHES[label]
        members = LocationLayout(config).members
        return (LocationLayout(config).const({name: getattr(location, name) for name in members}).as_bits(),)
    for names in (AccessOutcome, WriteFaultKind):
        if label in names.__members__:
            return (names[label].value,)
    if register := getattr(arch, f"{label}_EL1", None):
        return tuple(getattr(register, part) for part in ENCODING)
    return (int(label, 0),)


@cache
def simulated(config: SPUConfig) -> tuple[SPU, Bench]:
    dut = SPU(config)
    return dut, Bench(dut)


def is_input(dut: SPU, path: str) -> bool:
    """Return whether the path names an input, or a field of one."""
    ports = {".".join(map(str, port)): member for port, member, _ in dut.signature.flatten(dut)}
    return any(member.flow is In and f"{path}.".startswith(f"{port}.") for port, member in ports.items())


class Player:
    """Driver that plays the cycles of a diagram on an SPU, whose ports are named by their paths."""

    def __init__(self, ctx: Any, dut: SPU, config: SPUConfig):
        self._ctx, self._dut, self._config = ctx, dut, config
        self._random = Random(SEED)
        self.memory = bytearray()

    def _port(self, path: str) -> Value:
        """Return a port or a field of a port."""
        found: Any = self._dut
        for step in path.split("."):
            found = found[int(step)] if step.isdigit() else getattr(found, step)
        return Value.cast(found)

    async def cycle(self, inputs: Mapping[str, int], outputs: tuple[str, ...] = ()) -> tuple[int, ...]:
        """Run one cycle: drive `inputs`, store accepted beats, and return the values of `outputs`."""
        beat = self._dut.write.beat
        pairs = [(self._port(path), value) for path, value in inputs.items()]
        ports = [self._port(path) for path in outputs]
        *values, taken, data, strobe = await cycle(
            self._ctx, pairs, *ports, beat.valid & beat.ready, beat.p.data, beat.p.strobe
        )
        if taken:
            octets = data.to_bytes(self._config.bus_bytes, "little")
            self.memory += bytes(octet for number, octet in enumerate(octets) if strobe >> number & 1)
        return tuple(values)

    async def set_up(self, situation: Situation) -> None:
        await self.cycle({path: value for path, value in EL1_OWNS.items() if is_input(self._dut, path)})
        await self._write(situation.registers)
        if situation.then is not None:
            load = operation_bits(self._config, OPERATIONS["load"])
            await self.cycle({"sampling.valid": 1})
            await self._idle({"sampling.valid": 0})
            await self.cycle({"finish.valid": 1, "finish.operation": load})
            await self._idle({"finish.valid": 0})
            await self._write(situation.then)

    async def _write(self, registers: Mapping[str, int]) -> None:
        """Write registers at EL1. EL0 executes before and after."""
        for name, value in registers.items():
            register = getattr(arch, name)
            encoding = {f"sysreg.{part}": getattr(register, part) for part in ENCODING}
            await self.cycle({"pe.el": 1, **encoding, "sysreg.valid": 1, "sysreg.write": 1, "sysreg.wdata": value})
        await self._idle({"pe.el": 0, "sysreg.valid": 0})

    async def _idle(self, inputs: Mapping[str, int]) -> None:
        """Run cycles until the SPU is idle."""
        for _ in range(20):
            await self.cycle(inputs)

    async def play(self, rows: tuple[Row, ...]) -> list[str]:
        """Drive the inputs as drawn, and return a sentence for each output that differs from the drawing."""
        wrong: list[str] = []
        drawn = [
            (path, [value and value[place] for value in row.values])
            for row in rows
            for place, path in enumerate(row.paths)
        ]
        inputs = [(path, levels) for path, levels in drawn if is_input(self._dut, path)]
        outputs = [(path, levels) for path, levels in drawn if not is_input(self._dut, path)]
        for now in range(len(rows[0].values)):
            anything = {path: self._random.getrandbits(len(self._port(path))) for path, _ in inputs}
            levels = {path: anything[path] if levels[now] is None else levels[now] for path, levels in inputs}
            seen = await self.cycle(levels, tuple(path for path, _ in outputs))
            for (path, wanted), value in zip(outputs, seen, strict=True):
                if wanted[now] not in (None, value):
                    wrong.append(f"cycle {now}: {path} is {value:#x}, not {wanted[now]:#x}")
        return wrong


DIAGRAMS = {path.stem: path.read_text() for path in sorted(timing.FOLDER.glob("*.yaml"))}
"""Sources of the timing diagrams, by name."""


def test_timing_diagrams_are_up_to_date() -> None:
    stale = [path.name for path, drawing in timing.current().items() if path.read_text() != drawing]
    assert stale == [], "`python -m docs` writes them"
    assert {path.stem for path in timing.FOLDER.glob("*.svg")} == DIAGRAMS.keys()


def test_each_diagram_is_on_a_page() -> None:
    pages = "\n".join(path.read_text() for path in DOCS.rglob("*.md"))
    assert [name for name in DIAGRAMS if f"/timing/{name}.svg)" not in pages] == []


def play(diagram: Diagram) -> tuple[list[str], bytes]:
    """Return the differences from the diagram, and all bytes that were written to memory."""
    dut, bench = simulated(diagram.config)

    async def scenario(ctx: Any) -> tuple[list[str], bytes]:
        player = Player(ctx, dut, diagram.config)
        await player.set_up(diagram.situation)
        return await player.play(diagram.rows), bytes(player.memory)

    return bench.run(scenario)


@pytest.mark.parametrize("name", DIAGRAMS)
def test_the_spu_matches_the_diagram(name: str) -> None:
    wrong, _ = play(parse(DIAGRAMS[name]))
    assert wrong == []


@pytest.mark.parametrize("name", DIAGRAMS)
def test_an_output_drawn_a_cycle_late_is_detected(name: str) -> None:
    """Check each output that changes."""
    diagram = parse(DIAGRAMS[name])
    dut, _ = simulated(diagram.config)
    inputs = {path for row in diagram.rows for path in row.paths if is_input(dut, path)}
    late = [
        row if inputs.issuperset(row.paths) else Row(row.paths, (row.values[0], *row.values[:-1]))
        for row in diagram.rows
    ]
    moved = {path for row, before in zip(late, diagram.rows, strict=True) if row != before for path in row.paths}
    wrong, _ = play(diagram._replace(rows=tuple(late)))
    assert {line.split()[2] for line in wrong} == moved


def recorded(name: str) -> Record:
    """Return the record of the operation in a diagram. Memory accepts it after the end of the diagram."""
    diagram = parse(DIAGRAMS[name])
    rows = [Row(row.paths, row.values + row.values[-1:] * 20) for row in diagram.rows]
    over = len(diagram.rows[0].values)
    rows.append(Row(("write.beat.ready",), ((0,),) * over + ((1,),) * 20))
    _, data = play(diagram._replace(rows=tuple(rows)))
    [record] = decode_records(data)
    return record


@pytest.mark.parametrize(
    ("name", "latencies"),
    [
        (
            "sampling_one_lane",
            {"ISSUE": 4, "TOTAL": 8, "TRANSLATION": 2},
        ),
        ("sampling_two_lanes", {"ISSUE": 2, "TOTAL": 5, "TRANSLATION": 0}),
    ],
)
def test_the_drawn_latencies_are_recorded(name: str, latencies: dict[str, int]) -> None:
    """Check the latencies in the text below the diagram."""
    counters = recorded(name).counters
    assert {index.name: counters[index] for index in arch.CounterIndex if index in counters} == latencies


def test_the_drawn_previous_branch_target_is_recorded() -> None:
    addresses = recorded("previous_branch").addresses
    low = {index: address & (1 << arch.ADDRESS_BITS) - 1 for index, address in addresses.items()}
    assert low[arch.AddressIndex.PREVIOUS_TARGET] == BRANCHES["A"].address
    assert low[arch.AddressIndex.TARGET] == BRANCHES["B"].address


SAID = {
    "in v1p4 the first beat is on the port nine cycles after finish": """
{head: {text: "v1p4: the next operation is selected"},
 signal: [
  {name: "sampling.valid",    wave: "010............."},
  {name: "sampling.sampled",  wave: "0....10........."},
  {name: "finish.valid",      wave: "0.....10........"},
  {name: "finish.vanished",   wave: "0..............."},
  {name: "finish.operation",  wave: "x.....=x........", data: ["load"]},
  {name: "write.beat.valid",  wave: "0..............1"}]}""",
    "a packed record makes the buffer full four cycles after done": """
{head: {text: "arm_model: the last record that fits waits, of 128 bytes"},
 signal: [
  {name: "write.beat.ready",  wave: "1............."},
  {name: "write.beat.p.last", wave: "0...1xxxxxxxxx"},
  {name: "write.done",        wave: "0.....10......"},
  {name: "write.fault.kind",  wave: "0............."},
  {name: "pmbirq",            wave: "0.........1..."}]}""",
    "the next packed record is on the port two cycles after done": """
{head: {text: "arm_model: a record waits, and the next operation is selected"},
 signal: [
  {name: "sampling.valid",    wave: "010........................."},
  {name: "finish.valid",      wave: "0.....10...................."},
  {name: "finish.vanished",   wave: "0..........................."},
  {name: "finish.operation",  wave: "x.....=x....................", data: ["load"]},
  {name: "write.beat.ready",  wave: "0..........1................"},
  {name: "write.beat.valid",  wave: "1...............0.....1....0"},
  {name: "write.done",        wave: "0...................10......"},
  {name: "write.fault.kind",  wave: "0..........................."}]}""",
    "a finish in the cycle of sampled is ignored, and the slot stays taken": """
{head: {text: "minimal: the next operation is selected"},
 signal: [
  {name: "sampling.valid",    wave: "010........"},
  {name: "sampling.sampled",  wave: "0.10......."},
  {name: "finish.valid",      wave: "0.10..10..."},
  {name: "finish.vanished",   wave: "0.........."},
  {name: "pmu.sample_feed",   wave: "0........10"}]}""",
    "a finish without a sampled operation is ignored": """
{head: {text: "minimal: the next operation is selected"},
 signal: [
  {name: "finish.valid",      wave: "010......."},
  {name: "finish.vanished",   wave: "0........."},
  {name: "pmu.sample_feed",   wave: "0........."}]}""",
    "a done in the cycle of the last beat ends the record": """
{head: {text: "minimal: a record waits"},
 signal: [
  {name: "write.beat.ready",  wave: "1..................."},
  {name: "write.beat.p.last", wave: "0......1x..........."},
  {name: "write.done",        wave: "0......10..........."},
  {name: "write.fault.kind",  wave: "0..................."},
  {name: "drain.request",     wave: "1..................."},
  {name: "drain.done",        wave: "0.......x1.........."}]}""",
    "an unknown kind of fault has EC and MSS zero": """
{head: {text: "minimal: a record waits"},
 signal: [
  {name: "write.beat.ready",  wave: "1..................."},
  {name: "write.done",        wave: "0........10........."},
  {name: "write.fault.kind",  wave: "x........=x.........", data: ["7"]},
  {name: "write.fault.fsc",   wave: "x........=x.........", data: ["0x07"]},
  {name: "write.fault.word",  wave: "x........0x........."},
  {name: "write.fault.external", wave: "x........0x........."},
  {name: "pe.el",             wave: "0............1......"},
  {name: "sysreg.valid",      wave: "0............10....."},
  {name: "sysreg.write",      wave: "x............0x....."},
  {name: "sysreg.op1 to op2", wave: "x............=x.....", data: ["PMBSR"]},
  {name: "sysreg.rdata",      wave: "x...............=x..", data: ["0x20000"]}]}""",
}
"""Behavior that no diagram shows: stated in docs/explanation/theory.md and, for a core that breaks a rule, in
docs/reference/ports.md.
"""


@pytest.mark.parametrize("block", SAID.values(), ids=SAID)
def test_stated_behavior(block: str) -> None:
    wrong, _ = play(parse(block))
    assert wrong == []


@pytest.mark.parametrize("page", ["howto/integration", "howto/variation", "reference/configurations"])
def test_commands_print_the_shown_output(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run the commands of a page. Their output must contain the lines that the page shows."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "console"):
        command, *shown = block.splitlines()
        prompt, verb, *arguments = shlex.split(command)
        assert (prompt, verb) == ("$", "spurtle")
        status = main(arguments)
        printed = capsys.readouterr()
        assert set(shown) <= {*printed.out.splitlines(), *printed.err.splitlines()}, command
        assert status == (2 if any(line.startswith("spurtle: --set:") for line in shown) else 0), command


def test_python_generates_the_files_of_the_table() -> None:
    [block] = blocks("howto/variation", "python")
    names: dict[str, Any] = {}
    exec(block, names)
    [table] = re.findall(r"^\| file \| content \|\n(.*?)\n\n", read("howto/integration"), re.DOTALL | re.MULTILINE)
    listed: set[str] = set()
    for row in table.splitlines()[1:]:
        first, *others = re.findall(r"`([^`]+)`", row.split("|")[1].replace("minimal", names["config"].name))
        listed |= {first, *(first.rpartition(".")[0] + other for other in others)}
    assert listed == names["product"].keys()


def test_the_fusesoc_example_uses_existing_parameters() -> None:
    """test_collateral.py checks that FuseSoC builds a core with the generator."""
    [block] = blocks("howto/fusesoc", "yaml")
    [asked] = yaml.safe_load(block)["generate"].values()
    generators = yaml.safe_load((ROOT / "fusesoc" / "spurtle.core").read_text())["generators"]
    assert asked["generator"] in generators
    parameters = asked["parameters"]
    config = vary(CONFIGS[parameters["config"]], parameters["set"])
    assert yaml.safe_load(block)["targets"]["default"]["toplevel"] == config.module
