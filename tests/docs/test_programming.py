"""The code of docs/howto/programming.md on the compiled SPU, and the consequences of broken rules."""

import re
from typing import Any

import numpy as np
import pytest

from spurtle.arch import (
    BSC,
    EC,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSDSFR_EL1,
    PMSEVFR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIRR_EL1,
    PMSLATFR_EL1,
    PMSNEVFR_EL1,
)
from spurtle.config import CONFIGS, SPUConfig
from spurtle.export import regmap
from spurtle_sim.cosim.spu import CompiledSPU
from spurtle_sim.model.operation import Facts
from spurtle_sim.trace.dtypes import TIMED_OPERATION
from tests.support.paths import ROOT
from tests.support.tiers import configurations

TEXT = (ROOT / "docs" / "howto" / "programming.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
FULL = PMBSR_EL1.pack(S=1, MSS=BSC.BUFFER_FILLED)


class Guide:
    """Names that the code of the page has defined for a configuration.

    With `run` all code is executed, otherwise all but the last two blocks, the program and its records.
    """

    def __init__(self, config: SPUConfig, *, run: bool = False):
        self.names: dict[str, Any] = {}
        for block in BLOCKS if run else BLOCKS[:-2]:
            exec(block.replace('"neoverse_n1"', f'"{config.name}"'), self.names)
        self.config = config
        self.spu: CompiledSPU = self.names["engine"]
        self.base: int = self.names["BASE"]
        self.end: int = self.base + self.names["SIZE"]

    def play(self, count: int, *, settle: bool = True, finish: int = 40) -> None:
        """Play `count` loads, one every two cycles, that each take `finish` cycles."""
        loads = np.zeros(count, TIMED_OPERATION)
        loads["dispatch"] = 2 * np.arange(count)
        loads["issue"], loads["finish"] = 1, finish
        loads["facts"] = Facts(load=1, va_valid=1, retired=1, taken=1).pack()
        assert self.spu.play(loads, settle=settle) == count or self.spu.interrupt

    def begin(self, pointer: int, limit: int) -> None:
        """Start as the page does, with another buffer."""
        self.names["start"]()
        self.spu.write(PMBLIMITR_EL1, 0)
        self.spu.write(PMBPTR_EL1, pointer)
        self.spu.write(PMBLIMITR_EL1, limit | PMBLIMITR_EL1.pack(E=1))

    @property
    def status(self) -> int:
        return self.spu.read(PMBSR_EL1)


@pytest.fixture(params=configurations(CONFIGS))
def guide(request: pytest.FixtureRequest) -> Guide:
    return Guide(request.param)


@pytest.mark.parametrize("config", configurations(CONFIGS))
def test_the_code_of_the_guide_takes_all_records(config: SPUConfig, capsys: pytest.CaptureFixture[str]) -> None:
    guide = Guide(config, run=True)
    assert re.search(r"\d+ records, \d+ interrupts, none lost", capsys.readouterr().out)
    counts = guide.spu.counts()
    # Operations are numbered from zero, and each fourth is a load. So is each fourth of the selected ones.
    assert counts["feed"] == len(range(256, 100_000, 257))
    assert len(guide.names["records"]) == counts["filtrate"] == counts["records"] == len(range(256, 100_000, 4 * 257))
    assert guide.names["interrupts"] == counts["buffer_full"] >= 1
    assert (counts["collision"], counts["strays"]) == (0, 0)
    assert guide.names["events"] == config.filter_events
    written = [guide.spu.read(register) for register in (PMSCR_EL1, PMBLIMITR_EL1)]
    assert written == [config.fixed(PMSCR_EL1), 0]


def test_reset_values(guide: Guide) -> None:
    engine = CompiledSPU(guide.config)
    for register in guide.config.registers:
        assert engine.read(register) == regmap.reset(guide.config, register), register.name


@pytest.mark.parametrize("code", [EC.STAGE_1, EC.STAGE_2, EC.GRANULE_PROTECTION, EC.OTHER])
def test_the_handler_reports_a_fault(guide: Guide, code: EC) -> None:
    guide.names["start"]()
    guide.spu.write(PMBSR_EL1, PMBSR_EL1.pack(S=1, EC=code, DL=1))
    assert guide.spu.interrupt
    with pytest.raises(RuntimeError, match=f"EC {code:#x}"):
        guide.names["serve"]()


def test_the_handler_ignores_another_interrupt(guide: Guide) -> None:
    guide.names["start"]()
    guide.names["serve"]()
    assert guide.names["interrupts"] == 0


def test_a_pointer_without_space_for_a_record_is_a_full_buffer(guide: Guide) -> None:
    largest, align = guide.names["largest"], guide.names["align"]
    wrong = {guide.end - largest + align, guide.end, guide.base ^ 1 << 56, guide.base + align // 2}
    for pointer in wrong - {guide.base}:
        guide.begin(pointer, guide.end)
        guide.play(1000)
        assert guide.status == FULL and guide.spu.interrupt, f"{pointer:#x}"
        assert guide.spu.read(PMBPTR_EL1) == pointer
        guide.spu.write(PMBLIMITR_EL1, 0)
        guide.spu.write(PMBSR_EL1, 0)
    assert not guide.spu.memory.any()
    guide.begin(guide.end - largest, guide.end)
    guide.play(1000)
    assert guide.spu.memory.any() and guide.status == FULL


def test_nothing_is_written_at_the_limit(guide: Guide) -> None:
    size = guide.end - guide.base
    guide.spu.set_buffer(guide.base, 2 * size)
    guide.begin(guide.base, guide.end)
    guide.play(100_000)
    assert guide.status == FULL
    assert guide.spu.memory[size - guide.names["largest"] : size].any()
    assert not guide.spu.memory[size:].any()
    assert guide.spu.counts()["strays"] == 0


def test_disabling_the_buffer_before_the_drain_drops_the_record(guide: Guide) -> None:
    guide.names["start"]()
    guide.play(258, settle=False, finish=200)
    guide.spu.write(PMBLIMITR_EL1, 0)
    guide.names["stop"]()
    guide.play(0)
    assert guide.spu.read(PMBPTR_EL1) == guide.base and not guide.names["taken"]
    assert guide.spu.counts()["records"] == 0


def test_draining_before_disabling_the_buffer_keeps_the_record(guide: Guide) -> None:
    """The record that the previous test drops is kept."""
    guide.names["start"]()
    guide.play(258, settle=False, finish=200)
    guide.spu.write(PMSCR_EL1, 0)
    guide.play(0)
    guide.names["stop"]()
    assert guide.names["taken"] and guide.spu.counts()["records"] == 1


def test_clearing_the_status_with_the_old_pointer_is_a_full_buffer(guide: Guide) -> None:
    guide.names["start"]()
    guide.play(100_000)
    end = guide.spu.read(PMBPTR_EL1)
    for _ in range(2):
        guide.spu.write(PMBSR_EL1, 0)
        guide.play(20)  # until the SPU has compared the pointer with the limit
        assert guide.status == FULL and guide.spu.interrupt
    assert guide.spu.read(PMBPTR_EL1) == end
    guide.names["serve"]()
    assert guide.status == 0 and not guide.spu.interrupt
    assert len(guide.names["taken"]) == end - guide.base


def test_the_first_interval_is_the_value_of_the_counter(guide: Guide) -> None:
    guide.names["start"]()
    guide.spu.write(PMSICR_EL1, 5)
    guide.play(5)
    guide.spu.drain()
    assert guide.spu.counts()["feed"] == 1
    guide.play(100)
    guide.spu.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=2))
    # The rest of the current interval, the operation that reloads, and all but one of the next interval.
    guide.play(157 + 512)
    assert guide.spu.counts()["feed"] == 2
    assert guide.spu.read(PMSICR_EL1) == 1


def test_a_filter_without_a_setting_has_no_effect(guide: Guide) -> None:
    guide.names["start"]()
    enabled = {name: 1 for name in guide.config.filters if name != "FDS"}
    guide.spu.write(PMSFCR_EL1, PMSFCR_EL1.pack(**enabled))
    for register in (PMSEVFR_EL1, PMSLATFR_EL1, *([PMSNEVFR_EL1] if guide.config.fne else [])):
        guide.spu.write(register, 0)
    guide.play(258)
    guide.spu.drain()
    assert guide.spu.counts()["records"] == 1


def test_an_interval_shorter_than_an_operation_collides(guide: Guide) -> None:
    guide.names["start"]()
    for _ in range(guide.config.slots + 1):
        guide.spu.write(PMSICR_EL1, 1)
        guide.play(1, settle=False, finish=3000)
    guide.play(0)
    assert guide.status == PMBSR_EL1.pack(COLL=1)
    assert guide.spu.counts()["collision"] == 1
    guide.play(100_000)
    assert guide.status == FULL | PMBSR_EL1.pack(COLL=1), "COLL stays"


def test_registers_that_are_not_implemented_are_undefined(guide: Guide) -> None:
    for register, implemented in ((PMSNEVFR_EL1, guide.config.fne), (PMSDSFR_EL1, guide.config.fds)):
        if implemented:
            assert guide.spu.read(register) == 0
        else:
            with pytest.raises(ValueError, match="UNDEFINED"):
                guide.spu.read(register)
            with pytest.raises(ValueError, match="UNDEFINED"):
                guide.spu.write(register, 1)


def test_bits_that_are_not_implemented_are_zero(guide: Guide) -> None:
    for register in guide.config.registers:
        if not register.read_only and register.name != "IMP_PMSRNDR_EL1":
            guide.spu.write(register, (1 << 64) - 1)
            assert guide.spu.read(register) == regmap.implemented(guide.config, register), register.name
            guide.spu.write(register, 0)
