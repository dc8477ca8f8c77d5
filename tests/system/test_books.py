"""Trouble: memory that stalls, answers late, meets faults and tells of External aborts, and software that disables,
drains, rewrites or resets at any time. What has become of each sample is known, and the books balance.
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
"""Of a program that goes round and round."""
BASE, SIZE = 0xFFFF_0000_2000_0000, 1 << 16
PAGE = 1 << 12
ABORTED = "External abort"
LOADS = PMSFCR_EL1.pack(FT=1, LD=1)


@dataclass
class Fate:
    """A sampled operation: in which act of software it passed, whether the filter keeps it, and where it is."""

    act: int
    kept: bool
    found: bool = False


@cache
def program(lanes: int, seed: int) -> NDArray[np.void]:
    return table(ROWS, seed, lanes=lanes, gap=1, longest=1_500)


class Trouble:
    """Software that does anything, and an account of what it finds."""

    def __init__(self, config: SPUConfig, seed: int):
        self.config = config
        self.random = Random(seed)
        self.engine = CompiledSPU(config)
        self.engine.set_buffer(BASE, SIZE)
        self.program = program(config.ops_per_cycle, seed)
        self.round = int(self.program["dispatch"][-1]) + 10
        self.played = 0
        self.start = BASE
        self.filters = False
        # Whether the filter keeps a row of the program, if it is on.
        self.kept: dict[int, bool] = {}
        # By the number of their operation. What stopped the buffer in each act, or drained it.
        self.samples: dict[int, Fate] = {}
        self.acts: list[str] = []
        self.books = Counter[str]()

    def set_up(self) -> None:
        """After reset, or anything else."""
        self.engine.write(PMSCR_EL1, 0)
        self.filters = not self.filters
        self.engine.write(PMSFCR_EL1, LOADS if self.filters else 0)
        self.engine.write(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1, RND=self.random.getrandbits(1)))
        self.engine.write(PMSICR_EL1, 0)
        self.enable()
        self.engine.write(PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1))

    def enable(self) -> None:
        """With room for some records; or with none, or a pointer that is not aligned: then the buffer stops at once."""
        records = self.random.choice([0, 1, 2, 3, 40, 40])
        self.start = BASE + SIZE - PAGE - records * self.config.max_record_bytes
        if self.random.random() < 0.02:
            self.start += 1
        self.engine.write(PMBPTR_EL1, self.start)
        self.engine.write(PMBLIMITR_EL1, BASE + SIZE - PAGE | PMBLIMITR_EL1.pack(E=1))
        self.engine.write(PMBSR_EL1, 0)

    def run(self) -> None:
        """Some operations of the program, unless the buffer stops before."""
        count = self.random.choice([1, 20, 300, 2000]) * self.config.ops_per_cycle
        first = self.played % ROWS
        operations = self.program[first : first + count].copy()
        operations["dispatch"] += self.played // ROWS * self.round
        operations["pc"] = np.arange(self.played, self.played + len(operations)) * 4
        passed = self.engine.play(operations)
        self.played += passed
        self.look()

    def look(self) -> None:
        """At the operations that were selected."""
        for first, candidates, sampled, _, _ in self.engine.selections().tolist():
            self.books["selected"] += 1
            if not sampled:
                self.books["COLL"] += 1
                continue
            assert candidates == 1
            self.samples[first] = Fate(len(self.acts), not self.filters or self.filter(first % ROWS))

    def filter(self, number: int) -> bool:
        if number not in self.kept:
            row = self.program[number]
            operation = Operation(facts=Facts.unpack(int(row["facts"])), events=int(row["events"]))
            sample = Sample(start=Start(), operation=operation, total=int(row["finish"]), issue=int(row["issue"]))
            self.kept[number] = filtering.collect(self.config, Registers(PMSFCR_EL1=LOADS), sample)
        return self.kept[number]

    def take(self, *, torn: bool = False) -> None:
        """What is in the buffer, up to PMBPTR_EL1. After a fault the last record may be there in part: DL says so,
        unless software has written PMBSR_EL1 since, if `torn`.
        """
        pointer = self.engine.read(PMBPTR_EL1)
        data = self.engine.memory[self.start - BASE : max(pointer - BASE, 0)].tobytes()
        for record in decode_records(data):
            if record.problems:
                assert torn or self.engine.read(PMBSR_EL1) & PMBSR_EL1.pack(DL=1), record.problems
                break
            assert record.pc is not None
            fate = self.samples[record.pc.address // 4]
            assert not fate.found, "a record that is there twice"
            assert fate.kept, "a record that the filter rejects"
            assert self.reason(fate) in ("", "rewritten"), "a record of what had been discarded"
            fate.found = True

    def reason(self, fate: Fate) -> str:
        """What happened to the buffer first after the operation passed."""
        return self.acts[fate.act] if fate.act < len(self.acts) else ""

    def pause(self, *, settled: bool = False) -> None:
        """Until it is known what has become of what has passed; and has finished, if `settled`."""
        if settled:
            self.engine.play(self.program[:0], settle=True)
        self.engine.read(PMSICR_EL1)
        self.look()

    # What software does. Each ends with a word about it, and the buffer runs again.

    def serve(self) -> None:
        self.pause()
        self.engine.drain()
        status = PMBSR_EL1.unpack(self.engine.read(PMBSR_EL1))
        assert status.S == 1
        self.take()
        reason = "fault within a record" if status.DL else "fault"
        if (status.EC, status.MSS) == (arch.EC.OTHER, arch.BSC.BUFFER_FILLED):
            reason = "full"
        elif status.MSS == arch.FSC_ASYNCHRONOUS:
            reason = ABORTED
            assert (status.EC, status.EA, status.DL) == (arch.EC.STAGE_1, 1, 1), "data was lost, and it does not say so"
        self.acts.append(reason)
        self.enable()

    def drain(self) -> None:
        self.pause(settled=True)
        self.engine.drain()
        if self.engine.interrupt:
            self.serve()
        else:
            self.take()
            self.acts.append("drained")
            self.enable()

    def disable(self) -> None:
        self.pause()
        self.engine.write(PMBLIMITR_EL1, 0)
        self.engine.drain()
        self.take()
        self.acts.append("disabled")
        self.enable()

    def stop(self) -> None:
        self.pause()
        self.engine.write(PMBSR_EL1, PMBSR_EL1.pack(S=1, MSS=0x1234))
        self.engine.drain()
        self.take(torn=True)
        self.acts.append("stopped")
        self.enable()

    def rewrite(self) -> None:
        """What has been asked for before is written where the pointer is now."""
        self.pause()
        self.take()
        self.acts.append("rewritten")
        self.enable()

    def reset(self) -> None:
        self.pause()
        self.engine.reset()
        self.acts.append("reset")
        self.set_up()

    def act(self) -> None:
        self.run()
        if self.engine.interrupt:
            self.serve()
            return
        rarely = [self.reset] if self.random.random() < 0.1 else []
        idle = [lambda: None] * 10
        self.random.choice([*idle, self.drain, self.drain, self.disable, self.stop, self.rewrite, *rarely])()
        if self.random.random() < 0.05:
            chances = {"stall": [0, 0, 128, 200], "late": [0, 3, 60], "fault": [0, 40], "abort": [0, 30]}
            trouble = {name: self.random.choice(several) for name, several in chances.items()}
            self.engine.disturb_memory(self.random.getrandbits(63) | 1, **trouble)

    def close(self) -> Counter[str]:
        """The books, once nothing is open any more."""
        self.drain()
        for fate in self.samples.values():
            reason = self.reason(fate)
            what = f"discarded: {reason}"
            if fate.found:
                what = "in memory"
            elif not fate.kept:
                what = "filtered out"
            elif reason in ("", "drained"):
                what = "lost"
            self.books[what] += 1
        return self.books


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("cycles", tiers(fast=[300_000], full=[2_000_000], long=[10_000_000]))
def test_the_books_balance(config: SPUConfig, cycles: int, record_property: Callable[[str, object], None]) -> None:
    trouble = Trouble(config, SEED)
    trouble.set_up()
    while trouble.engine.counts()["cycles"] < cycles:
        trouble.act()
    books = trouble.close()
    print(f"{config.name}:", ", ".join(f"{count} {what}" for what, count in books.most_common()))
    assert books["lost"] == 0
    assert books.total() - books["selected"] == books["selected"] > 0
    assert trouble.engine.counts()["strays"] == 0
    reasons = {what for what in books if what.startswith("discarded: ")}
    assert config.external_aborts or f"discarded: {ABORTED}" not in reasons
    if cycles >= 1_000_000:  # shorter runs may miss something
        assert {"in memory", "filtered out", "COLL"} <= {*books}
        # The rarest of eight reasons may be missing.
        assert len(reasons) >= 5, books
    if cycles >= 10_000_000:
        assert len(reasons) == 7 + config.external_aborts, books
    for name, value in (("cycles", cycles), ("samples", books["selected"]), ("in memory", books["in memory"])):
        record_property(name, value)
