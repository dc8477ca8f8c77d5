"""Generated Verilog: ports, text, and the results of linters, simulators and synthesis."""

import json
import re
import shutil
import subprocess
from functools import cache
from itertools import product
from pathlib import Path

import pyslang
import pytest
from amaranth.utils import exact_log2

from formal.record.sample import unimplemented_facts
from spurtle.arch import PAGE_BYTES, REGISTER_BITS, Event
from spurtle.config import CONFIGS
from spurtle.export import verilog
from spurtle.export.ports import Reset
from spurtle.export.waivers import LINT_WAIVERS
from spurtle.gateware.beat import beat_layout
from spurtle.gateware.control import PermissionsLayout
from spurtle.gateware.packer import STEP_BYTES
from spurtle.gateware.sample import SampleLayout, StartLayout
from spurtle.support.version import INTERFACE_VERSION
from tests.support import verilator_releases
from tests.support.golden_ports import golden_file, port_list
from tests.support.tiers import configurations, tiers

ICARUS = pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog (iverilog) is not installed")

configs = pytest.mark.parametrize("name", configurations([*CONFIGS]))


@cache
def generated(name: str) -> verilog.Verilog:
    return verilog.spu(CONFIGS[name])


@configs
def test_ports_are_the_published_ports(name: str) -> None:
    """Integrators connect these ports by name, so that a change is a breaking change."""
    assert port_list(generated(name).ports) == golden_file(name).read_text(), (
        f"a breaking change; `python -m tests.support.golden_ports {name}` writes the new ports"
    )


@configs
def test_text_declares_the_ports(name: str) -> None:
    design = generated(name)
    declared = {
        (port, {"input": "in", "output": "out"}[direction], int(high or 0) + 1)
        for direction, high, port in re.findall(
            r"^  (input|output) (?:\[(\d+):0\] )?(\w+);$", design.text, re.MULTILINE
        )
    }
    assert declared == {(port.name, port.direction, port.width) for port in design.ports}


@configs
def test_text_states_the_interface_version(name: str) -> None:
    assert f"\n// Interface version: {INTERFACE_VERSION}\n" in generated(name).text


@configs
def test_text_has_one_module_without_escaped_names(name: str) -> None:
    text = generated(name).text
    assert re.findall(r"^module (\w+)", text, re.MULTILINE) == [f"spurtle_{name}"]
    assert "\\" not in text, "an escaped name"
    # Memories have initial contents.
    text = re.sub(r"initial begin\n(    \w+\[\d+\] = \d+'h[0-9a-f]+;\n)+  end", "", text)
    assert not re.search(r"\b(assert|assume|cover|initial|\$\w+)\b", text), "not synthesizable"


def lint(design: verilog.Verilog, folder: Path, waivers: list[str]) -> str:
    """Return the messages of Verilator. Warnings are not errors."""
    source = folder / "other_name.v"
    source.write_text(design.text)
    timed = folder / "timed.v"
    timed.write_text("`timescale 1ns/1ps\nmodule timed(); endmodule\n")
    options = "--lint-only", "-Wall", "-Wno-fatal", *(f"-Wno-{waiver}" for waiver in waivers)
    return verilator_releases.require_release().run(
        *options, "--top-module", design.module, source, timed, folder=folder
    )


@configs
def test_verilator_reports_only_waived_warnings(name: str, tmp_path: Path) -> None:
    messages = lint(generated(name), tmp_path, list(LINT_WAIVERS))
    assert not re.search("%(Warning|Error)", messages), messages


@pytest.mark.full
@pytest.mark.parametrize("name", CONFIGS)
def test_verilator_finds_no_loop_with_an_asynchronous_reset(name: str, tmp_path: Path) -> None:
    """Yosys names registers with an asynchronous reset differently."""
    reset = Reset(asynchronous=True, active_low=True)
    design = verilog.spu(CONFIGS[name], shell="axi4-apb", outstanding=2, reset=reset)
    messages = lint(design, tmp_path, list(LINT_WAIVERS))
    assert not re.search("%(Warning|Error)", messages), messages


@pytest.mark.full
def test_every_waiver_is_needed(tmp_path: Path) -> None:
    warned = set[str]()
    for name in CONFIGS:
        warned |= set(re.findall(r"%Warning-(\w+):", lint(generated(name), tmp_path, [])))
    # This release divides WIDTH into several rules.
    assert {"WIDTH" if rule.startswith("WIDTH") else rule for rule in warned} == set(LINT_WAIVERS)


@ICARUS
@pytest.mark.parametrize("standard", ["2005", "2012"])
@configs
def test_icarus_compiles_the_text(name: str, standard: str, tmp_path: Path) -> None:
    (tmp_path / "design.v").write_text(generated(name).text)
    command = ["iverilog", f"-g{standard}", "-Wall", "-Wno-timescale", "-o", "out", "design.v"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout + run.stderr) == (0, "")


@configs
def test_slang_finds_no_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "design.v").write_text(generated(name).text)
    compilation = pyslang.ast.Compilation()
    compilation.addSyntaxTree(pyslang.syntax.SyntaxTree.fromFile(str(tmp_path / "design.v")))
    errors = [diagnostic for diagnostic in compilation.getAllDiagnostics() if diagnostic.isError()]
    assert not errors, [str(error.code) for error in errors]


@configs
def test_text_has_no_latch_and_no_loop(name: str, tmp_path: Path) -> None:
    (tmp_path / "design.v").write_text(generated(name).text)
    script = """
    read_verilog design.v; hierarchy -check; proc; flatten; opt
    check -assert
    select -assert-none t:$dlatch t:$adff t:$dlatchsr t:$mem_v2
    select -assert-min 1 t:$sdff t:$sdffe t:$dff t:$dffe %u %u %u
    """
    verilog.yosys(script.replace("\n", ";"), tmp_path)


def state_bits(name: str, family: str) -> int:
    """Return the number of bits that the SPU must store.

    These are registers, permissions, the recorded part of sampled operations, an offset to the system counter, the
    beats of the serializer and of the write port, and a System register access. A packed layout has a step of a record,
    a shifted step, and the bytes that have been appended.

    With several slots, each slot has its counters, and one sample is copied out of the slots. What is known at finish,
    and the states of the PE, are in memories. Only ECP5 has memories with asynchronous reads for the states; iCE40
    stores them in registers, and what is known at finish in block RAM.
    """
    config = CONFIGS[name]
    registers = sum(config.writable(register).bit_count() for register in config.registers)
    # Without EL2 there is no CONTEXTIDR_EL2 and no permission to collect it. Likewise for the address of FEAT_NV2.
    start = StartLayout(config).size - (0 if config.el2 else 33) - (not config.nv2)
    counters = len(config.latencies) * config.counter_bits
    derived = {Event.GENERATED_EXCEPTION, Event.RETIRED, Event.NOT_TAKEN} | ({Event.SMCU} if config.spe_sme else set())
    finished = SampleLayout(config).size - StartLayout(config).size - counters
    finished -= 8 * config.events_bytes - len(config.events - derived) + len(unimplemented_facts(config))
    stored, delayed = start + counters + finished, config.answer_latency * start
    if config.slots > 1:
        words = config.slots + config.answer_latency + 1
        stored += config.slots * counters + (words * start if family == "ice40" else 0)
        # The words of the slots and of the states that are delayed, one-hot.
        delayed = start + words * (config.slots + config.answer_latency)
    # With EL2, the offset to the counter is registered, and its high half with a borrow once more.
    delayed += PermissionsLayout(config).size + (64 + 32 + 1) * config.el2
    # The skid register, and the beat before it, which a fixed layout selects in two halves. A packed layout has three
    # steps in place of that. Up to one byte less than a beat precedes two of them: the shifted and the assembled one.
    packer = 8 * (3 * STEP_BYTES + 2 * (config.bus_bytes - 1))
    beats = beat_layout(config).size + (packer if config.layout.packed else 16 * config.bus_bytes)
    # The data of a System register access in two stages, and its result. The word at the write port, and two pages that
    # the issue pointer is compared by.
    access, write = 3 * REGISTER_BITS, 8 * config.bus_bytes + 2 * (REGISTER_BITS - exact_log2(PAGE_BYTES))
    return registers + stored + delayed + beats + access + write


@pytest.mark.parametrize(
    ("name", "family"), tiers(full=[("minimal", "gowin"), ("minimal", "xilinx")], long=[("v1p4", "gowin")])
)
def test_other_families_synthesize_the_text(name: str, family: str, tmp_path: Path) -> None:
    (tmp_path / "design.v").write_text(generated(name).text)
    last = "map_luts" if family == "gowin" else "fine"  # later steps are specific to the tool, and slow for AMD
    verilog.yosys(f"read_verilog design.v; synth_{family} -top spurtle_{name} -run begin:{last}", tmp_path)


@pytest.mark.parametrize(
    ("active_low", "asynchronous"), tiers(fast=[(True, True)], full=product((False, True), repeat=2))
)
def test_every_reset_has_the_selected_kind(active_low: bool, asynchronous: bool, tmp_path: Path) -> None:
    """Each register with a reset has a reset of this kind."""
    reset = Reset(asynchronous, active_low)
    text = verilog.spu(CONFIGS["minimal"], reset=reset).text
    edge = f", {'negedge rst_n' if active_low else 'posedge rst'}"
    assert {*re.findall(r"always @\((.*)\)", text)} <= {"posedge clk", f"posedge clk{edge if asynchronous else ''}"}
    (tmp_path / "design.v").write_text(text)
    kinds = "t:$adff t:$adffe" if asynchronous else "t:$sdff t:$sdffe t:$sdffce"
    others = "t:$sdff t:$sdffe t:$sdffce" if asynchronous else "t:$adff t:$adffe"
    verilog.yosys(
        "read_verilog design.v; hierarchy -check; proc; opt_dff\n"
        f"select -assert-none {others}\n"
        f"select -assert-min 20 {kinds} {'%u ' * (len(kinds.split()) - 1)}",
        tmp_path,
    )


@pytest.mark.parametrize(
    ("name", "family"),
    tiers(
        fast=[("minimal", "ice40")],
        full=[("neoverse_n1", "ice40"), *product(("minimal", "v1p4"), ("ecp5",))],
        long=product(CONFIGS, ("ice40", "ecp5")),
    ),
)
def test_synthesis_keeps_every_register(name: str, family: str, tmp_path: Path) -> None:
    """Synthesis would delete the logic of an output without a driver, and the count would be lower."""
    (tmp_path / "design.v").write_text(generated(name).text)
    script = (
        f"read_verilog design.v; synth_{family} -top spurtle_{name} -run begin:map_luts; tee -q -o stat.json stat -json"
    )
    verilog.yosys(script, tmp_path)
    cells = json.loads((tmp_path / "stat.json").read_text())["design"]["num_cells_by_type"]
    flip_flops = sum(count for cell, count in cells.items() if "FF" in cell)
    assert state_bits(name, family) <= flip_flops <= 1.3 * state_bits(name, family)
