"""A user of perf who acts at random."""

from random import Random

from tests.support.linux_driver.binding import Exclude, Start
from tests.support.linux_driver.session import Session

__all__ = ["User"]

_TS, _PA, _PCT, _JITTER, _BRANCH, _LOAD, _STORE = (1 << bit for bit in (0, 1, 2, 16, 32, 33, 34))
"""Terms of an event: bits of perf_event_attr.config."""


class User:
    """A user who opens events with all terms of the driver, schedules them in and out, and reads their records.

    Parameters
    ----------
    session : Session
    random : Random
    """

    def __init__(self, session: Session, random: Random):
        self._session = session
        self._random = random
        self._acts = {
            self._run: 20,
            self._reschedule: 3,
            self._restart: 1,
            self._change_period: 1,
            self._interrupt: 1,
            self._reopen: 0.3,
            self._unplug: 0.3,
        }
        self._read_rate = random.choice([0, 0.03, 0.3])
        session.driver.set_options(
            pid_in_contextidr=random.random() < 0.5,
            act_on_truncate=random.random() < 0.8,
        )
        for event in session.events:
            session.event = event
            self._open()

    def act(self) -> None:
        """Perform one random action."""
        if self._session.spu.interrupt and self._chance(0.8):
            self._session.serve()
        self._reopen_torn_snapshot()
        [act] = self._random.choices([*self._acts], [*self._acts.values()])
        act()
        if self._chance(self._read_rate):
            self._read()

    def _reopen_torn_snapshot(self) -> None:
        """Open a new event in place of a snapshot with a partial record, after which it cannot continue."""
        event = self._session.event
        if event.snapshot and event.losses:
            self._reopen()

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _run(self) -> None:
        session = self._session
        if not session.event.active and session.kernel(session.event.add) < 0:
            # The buffer is full: perf reads it.
            session.event.consume()
            return
        session.run(self._random.choice([10, 1_000, self._random.randrange(15_000)]))

    def _reschedule(self) -> None:
        session = self._session
        session.kernel(session.event.delete)
        session.event = self._random.choice(session.events)
        self._reopen_torn_snapshot()
        session.kernel(session.event.add)

    def _restart(self) -> None:
        session = self._session
        if session.event.active:
            session.kernel(session.event.stop, Start.UPDATE)
        if session.event.active:  # perf schedules it out if data was lost
            session.kernel(session.event.start, self._random.choice([0, Start.RELOAD]))

    def _change_period(self) -> None:
        self._session.kernel(self._session.event.set_period, self._period())

    def _interrupt(self) -> None:
        """Take an interrupt, even if it is not asserted any more."""
        session = self._session
        if session.spu.interrupt:
            session.serve()
        else:
            session.kernel(session.driver.interrupt)

    def _unplug(self) -> None:
        """Take the CPU offline and online. The driver must disable the SPU and its interrupt while it is offline."""
        session = self._session
        session.kernel(session.event.delete)
        assert session.kernel(session.driver.cpu, False) == 0
        session.run(1_000)
        assert not session.spu.interrupt
        assert session.kernel(session.driver.interrupt) < 0
        assert session.kernel(session.driver.cpu, True) == 0

    def _reopen(self) -> None:
        session = self._session
        session.kernel(session.event.delete)
        session.event.check()
        self._open()

    def _read(self) -> None:
        """Read all new data of an event, or a part of it."""
        event = self._random.choice(self._session.events)
        if not event.snapshot:
            event.consume(self._random.choice([None, self._random.randrange(4_000)]))

    def _open(self) -> None:
        """Open an event that the driver accepts."""
        session, random = self._session, self._random
        page, pages = session.driver.page_size, random.choice([2, 2, 4, 8])
        watermark = random.choice([0, 1, page, random.randrange(1, pages * page)])
        snapshot = self._chance(0.2)
        while session.open(pages=pages, snapshot=snapshot, watermark=watermark, **self._attributes()):
            pass

    def _attributes(self) -> dict[str, int]:
        random = self._random
        config = sum(random.choice([0, term]) for term in (_TS, _PA, _PCT, _JITTER))
        if self._chance(0.15):
            config |= random.choice([_BRANCH, _LOAD, _STORE, _BRANCH | _LOAD, _LOAD | _STORE])
        return {
            "config": config,
            "config1": self._events() if self._chance(0.06) else 0,
            "config2": random.choice([1, 20, random.getrandbits(12)]) if self._chance(0.06) else 0,
            "config3": self._events() if self._session.config.fne and self._chance(0.06) else 0,
            "sample_period": self._period(),
            "exclude": random.choice([0, Exclude.KERNEL, Exclude.HV]) if self._chance(0.97) else Exclude.USER,
        }

    def _events(self) -> int:
        """Return one or more bits of an event filter. Some may be of events that are not implemented."""
        candidates = self._session.config.filter_events | (self._random.getrandbits(64) if self._chance(0.2) else 0)
        return 1 << self._random.choice([bit for bit in range(64) if candidates >> bit & 1]) | (
            candidates & self._random.getrandbits(64) if self._chance(0.3) else 0
        )

    def _period(self) -> int:
        random = self._random
        if self._chance(0.03):
            return 1 + random.getrandbits(random.randrange(63))
        return random.choice([1, 256, 1 + random.getrandbits(9)])
