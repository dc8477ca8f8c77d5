"""What an operating system's driver does with the SPU: programs it, serves its interrupt, stops it."""

# Ref: DDI0487 M.a, D17.7; the order of accesses is that of the Linux driver.

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spurtle import arch
from spurtle.config import SPUConfig

from .checker import Checker
from .engine import Engine
from .errors import UserError
from .reference.pe import PEState
from .timed import TIMED

__all__ = ["Driver", "Filters", "parse_filters"]

_BASE = 0xFFFF_0000_1000_0000
_SIZE = 1 << 16

_ALL = (1 << 64) - 1
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]+", re.ASCII | re.IGNORECASE)
_TYPES = {"branch": "B", "load": "LD", "store": "ST", "simd": "SIMD", "float": "FP"}
_ELSEWHERE = {
    "jitter": "jitter has an option of its own, --jitter",
    "ts_enable": "timestamps are always recorded",
    "pa_enable": "physical addresses are always recorded",
    "pct_enable": "timestamps always are of the physical counter",
}


@dataclass(frozen=True)
class Filters:
    """Values for the registers that filter: those of Linux without any filter.

    `discard` sets PMBLIMITR_EL1.FM: records are counted, and none is written. Registers that a configuration has not
    are not written.
    """

    pmsfcr: int = 0
    pmsevfr: int = 0
    pmsnevfr: int = 0
    pmsdsfr: int = _ALL
    pmslatfr: int = 0
    discard: bool = False


def parse_filters(config: SPUConfig, terms: list[str]) -> Filters:
    """Registers from the terms of `--filter`, which are spelled as those of perf's `arm_spe` event.

    As in the Linux driver, a filter is on if its value is not zero: FT with any type or mask, FE, FnE, FL, FDS.

    Parameters
    ----------
    config : SPUConfig
    terms : list of str
        Each one or more of `NAME=NUMBER`, with commas in between; `NAME` alone means 1.

    Raises
    ------
    UserError
        If a term is unknown, if `config` has no such filter, or if it has not what the number asks for.
    """
    largest = _largest(config)
    values: dict[str, int] = {}
    for term in ",".join(terms).split(",") if terms else ():
        name, value = _term(config, largest, term)
        if name in values:
            raise UserError(f"--filter must name each filter once, not {name} twice")
        values[name] = value

    def given(name: str) -> int:
        return values.get(name, 0)

    types = {field: given(f"{name}_filter") for name, field in _TYPES.items()}
    masks = {f"{field}m": given(f"{name}_filter_mask") for name, field in _TYPES.items()}
    enables = {
        "FT": any({*types.values(), *masks.values()}),
        "FE": given("event_filter") != 0,
        "FnE": given("inv_event_filter") != 0,
        "FL": given("min_latency") != 0,
        "FDS": given("inv_data_src_filter") != 0,
    }
    return Filters(
        pmsfcr=arch.PMSFCR_EL1.pack(**types, **masks, **enables),
        pmsevfr=given("event_filter"),
        pmsnevfr=given("inv_event_filter"),
        pmsdsfr=_ALL ^ given("inv_data_src_filter"),
        pmslatfr=given("min_latency"),
        discard=given("discard") != 0,
    )


def _largest(config: SPUConfig) -> dict[str, int]:
    """The filters of `config`, by perf's names, and the largest value of each."""
    types = [name for name, field in _TYPES.items() if field in config.filter_types]
    return {
        **{f"{name}_filter": 1 for name in types},
        **{f"{name}_filter_mask": 1 for name in types if config.eft},
        "event_filter": _ALL,
        **({"inv_event_filter": _ALL} if config.fne else {}),
        "min_latency": (1 << config.counter_bits) - 1,
        **({"inv_data_src_filter": _ALL} if config.fds else {}),
        **({"discard": 1} if config.discard_mode else {}),
    }


def _term(config: SPUConfig, largest: dict[str, int], term: str) -> tuple[str, int]:
    name, equals, text = term.strip().partition("=")
    if name in _ELSEWHERE:
        raise UserError(f"--filter must not have {name}: {_ELSEWHERE[name]}")
    if name not in largest:
        raise UserError(f"--filter must be of {', '.join(largest)} in {config.name}, not {term!r}")
    text = text if equals else "1"
    value = int(text, 16 if text[:2].lower() == "0x" else 10) if _NUMBER.fullmatch(text) else -1
    if not 0 <= value <= largest[name]:
        most = largest[name] if largest[name] < _ALL else f"{_ALL:#x}"
        raise UserError(f"--filter {name} must be a number from 0 to {most} in {config.name}, not {text!r}")
    if name in ("event_filter", "inv_event_filter") and (missing := value & ~config.filter_events):
        there = _bits(config.filter_events)
        raise UserError(f"--filter {name} must be of event bits {there} in {config.name}, not {_bits(missing)}")
    return name, value


def _bits(mask: int) -> str:
    return ", ".join(str(bit) for bit in range(64) if mask >> bit & 1)


class Driver:
    """Profiles EL0 with the whole of what the SPU can collect, in a buffer of 64 KiB; or in none, in Discard mode.

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
        Compare every selection, every record, the buffer's registers and the PMU events with the reference.

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
        pe = PEState(contextidr_el1=context)
        self._engine.set_pe(pe)
        self.checker = Checker(config, pe) if check else None
        self.data = bytearray()
        self.sampled = 0
        self.collided = 0
        self.interrupts = 0

        self._discard = filters.discard

        if self._discard:  # as Linux: neither a pointer nor a limit
            self._write(arch.PMBLIMITR_EL1, arch.PMBLIMITR_EL1.pack(E=1, FM=arch.FM.DISCARD))
        else:
            self._write(arch.PMBPTR_EL1, _BASE)
            self._write(arch.PMBLIMITR_EL1, _BASE + _SIZE | arch.PMBLIMITR_EL1.pack(E=1))
        self._write(arch.PMSFCR_EL1, filters.pmsfcr)
        self._write(arch.PMSEVFR_EL1, filters.pmsevfr)
        if config.fne:
            self._write(arch.PMSNEVFR_EL1, filters.pmsnevfr)
        if config.fds:
            self._write(arch.PMSDSFR_EL1, filters.pmsdsfr)
        self._write(arch.PMSLATFR_EL1, filters.pmslatfr)
        self._write(arch.PMSIRR_EL1, arch.PMSIRR_EL1.pack(INTERVAL=interval, RND=jitter))
        if seed is not None:
            # Two generators of one sequence: from the same seed they would go through the same bits.
            other = seed ^ arch.IMP_PMSRNDR_EL1.fields["STATE"].mask
            self._write(arch.IMP_PMSRNDR_EL1, arch.IMP_PMSRNDR_EL1.pack(STATE=seed, ACCESS=other))
        self._write(arch.PMSICR_EL1, 0)
        if config.el2:  # as Linux leaves EL2 to its guest, or to itself
            self._write(arch.PMSCR_EL2, arch.PMSCR_EL2.pack(PA=1, PCT=arch.PCT.PHYSICAL))
        self._write(arch.PMSCR_EL1, arch.PMSCR_EL1.pack(E0SPE=1, CX=1, PA=1, TS=1, PCT=arch.PCT.PHYSICAL))

    def run(self, operations: NDArray[np.void]) -> None:
        """Let rows of `TIMED` pass, and serve the interrupts that they raise."""
        self._play(operations, settle=False)

    def stop(self) -> None:
        """Wait for the operations in flight, stop profiling and take what is in the buffer."""
        self._play(np.zeros(0, TIMED), settle=True)
        self._write(arch.PMSCR_EL1, 0)
        self._take()
        self._write(arch.PMBLIMITR_EL1, 0)
        if self.checker:
            self.checker.counts(self.counts())

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
            settled = interrupt or settle
            if settled:
                self._engine.drain()
            if self.checker:
                answers = self._engine.answers()
                self.checker.passed(operations[:passed], selections, finishes, answers, settled=settled)
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
        if self._discard:
            return
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
