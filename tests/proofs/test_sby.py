"""Proofs and cover checks of spec components by sby."""

from pathlib import Path

import pytest
from amaranth.hdl import Assert, Cover, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from formal.engine import sby, tools
from formal.engine.proof import Result
from spurtle.support.errors import UserError
from tests.support.countdown import Countdown


class CountdownSpec(wiring.Component):
    """Spec of a `Countdown`. It is correct unless a parameter makes its assertion or its cover wrong."""

    load: In(1)
    start: In(4)

    def __init__(self, *, limit: int = 13, goal: int = 13, covers: bool = True):
        self._limit = limit
        self._goal = goal
        self._covers = covers
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = Countdown()
        m.d.comb += [dut.load.eq(self.load & (self.start < 14)), dut.start.eq(self.start)]
        m.d.comb += Assert(dut.value <= self._limit)
        if self._covers:
            m.d.comb += Cover(dut.value == self._goal)
        return m


def test_a_failure_names_the_source_line_and_the_trace(build: Path) -> None:
    verdict = sby.check(CountdownSpec(limit=12), "wrong", mode="prove", depth=2)
    assert verdict.result is Result.FAIL
    assert "test_sby.py:" in verdict.evidence
    assert "trace.vcd" in verdict.evidence


@pytest.mark.full
def test_an_unreachable_cover_fails(build: Path) -> None:
    assert sby.check(CountdownSpec(), "reached", mode="cover", depth=3).result is Result.PASS
    verdict = sby.check(CountdownSpec(goal=14), "unreached", mode="cover", depth=3)
    assert verdict.result is Result.FAIL
    assert "Unreached cover" in verdict.evidence


def test_a_spec_without_covers_is_an_error(build: Path) -> None:
    with pytest.raises(ValueError, match="at least one cover"):
        sby.check(CountdownSpec(covers=False), "empty", mode="cover", depth=3)


def test_a_missing_solver_is_a_user_error(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sby, "SOLVER", "no-such-solver")
    with pytest.raises(UserError, match=r"^no-such-solver is not installed: run `pip install -e .\[formal\]`$"):
        sby.check(CountdownSpec(), "solverless", mode="prove", depth=2)


def test_a_hanging_tool_is_killed(tmp_path: Path) -> None:
    with pytest.raises(tools.ToolError, match=r"^sleep did not finish within 0.1 s$"):
        tools.run(["sleep", "60"], folder=tmp_path, seconds=0.1)
