"""Accounting of samples: each sampled operation is in memory, filtered out, or discarded for a known reason.

Memory stalls, responds late, faults and aborts; software disables, drains, rewrites and resets the SPU at any time.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from spurtle import arch
from spurtle.arch import PMBLIMITR_EL1, PMBPTR_EL1, PMBSR_EL1, PMSCR_EL1, PMSFCR_EL1, PMSICR_EL1, PMSIRR_EL1
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.cosim.spu import CompiledSPU
from spurtle_sim.model import filtering
from spurtle_sim.model.operation import Facts, Operation, Sample, Start
from spurtle_sim.model.registers import Registers
from spurtle_sim.records.decode import decode_records
from tests.support.seeds import SEED
from tests.support.tiers import tiers
from tests.support.timed_operations import table

ROWS = 4_000
"""Operations of the program, which is executed again and again."""
BASE, SIZE = 0xFFFF_0000_2000_0000, 1 << 16
PAGE = 1 << 12
ABORTED = "External abort"
LOADS = PMSFCR_EL1.pack(FT=1, LD=1)


@dataclass
class Outcome:
    """Outcome of a sampled operation.

    Attributes
    ----------
    action : int
        Index of the action of software before which the operation passed.
    collected : bool
        Whether the filter passes it.
    found : bool
        Whether its record is in memory.
    """

    action: int
    collected: bool
    found: bool = False


@cache
def program(lanes: int, seed: int) -> NDArray[np.void]:
    return table(ROWS, seed, lanes=lanes, gap=1, longest=1_500)


class Accounting:
    """Software that performs random actions, and its account of the samples."""

    def __init__(self, config: SPUConfig, seed: int):
        self.config = config
        self.random = Random(seed)
        self.spu = CompiledSPU(config)
        self.spu.set_buffer(BASE, SIZE)
        self.program = program(config.ops_per_cycle, seed)
        self.round = int(self.program["dispatch"][-1]) + 10
        self.played = 0
        self.start = BASE
        self.filters = False
        # By row of the program: whether the filter passes it when it is enabled.
        self.collected: dict[int, bool] = {}
        # By number of the operation.
        self.samples: dict[int, Outcome] = {}
        # Each action: what stopped or drained the buffer.
        self.actions: list[str] = []
        self.totals = Counter[str]()

    def set_up(self) -> None:
        """Set up all registers, after reset or at any other time."""
        self.spu.write(PMSCR_EL1, 0)
        self.filters = not self.filters
        self.spu.write(PMSFCR_EL1, LOADS if self.filters else 0)
        self.spu.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1, RND=self.random.getrandbits(1)))
        self.spu.write(PMSICR_EL1, 0)
        self.enable()
        self.spu.write(PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1))

    def enable(self) -> None:
        """Enable the buffer, at times without space or with an unaligned pointer, which stop it at once."""
        records = self.random.choice([0, 1, 2, 3, 40, 40])
        self.start = BASE + SIZE - PAGE - records * self.config.max_record_bytes
        if self.random.random() < 0.02:
            self.start += 1
        self.spu.write(PMBPTR_EL1, self.start)
        self.spu.write(PMBLIMITR_EL1, BASE + SIZE - PAGE | PMBLIMITR_EL1.pack(E=1))
        self.spu.write(PMBSR_EL1, 0)

    def run(self) -> None:
        """Execute operations of the program until the buffer stops, at most a random number."""
        count = self.random.choice([1, 20, 300, 2000]) * self.config.ops_per_cycle
        first = self.played % ROWS
        operations = self.program[first : first + count].copy()
        operations["dispatch"] += self.played // ROWS * self.round
        operations["pc"] = np.arange(self.played, self.played + len(operations)) * 4
        passed = self.spu.play(operations)
        self.played += passed
        self.count_selections()

    def count_selections(self) -> None:
        """Add the operations that were selected since the last call."""
        for first, candidates, sampled, _, _ in self.spu.selections().tolist():
            self.totals["selected"] += 1
            if not sampled:
                self.totals["collided"] += 1
                continue
            assert candidates == 1
            self.samples[first] = Outcome(len(self.actions), not self.filters or self.passes_filter(first % ROWS))

    def passes_filter(self, number: int) -> bool:
        """Return whether the filter passes a row of the program, by the reference."""
        if number not in self.collected:
            row = self.program[number]
            operation = Operation(facts=Facts.unpack(int(row["facts"])), events=int(row["events"]))
            sample = Sample(start=Start(), operation=operation, total=int(row["finish"]), issue=int(row["issue"]))
            self.collected[number] = filtering.collect(self.config, Registers(PMSFCR_EL1=LOADS), sample)
        return self.collected[number]

    def read_records(self, *, partial: bool = False) -> None:
        """Check the records in the buffer, up to PMBPTR_EL1.

        After a fault the last record may be incomplete. Then DL is set, or software has written PMBSR_EL1 since
        (`partial`).
        """
        pointer = self.spu.read(PMBPTR_EL1)
        data = self.spu.memory[self.start - BASE : max(pointer - BASE, 0)].tobytes()
        for record in decode_records(data):
            if record.problems:
                assert partial or self.spu.read(PMBSR_EL1) & PMBSR_EL1.pack(DL=1), record.problems
                break
            assert record.pc is not None
            outcome = self.samples[record.pc.address // 4]
            assert not outcome.found, "a record was written twice"
            assert outcome.collected, "a record that the filter rejects was written"
            assert self.reason(outcome) in ("", "rewritten"), "a discarded record was written"
            outcome.found = True

    def reason(self, outcome: Outcome) -> str:
        """Return the first action on the buffer after the operation passed, "" if there was none."""
        return self.actions[outcome.action] if outcome.action < len(self.actions) else ""

    def pause(self, *, settled: bool = False) -> None:
        """Wait for the selections of all operations; if `settled`, until these operations have finished."""
        if settled:
            self.spu.play(self.program[:0], settle=True)
        self.spu.read(PMSICR_EL1)
        self.count_selections()

    # Actions of software. Each appends its name to `actions` and enables the buffer again.

    def serve(self) -> None:
        self.pause()
        self.spu.drain()
        status = PMBSR_EL1.unpack(self.spu.read(PMBSR_EL1))
        assert status.S == 1
        self.read_records()
        reason = "fault within a record" if status.DL else "fault"
        if (status.EC, status.MSS) == (arch.EC.OTHER, arch.BSC.BUFFER_FILLED):
            reason = "full"
        elif status.MSS == arch.FSC_ASYNCHRONOUS:
            reason = ABORTED
            assert (status.EC, status.EA, status.DL) == (arch.EC.STAGE_1, 1, 1), "the syndrome of an External abort"
        self.actions.append(reason)
        self.enable()

    def drain(self) -> None:
        self.pause(settled=True)
        self.spu.drain()
        if self.spu.interrupt:
            self.serve()
        else:
            self.read_records()
            self.actions.append("drained")
            self.enable()

    def disable(self) -> None:
        self.pause()
        self.spu.write(PMBLIMITR_EL1, 0)
        self.spu.drain()
        self.read_records()
        self.actions.append("disabled")
        self.enable()

    def stop(self) -> None:
        self.pause()
        self.spu.write(PMBSR_EL1, PMBSR_EL1.pack(S=1, MSS=0x1234))
        self.spu.drain()
        self.read_records(partial=True)
        self.actions.append("stopped")
        self.enable()

    def rewrite(self) -> None:
        """Write a new pointer and limit.

        A record that was requested before and is accepted after the write is written at the new pointer.
        """
        self.pause()
        self.read_records()
        self.actions.append("rewritten")
        self.enable()

    def reset(self) -> None:
        self.pause()
        self.spu.reset()
        self.actions.append("reset")
        self.set_up()

    def act(self) -> None:
        self.run()
        if self.spu.interrupt:
            self.serve()
            return
        rarely = [self.reset] if self.random.random() < 0.1 else []
        idle = [lambda: None] * 10
        self.random.choice([*idle, self.drain, self.drain, self.disable, self.stop, self.rewrite, *rarely])()
        if self.random.random() < 0.05:
            chances = {"stall": [0, 0, 128, 200], "late": [0, 3, 60], "fault": [0, 40], "abort": [0, 30]}
            disturbances = {name: self.random.choice(several) for name, several in chances.items()}
            self.spu.disturb_memory(self.random.getrandbits(63) | 1, **disturbances)

    def close(self) -> Counter[str]:
        """Drain, and return the number of samples by outcome."""
        self.drain()
        for outcome in self.samples.values():
            reason = self.reason(outcome)
            name = f"discarded: {reason}"
            if outcome.found:
                name = "in memory"
            elif not outcome.collected:
                name = "filtered out"
            elif reason in ("", "drained"):
                name = "lost"
            self.totals[name] += 1
        return self.totals


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("cycles", tiers(fast=[300_000], full=[2_000_000], long=[10_000_000]))
def test_each_sample_is_accounted_for(
    config: SPUConfig, cycles: int, record_property: Callable[[str, object], None]
) -> None:
    accounting = Accounting(config, SEED)
    accounting.set_up()
    while accounting.spu.counts()["cycles"] < cycles:
        accounting.act()
    totals = accounting.close()
    print(f"{config.name}:", ", ".join(f"{count} {name}" for name, count in totals.most_common()))
    assert totals["lost"] == 0
    assert totals.total() - totals["selected"] == totals["selected"] > 0
    assert accounting.spu.counts()["strays"] == 0
    reasons = {name for name in totals if name.startswith("discarded: ")}
    assert config.external_aborts or f"discarded: {ABORTED}" not in reasons
    if cycles >= 1_000_000:  # shorter runs may miss an outcome
        assert {"in memory", "filtered out", "collided"} <= {*totals}
        # At most eight reasons are possible. The rare ones may be missing.
        assert len(reasons) >= 5, totals
    if cycles >= 10_000_000:
        assert len(reasons) == 7 + config.external_aborts, totals
    for name, value in (("cycles", cycles), ("samples", totals["selected"]), ("in memory", totals["in memory"])):
        record_property(name, value)
