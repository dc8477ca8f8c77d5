"""Cycles per record and collisions, measured on the compiled SPU.

An operation passes in each lane in each cycle. Each selected operation is recorded, unless it collides with the samples
before it. Memory answers a record a fixed number of cycles after its last beat; several records can be outstanding.
"""

from dataclasses import asdict, dataclass, replace
from itertools import product

from spurtle.arch import PMBPTR_EL1
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.cosim.spu import CompiledSPU
from spurtle_sim.profile.options import Sampling

from . import stimulus

__all__ = ["FLIGHTS", "LATENCIES", "SETTINGS", "RecordRate", "RecordRateError", "Setting", "measure"]

_INTERVAL_UNIT = 256
"""Operations for each unit of PMSIRR_EL1.INTERVAL."""

LATENCIES = (1, 10, 20, 30, 40, 60, 80, 100)
"""Memory latencies in cycles."""

FLIGHTS = (20, 60)
"""Cycles from the sampling point to the completion of an operation."""

_BATCH = 1 << 13
"""Cycles played at a time."""


class RecordRateError(Exception):
    """Selected operations that are neither recorded nor reported as collisions. The message is a sentence."""


@dataclass(frozen=True)
class Setting:
    """SPU, its load and its memory.

    Parameters
    ----------
    config : str
        Name of a configuration.
    interval : int
        PMSIRR_EL1.INTERVAL. PMSIRR_EL1.RND is one.
    slots, outstanding : int
        Choices that replace the values of the named configuration.
    flight : int
        Cycles from the sampling point to the completion of an operation.
    latency : int
        Cycles from the last beat of a record to the response of memory.
    """

    config: str
    interval: int
    slots: int
    outstanding: int
    flight: int
    latency: int

    @property
    def spu(self) -> SPUConfig:
        """Configuration with these slots and outstanding records."""
        named = CONFIGS[self.config]
        choices = {"slots": self.slots, "outstanding": self.outstanding}
        if all(getattr(named, choice) == value for choice, value in choices.items()):
            return named
        return replace(named, name=f"{named.name}_outstanding_{self.outstanding}_slots_{self.slots}", **choices)

    @property
    def title(self) -> str:
        """All members, for messages."""
        return ", ".join(f"{name} {value}" for name, value in asdict(self).items())


@dataclass(frozen=True)
class RecordRate:
    """Result of a measurement.

    Parameters
    ----------
    setting : Setting
    selected : int
        Selected operations.
    recorded : int
        Records in memory.
    cycles : int
        Cycles from the first to the last selection.
    """

    setting: Setting
    selected: int
    recorded: int
    cycles: int

    @property
    def collisions(self) -> float:
        """Share of the selected operations that collided."""
        return 1 - self.recorded / self.selected

    @property
    def cycles_per_record(self) -> float:
        """Mean distance of recorded operations in cycles."""
        return self.cycles / (self.selected - 1) / (1 - self.collisions)


_SIZES = {
    "v1p4": ((4, 1), (4, 2), (4, 4), (4, 8), (1, 4), (2, 4), (8, 4)),
    "neoverse_n1": ((1, 1), (1, 8), (8, 1)),
}
"""Slots and outstanding records by the name of the configuration. Each pair is compiled for about ten seconds."""

_LONG_INTERVAL_SIZES = {"v1p4": ((4, 1), (4, 4)), "neoverse_n1": ((1, 1),)}
"""The same for INTERVAL = 4."""

SETTINGS = tuple(
    Setting(name, interval, slots, outstanding, flight, latency)
    for interval, sizes in ((1, _SIZES), (4, _LONG_INTERVAL_SIZES))
    for name, pairs in sizes.items()
    for (slots, outstanding), flight, latency in product(pairs, FLIGHTS, LATENCIES)
)
"""Published settings."""


def measure(setting: Setting, *, selections: int, seed: int) -> RecordRate:
    """Return the rate of a setting.

    Parameters
    ----------
    setting : Setting
    selections : int
        Number of selected operations, at least 2.
    seed : int
        State of the random number generator of the intervals, from 1 to 2**32 - 1.

    Raises
    ------
    RecordRateError
        If a selected operation is neither in memory nor reported as a collision.
    """
    config = setting.spu
    spu = stimulus.prepared_spu(config, Sampling(interval=setting.interval * _INTERVAL_UNIT, jitter=True, seed=seed))
    spu.set_memory_latency(setting.latency)
    rows = stimulus.program(config, _BATCH, finish=setting.flight)
    times: list[int] = []
    sampled = 0
    while len(times) < selections:
        spu.play(rows)
        rows["dispatch"] += _BATCH
        found = spu.selections()
        times += found["time"].tolist()
        sampled += int(found["sampled"].sum())
    spu.play(rows[:0], settle=True)
    spu.drain()
    _check(setting, spu, selected=len(times), sampled=sampled)
    return RecordRate(setting, len(times), sampled, times[-1] - times[0])


def _check(setting: Setting, spu: CompiledSPU, *, selected: int, sampled: int) -> None:
    """Check that each selected operation was recorded or reported as a collision, and that nothing else was written."""
    counts = spu.counts()
    pointer = spu.read(PMBPTR_EL1)
    size = setting.spu.max_record_bytes
    expected = {"records": sampled, "collision": selected - sampled, "buffer_full": 0, "strays": 0}
    found = {name: counts[name] for name in expected}
    if found != expected or pointer != stimulus.BASE + sampled * size:
        raise RecordRateError(
            f"{setting.title}: {selected} selections and {sampled} samples must give {expected} and "
            f"{sampled * size} bytes, not {found} and {pointer - stimulus.BASE}"
        )
