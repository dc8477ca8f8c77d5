"""QEMU and Unicorn execute the same operations. The differences that are allowed are in `compare`."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from spurtle_sim.emulator.front_end import FrontEnd
from spurtle_sim.emulator.program import Program
from spurtle_sim.perf.events import Mmap
from spurtle_sim.qemu.find import Qemu
from spurtle_sim.qemu.program import QemuProgram
from tests.support.elf import EXIT, write_elf
from tests.support.paths import WORKLOADS
from tests.support.qemu import qemu_versions
from tests.support.random_programs import random_program
from tests.support.runs import compare_operations
from tests.support.seeds import SEED
from tests.support.tiers import tiers

STACK_TOP = 1 << 47
"""No other address of a program in Unicorn is in the 8 MiB before it."""

pytestmark = pytest.mark.parametrize("qemu", qemu_versions())


def executable(path: Path, words: Sequence[int]) -> Path:
    write_elf(path, words).chmod(0o755)
    return path


def operations(program: FrontEnd) -> NDArray[np.void]:
    return np.concatenate([batch.operations for batch in program.batches()])


def compare(qemu: Qemu, path: Path) -> tuple[FrontEnd, FrontEnd]:
    """Check that both execute the same operations. Return the two front ends.

    The stack is at other addresses. QEMU 7.2 reports no register: a conditional select or compare is recorded as
    passed, and DC ZVA without an address.
    """
    first, second = Program(path), QemuProgram(qemu, path)
    expected, found = operations(first), operations(second)
    addresses = compare_operations(qemu, expected, found)
    stack = (addresses < STACK_TOP) & (addresses >= STACK_TOP - (8 << 20))
    assert np.array_equal(found["va"][~stack], addresses[~stack])
    assert len(np.unique(found["va"][stack] - addresses[stack])) <= 1
    assert second.exit_status == first.exit_status
    return first, second


@pytest.mark.parametrize("number", tiers(fast=[0], full=range(1, 10)))
def test_random_programs(qemu: Qemu, number: int, tmp_path: Path) -> None:
    compare(qemu, executable(tmp_path / "program", random_program(SEED + number)))


@pytest.mark.full
@pytest.mark.parametrize("name", ["sort", "chase", "simd"])
def test_workloads(qemu: Qemu, name: str) -> None:
    compare(qemu, WORKLOADS / f"{name}.elf")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ([0xD2800B20, *EXIT], 89),
        ([0xD2800021, 0xF9400022, 0xF9400020], 139),  # ldr x2, [x1]
        ([0xD2A00821, 0xA9BF0021, 0xF8500C20, 0xD2800001, 0xF9400020], 139),  # stp, ldr with writeback, ldr
        ([0x00000000], 132),
        ([0xD4200000], 133),  # brk
    ],
)
def test_ends(qemu: Qemu, words: Sequence[int], status: int, tmp_path: Path) -> None:
    """An instruction that causes a fault has not retired. All before it have."""
    first, second = compare(qemu, executable(tmp_path / "program", [0x529FFFE2, 0x71000442, 0x54FFFFE1, *words]))
    assert first.exit_status == status
    assert bool(second.failure) == bool(first.failure)
    assert second.failure.partition(" (")[0].partition(":")[0] == first.failure.partition(" (")[0]


def test_mappings(qemu: Qemu) -> None:
    """Both report the segments of the program at the same addresses."""
    program = QemuProgram(qemu, WORKLOADS / "sort.elf")
    events = [event for batch in program.batches() for event in batch.events]
    mappings = [event.mapping for event in events if isinstance(event, Mmap)]
    assert mappings[:-1] == list(Program(WORKLOADS / "sort.elf").image.mappings[:-1])
    assert mappings[-1].path == "[stack]"
