"""Time that full buffers cost."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest

from spurtle_sim.perf.events import NOTHING_LOST, Aux, process_events
from spurtle_sim.perf.format import AuxFlag
from spurtle_sim.perf.process import Mapping, Process
from spurtle_sim.perf.reader import read_perf_data
from spurtle_sim.perf.sideband import TimeConversion
from spurtle_sim.perf.writer import Recording, content
from spurtle_sim.report.losses import LostTime, lost_time, nanoseconds
from spurtle_sim.report.reading import Profile, read_profile
from spurtle_sim.report.summary import build_report
from tests.support.perf_records import PID, branch
from tests.support.seeds import SEED

FULL = AuxFlag.TRUNCATED | AuxFlag.PARTIAL
WORD = (1 << 64) - 1


def aux(time: int, times: Sequence[int], flags: AuxFlag = NOTHING_LOST, cpu: int = 0) -> Aux:
    """Return a buffer that was read at `time`, with samples of these times."""
    data = b"".join(branch(0x40_0000, 0, 7, each) for each in times)
    return Aux(time=time, pid=PID, tid=PID, cpu=cpu, flags=flags, data=data)


def profile(*buffers: Aux, timed: bool = True) -> Profile:
    code = Mapping(0x40_0000, 0x2000, 0, 5, "/nowhere/program")
    process = Process(Path(code.path), ["program"], PID, (code,))
    file = content(Recording(argv=["program"], events=process_events(process, buffers), timed=timed))
    return read_profile("file", file, None)


def cost(found: Profile) -> list[str]:
    """Return the sentences of the report about full buffers."""
    sentences = build_report(found).recording
    return [each for each in sentences if "cost" in each]


def test_the_time_around_each_loss_is_counted() -> None:
    found = profile(
        aux(100, [10, 50, 90], FULL),
        aux(120, [], FULL),  # the buffer was still full: the same loss
        aux(400, [300, 310]),
        aux(500, [420], FULL),
        aux(900, [800, 810], FULL),  # the last one, which no sample follows
        aux(1000, [20, 990], cpu=1),
    )
    assert lost_time(found) == LostTime(losses=2, lost=(300 - 90) + (800 - 420), total=(810 - 10) + (990 - 20))
    [sentence] = cost(found)
    assert sentence.startswith("Full buffers cost at most 0.001 ms of 0.002 ms (33.3 %): the time from the last sample")


def test_samples_are_in_order_of_time_only_within_a_buffer() -> None:
    found = profile(aux(400, [300, 310], cpu=1), aux(401, [10, 90], FULL, cpu=1), aux(600, [500], cpu=1))
    assert lost_time(found) == LostTime(losses=1, lost=500 - 310, total=490)
    # The buffer became full with the sample at 100.
    found = profile(aux(100, [10, 100], FULL), aux(400, [300]))
    assert lost_time(found) == LostTime(losses=1, lost=300 - 100, total=290)


def test_costs_that_are_unknown() -> None:
    assert cost(profile(aux(100, [10]))) == []
    assert cost(profile(aux(100, [10], FULL))) == ["No samples follow these losses, so their cost is unknown."]
    without = "The file does not have the times of samples and losses, so the cost of full buffers is unknown."
    assert cost(profile(aux(100, [0], FULL))) == [without]
    assert cost(profile(aux(100, [10], FULL), timed=False)) == [without]


def test_the_source_of_aux_records() -> None:
    events = process_events(Process(Path("/x"), ["x"], PID, ()), [aux(100, [10], FULL, cpu=3)])
    for timed, expected in ((True, (3, PID, 100)), (False, (None, PID, None))):
        [record] = read_perf_data(content(Recording(argv=["x"], events=events, timed=timed))).aux
        assert (record.cpu, record.tid, record.time, record.flags) == (*expected, FULL)


@pytest.mark.parametrize("short", [False, True])
def test_conversion_of_timestamps(short: bool) -> None:
    """The formula of perf, with integers of Python."""
    random = Random(SEED)
    for _ in range(50):
        shift, multiplier, zero = random.randrange(33), random.randrange(1 << 31), random.randrange(1 << 63)
        mask = (1 << random.randrange(40, 65)) - 1
        start = random.randrange(1 << 50)
        counts = [random.randrange(1 << 56) for _ in range(20)]
        expected: list[int] = []
        for count in counts:
            cycles = start + (count - start & mask) & WORD if short else count
            part = (cycles & (1 << shift) - 1) * multiplier >> shift
            expected.append(zero + (cycles >> shift) * multiplier + part & WORD)
        conversion = TimeConversion(shift, multiplier, zero, start, mask, short)
        assert nanoseconds(np.array(counts, np.uint64), conversion).tolist() == expected
