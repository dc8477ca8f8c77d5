"""Time that a full buffer costs: from the last sample before a loss to the first one after it.

The kernel marks the AUX record of a buffer that became full, and stops the event until the buffer has been read. The
samples on both sides of the mark bound the time without samples. It includes time in which the CPU executed nothing
that is profiled.

Ref: Linux drivers/perf/arm_spe_pmu.c, tools/perf/util/tsc.c (conversion of timestamps).
"""

from typing import NamedTuple

import numpy as np

from ..perf.format import AuxFlag
from ..perf.reader import AuxBuffer, AuxRecord
from ..perf.sideband import TimeConversion
from .columns import Array
from .reading import Profile

__all__ = ["LostTime", "lost_time", "nanoseconds"]


class LostTime(NamedTuple):
    """Time without samples.

    Members
    -------
    losses : int
        Losses with samples on both sides.
    lost, total : int
        Nanoseconds without samples, and from the first to the last sample, of all CPUs.
    """

    losses: int
    lost: int
    total: int


def nanoseconds(timestamps: Array, conversion: TimeConversion) -> Array:
    """Return the time of timestamps on perf's clock."""
    count = timestamps.astype(np.uint64)
    if conversion.short:
        start, mask = np.uint64(conversion.cycles), np.uint64(conversion.mask)
        count = start + (count - start & mask)
    shift, multiplier = np.uint64(conversion.shift), np.uint64(conversion.multiplier)
    whole = (count >> shift) * multiplier
    part = (count & ((np.uint64(1) << shift) - np.uint64(1))) * multiplier >> shift
    return np.uint64(conversion.zero) + whole + part


def lost_time(profile: Profile) -> LostTime | None:
    """Return the time that full buffers cost. None if the file does not have the times of samples and losses."""
    conversion = profile.contents.sideband.time
    if conversion is None or not profile.columns.timestamp.any():
        return None
    times = nanoseconds(profile.columns.timestamp, conversion)
    queues = [_queue(buffer) for buffer in profile.contents.buffers]
    numbers = {queue: number for number, queue in enumerate(dict.fromkeys(queues))}
    owner = np.array([numbers[queue] for queue in queues])[profile.columns.buffer]
    marks: dict[tuple[str, int | None], list[int]] = {}
    for record in profile.contents.aux:
        if record.flags & AuxFlag.TRUNCATED and record.time is not None:
            marks.setdefault(_queue(record), []).append(record.time)
    losses = lost = total = 0
    for queue, number in numbers.items():
        own = np.sort(times[(owner == number) & (profile.columns.timestamp > 0)])
        if not len(own):
            continue
        total += int(own[-1] - own[0])
        after = np.unique(np.searchsorted(own, np.array(marks.get(queue, []), np.uint64), "right"))
        after = after[(after > 0) & (after < len(own))]
        losses += len(after)
        lost += int((own[after] - own[after - 1]).sum())
    return LostTime(losses, lost, total)


def _queue(source: AuxBuffer | AuxRecord) -> tuple[str, int | None]:
    """Return the CPU of a buffer or a loss, or in a recording of threads, the thread."""
    return ("thread", source.tid) if source.cpu is None else ("cpu", source.cpu)
