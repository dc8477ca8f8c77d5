"""Core files: the named cores, and files with errors."""

import re
from pathlib import Path

import pytest

from docs.cores import core_values
from spurtle.support.errors import PROFILE_FAILED, UserError
from spurtle_sim.cli import main
from spurtle_sim.timing.core import NAMED_CORES, read_core
from spurtle_sim.timing.parameters import TABLE
from spurtle_sim.trace.instruction import InstructionKind
from tests.support.paths import ROOT, WORKLOADS

HEAD = 'format = 1\nsummary = "A core."\nbase = "neoverse_n1"\n'
PAGE = ROOT / "docs" / "reference" / "cores.md"


def entry(name: str, value: object, unit: str) -> str:
    return f'{name} = {{ value = {value}, unit = "{unit}", source = "a test" }}\n'


@pytest.mark.parametrize("name", NAMED_CORES)
def test_named_cores_have_a_source_for_each_value(name: str) -> None:
    core = read_core(name)
    assert core.summary.endswith(".")
    names = [key for key, item in TABLE.items() if not item.kinds]
    for key, item in TABLE.items():
        names += [f"{key}.{kind.name.lower()}" for kind in item.kinds if kind in getattr(core.parameters, key)]
    assert core.sources.keys() == {*names}
    assert all(core.sources.values())


def test_each_file_of_a_core_has_a_name() -> None:
    files = (ROOT / "sim/spurtle_sim/timing/cores").iterdir()
    assert {path.stem for path in files} == {*NAMED_CORES}


def test_a_file_changes_parameters_of_its_base(tmp_path: Path) -> None:
    path = tmp_path / "core.toml"
    path.write_text(HEAD + entry("l2_bytes", 256, "KiB") + entry("latencies.divide", 20, "cycles"))
    core, base = read_core(str(path)), read_core("neoverse_n1")
    assert core.parameters.l2_bytes == 256 << 10
    assert core.parameters.latencies == {**base.parameters.latencies, InstructionKind.DIVIDE: 20}
    assert core.sources["l2_bytes"] == core.sources["latencies.divide"] == "a test"
    assert core.sources["dram"] == base.sources["dram"]
    assert core.for_lanes(1).ops_per_cycle == 1
    assert core.for_lanes(16) == core.parameters


def test_the_example_in_the_documents_is_a_core_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    message = re.search(r"^spurtle: slow\.toml: (.*)$", PAGE.read_text(), re.MULTILINE)
    assert example and message
    path = tmp_path / "slow.toml"
    path.write_text(example[1])
    assert read_core(str(path)).parameters.dram == 300
    path.write_text(example[1].replace('256, unit = "KiB"', '2048, unit = "MiB"'))
    monkeypatch.chdir(tmp_path)
    assert main(["profile", "--core", "slow.toml", str(WORKLOADS / "sort.elf")]) == PROFILE_FAILED
    assert capsys.readouterr().err == f"{message[0]}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format = 2\n", "the key format must be 1"),
        ("format = 1\n", "the key summary must be a string"),
        ('format = 1\nsummary = ""\nbase = "cortex"\n', "base must be neoverse_n1, little, wide, not 'cortex'"),
        ('format = 1\nsummary = ""\n', "the parameter ops_per_cycle is missing, and there is no base that has it"),
        (HEAD + entry("l3", 1, "cycles"), "there is no parameter 'l3'"),
        (HEAD + entry("latencies.load", 1, "cycles"), "there is no parameter 'latencies.load'"),
        (HEAD + "latencies = 1\n", "latencies must be a table with a key for each kind of instruction"),
        (HEAD + "dram = 100\n", "dram must be a table with the keys value, unit and source"),
        (HEAD + entry("dram", 100, "ns"), "the unit of dram must be cycles, not 'ns'"),
        (HEAD + 'dram = { value = 1, unit = [], source = "x" }\n', "the unit of dram must be cycles, not []"),
        (HEAD + entry("l2_bytes", 100, "kB"), "the unit of l2_bytes must be bytes or KiB or MiB, not 'kB'"),
        (HEAD + entry("dram", 1.5, "cycles"), "dram must be an integer, not 1.5"),
        (HEAD + entry("ports.load", "[1]", "ports"), "ports.load must be a list of names, not [1]"),
        (HEAD + entry("ports.load", 1, "ports"), "ports.load must be a list of names, not 1"),
        (HEAD + entry("ports.load", '["A", "A"]', "ports"), "ports.load must name each port once, not ['A', 'A']"),
        (HEAD + entry("ports.load", "[]", "ports"), "ports of LOAD must be 1 to 32, not 0"),
        (HEAD + entry("occupancy.load", 0, "cycles"), "occupancy of LOAD must be 1 to 128, not 0"),
        (HEAD + entry("prefetch_streams", 3, "entries"), "prefetch_streams must be a power of two, not 3"),
        (HEAD + entry("l1i_bytes", 100, "KiB"), "l1i: entries / ways must be a power of two, not 1600 / 4"),
        (
            HEAD
            + entry("ports.load", [f"L{port}" for port in range(32)], "ports")
            + entry("ports.store", '["S"]', "ports"),
            "ports must have at most 32 names, not 33",
        ),
        (HEAD + entry("dram", 0, "cycles"), "dram must be 1 to 16384, not 0"),
        (HEAD + entry("l2_ways", 3, "ways"), "l2: entries / ways must be a power of two, not 16384 / 3"),
        (HEAD + 'dram = { value = 1, unit = "cycles", source = "" }\n', "the source of dram must be a string"),
    ],
)
def test_errors_of_a_file_are_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "core.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=f"^{re.escape(f'{path}: {message}')}$"):
        read_core(str(path))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^a core must be neoverse_n1, little, wide or a file, not 'cortex'$"):
        read_core("cortex")
    with pytest.raises(UserError, match=f"^cannot read {re.escape(str(tmp_path))}: Is a directory$"):
        read_core(str(tmp_path))
    for content in (b"format = \xff", b"format", b"format = " + b"[" * 5000):
        path = tmp_path / "core.toml"
        path.write_bytes(content)
        with pytest.raises(UserError, match=f"^{re.escape(str(path))} is not a core file: "):
            read_core(str(path))


def test_values_in_the_documents_have_their_sources() -> None:
    assert "| `l1d_bytes` | 65,536 (TRM) | 32,768 (assumed; configurable) | 65,536 (assumed) |" in core_values()
