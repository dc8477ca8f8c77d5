"""Tests of the committed executables: they are built from their sources, and behave as their table specifies."""

import subprocess
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from spurtle_sim.emulator.program import Program
from spurtle_sim.trace.dtypes import OPERATION
from tests.support.cross_compiler import needs_compiler
from tests.support.paths import WORKLOADS

TABLE: dict[str, dict[str, Any]] = tomllib.loads((WORKLOADS / "workloads.toml").read_text())
UNPADDED = [(name, OPERATION[name]) for name in OPERATION.names or ()]


@needs_compiler
def test_executables_rebuild_byte_for_byte(tmp_path: Path) -> None:
    subprocess.run(["make", "-s", "-C", str(WORKLOADS), f"OUT={tmp_path}"], check=True)
    for name in TABLE:
        assert (tmp_path / f"{name}.elf").read_bytes() == (WORKLOADS / f"{name}.elf").read_bytes(), name


def test_the_table_contains_every_workload() -> None:
    assert sorted(TABLE) == sorted(path.stem for path in WORKLOADS.glob("*.c"))


@pytest.mark.parametrize("name", TABLE)
def test_workloads_behave_as_their_table_specifies(
    name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = TABLE[name]
    monkeypatch.chdir(WORKLOADS)  # the path of the program is on its stack, so its length changes addresses
    program = Program(Path(f"{name}.elf"))
    functions = program.image.functions
    start = next(address for address, function in functions if function == expected["hot"])
    end = min(address for address, _ in functions if address > start)
    total = in_hot_function = 0
    stream = sha256()
    for operations in program.run():
        total += len(operations)
        stream.update(operations.astype(UNPADDED).tobytes())
        in_hot_function += int(((operations["pc"] >= start) & (operations["pc"] < end)).sum())
    assert program.exit_status == 0
    assert capfd.readouterr().out == expected["output"] + "\n"
    assert total == expected["operations"]
    assert stream.hexdigest() == expected["stream"]
    assert in_hot_function > total / 2, "the hot function must retire most operations"
