"""What an operating system's driver does with the SPU: programs it, serves its interrupt, stops it."""

# Ref: DDI0487 M.a, D17.7; the order of accesses is that of the Linux driver.

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spurtle import arch
from spurtle.config import SPUConfig

from .checker import Checker
from .engine import Engine
from .errors import UserError
from .timed import TIMED

__all__ = ["Driver", "Filters", "parse_filters"]

_BASE = 0xFFFF_0000_1000_0000
_SIZE = 1 << 16


@dataclass(frozen=True)
class Filters:
    """Values for PMSFCR_EL1, PMSEVFR_EL1 and PMSLATFR_EL1."""

    pmsfcr: int = 0
    pmsevfr: int = 0
    pmslatfr: int = 0


def parse_filters(config: SPUConfig, terms: list[str]) -> Filters:
    """Registers from the terms of `--filter`. Types are alternatives; everything else has to hold as well.

    Raises
    ------
    UserError
        If a term is unknown or `config` cannot filter by it.
    """
    types = {"loads": "LD", "stores": "ST", "branches": "B"}
    events = {event.name.lower(): event for event in arch.Event if config.filter_events >> event & 1}
    largest = (1 << config.counter_bits) - 1
    fields: dict[str, int] = {}
    pmsevfr = pmslatfr = 0
    for term in terms:
        name, _, value = term.partition("=")
        if term in types:
            fields |= {"FT": 1, types[term]: 1}
        elif name == "latency" and value.isdecimal() and 1 <= int(value) <= largest:
            fields["FL"] = 1
            pmslatfr = int(value)
        elif name == "event" and value in events:
            fields["FE"] = 1
            pmsevfr |= 1 << events[value]
        else:
            raise UserError(
                f"--filter must be {', '.join(types)}, latency=N with N from 1 to {largest}, "
                f"or event=NAME with NAME one of {', '.join(events)}; not {term!r}"
            )
    return Filters(arch.PMSFCR_EL1.pack(**fields), pmsevfr, pmslatfr)


class Driver:
    """Profiles EL0 with the whole of what the SPU can collect, in a buffer of 64 KiB.

    Parameters
    ----------
    config : SPUConfig
    interval : int
        PMSIRR_EL1.INTERVAL, in units of 256 operations.
    filters : Filters
    jitter : bool
        PMSIRR_EL1.RND: each sample is put off by a random number of operations.
    seed : int or None
        For the random numbers (IMP_PMSRNDR_EL1); None leaves them as they are after reset.
    context : int
        CONTEXTIDR_EL1: the process.
    check : bool
        Compare every selection, every record and the buffer's registers with the reference.

    Attributes
    ----------
    data : bytearray
        The records, in order, as far as they have been taken from the buffer.
    checker : Checker or None
    sampled, collided, interrupts : int
        How often each has happened.
    """

    def __init__(
        self,
        config: SPUConfig,
        *,
        interval: int,
        filters: Filters,
        jitter: bool,
        seed: int | None,
        context: int,
        check: bool,
    ):
        self._engine = Engine(config)
        self._engine.set_buffer(_BASE, _SIZE)
        self._engine.set_context(context)
        self.checker = Checker(config, context) if check else None
        self.data = bytearray()
        self.sampled = 0
        self.collided = 0
        self.interrupts = 0

        self._write(arch.PMBPTR_EL1, _BASE)
        self._write(arch.PMBLIMITR_EL1, _BASE + _SIZE | arch.PMBLIMITR_EL1.pack(E=1))
        self._write(arch.PMSFCR_EL1, filters.pmsfcr)
        self._write(arch.PMSEVFR_EL1, filters.pmsevfr)
        self._write(arch.PMSLATFR_EL1, filters.pmslatfr)
        self._write(arch.PMSIRR_EL1, arch.PMSIRR_EL1.pack(INTERVAL=interval, RND=jitter))
        if seed is not None:
            self._write(arch.IMP_PMSRNDR_EL1, seed)
        self._write(arch.PMSICR_EL1, 0)
        self._write(arch.PMSCR_EL1, arch.PMSCR_EL1.pack(E0SPE=1, CX=1, PA=1, TS=1))

    def run(self, operations: NDArray[np.void]) -> None:
        """Let rows of `TIMED` pass, and serve the interrupts that they raise."""
        self._play(operations, settle=False)

    def stop(self) -> None:
        """Wait for the operations in flight, stop profiling and take what is in the buffer."""
        self._play(np.zeros(0, TIMED), settle=True)
        self._write(arch.PMSCR_EL1, 0)
        self._take()
        self._write(arch.PMBLIMITR_EL1, 0)

    def counts(self) -> dict[str, int]:
        """See `Engine.counts`."""
        return self._engine.counts()

    def _play(self, operations: NDArray[np.void], *, settle: bool) -> None:
        while True:
            passed = self._engine.play(operations, settle=settle)
            selections = self._engine.selections()
            sampled = int(selections["sampled"].sum())
            self.sampled += sampled
            self.collided += len(selections) - sampled
            finishes = self._engine.finishes()
            interrupt = self._engine.interrupt
            if self.checker:
                self.checker.passed(operations[:passed], selections, finishes, settled=interrupt or settle)
            operations = operations[passed:]
            if interrupt:
                self._serve()
            elif not len(operations):
                return

    def _serve(self) -> None:
        """The interrupt handler. Clearing PMBSR_EL1 as the last act lets profiling go on."""
        self.interrupts += 1
        self._take()
        self._write(arch.PMBPTR_EL1, _BASE)
        self._write(arch.PMBSR_EL1, 0)

    def _take(self) -> None:
        """Drain the SPU and take what it has written. Raises RuntimeError if some of that is outside of the buffer."""
        self._engine.drain()
        if self.counts()["strays"]:
            raise RuntimeError("the SPU has written outside of its buffer")
        self._read(arch.PMBSR_EL1)
        end = self._read(arch.PMBPTR_EL1)
        data = self._engine.memory[: end - _BASE].tobytes()
        self.data += data
        if self.checker:
            self.checker.records(_BASE, data)

    def _write(self, register: arch.Register, value: int) -> None:
        self._engine.write(register, value)
        if self.checker:
            self.checker.write(register, value)

    def _read(self, register: arch.Register) -> int:
        value = self._engine.read(register)
        if self.checker:
            self.checker.read(register, value)
        return value
