"""Longest path of each pair of registers of a placed circuit, from the delays in an SDF file of nextpnr."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .paths import CARRY_INPUTS, CriticalPath, register_name

__all__ = ["Delays", "read_sdf", "register_pairs"]

_DELAY = r"\(([\d.:]+)\)"
_INTERCONNECT = re.compile(rf"\(INTERCONNECT (\S+) (\S+) {_DELAY} {_DELAY}\)")
_IOPATH = re.compile(rf"\(IOPATH (?:\(\w+ )?(\w+)\)? (\w+) {_DELAY} {_DELAY}\)")
_SETUP = re.compile(rf"\(SETUPHOLD \(\w+ (\w+)\) \(posedge (\w+)\) {_DELAY} {_DELAY}\)")
_INSTANCE = re.compile(r"\(INSTANCE (\S+)\)")


@dataclass
class Delays:
    """Delays of a placed circuit in picoseconds. A pin is CELL/PORT.

    Parameters
    ----------
    wires : dict of str to tuple of str and float
        Driver of each input pin, and the delay from it.
    cells : dict of str to dict of str to float
        For each output pin the delays from the input pins of its cell.
    setups : dict of str to float
        Setup time of each data input of a register.
    clocks : set of str
        Clock pins.
    """

    wires: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])
    cells: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    setups: dict[str, float] = field(default_factory=dict[str, float])
    clocks: set[str] = field(default_factory=set[str])


def read_sdf(lines: Iterable[str]) -> Delays:
    """Return the delays in an SDF file of nextpnr: the largest of each triple, of the rising and the falling edge."""
    delays = Delays()
    cell = ""
    for line in lines:
        if instance := _INSTANCE.search(line):
            cell = instance[1]
        elif wire := _INTERCONNECT.search(line):
            delays.wires[wire[2]] = wire[1], _largest(wire[3], wire[4])
        elif path := _IOPATH.search(line):
            delays.cells.setdefault(f"{cell}/{path[2]}", {})[f"{cell}/{path[1]}"] = _largest(path[3], path[4])
        elif setup := _SETUP.search(line):
            delays.setups[f"{cell}/{setup[1]}"] = _largest(setup[3])
            delays.clocks.add(f"{cell}/{setup[2]}")
    return delays


def _largest(*triples: str) -> float:
    return max(float(number) for triple in triples for number in triple.split(":") if number)


class _Arrival(NamedTuple):
    """Latest signal at an output pin.

    Members
    -------
    time : float
        Picoseconds after the edge of the clock.
    routing : float
        Part of it in wires.
    levels : int
        Wires on its path, without those inside of a logic cell or of a carry chain.
    register : str
        Cell in which the path begins.
    """

    time: float
    routing: float
    levels: int
    register: str


def register_pairs(delays: Delays) -> list[CriticalPath]:
    """Return the longest path of each pair of registers, the slowest first.

    Registers with the same name without the bit index are one register. A memory is a register to its inputs. nextpnr
    times a read of LUT RAM from its address, but not from the clock edge of a write to the same word.
    """
    known: dict[str, _Arrival | None] = {}

    def at_output(pin: str) -> _Arrival | None:
        """Return the latest signal at an output pin; None if no path from a register ends there."""
        if pin not in known:
            known[pin] = None  # a combinational loop has no arrival
            candidates = [
                _through(delays, arc, delay, at_input(arc)) for arc, delay in delays.cells.get(pin, {}).items()
            ]
            known[pin] = max((each for each in candidates if each), default=None)
        return known[pin]

    def at_input(pin: str) -> _Arrival | None:
        driver, delay = delays.wires.get(pin, ("", 0.0))
        arrival = at_output(driver)
        if arrival is None:
            return None
        wire = delay > 0 and pin.rsplit("/", 1)[1] not in CARRY_INPUTS
        return _Arrival(arrival.time + delay, arrival.routing + delay, arrival.levels + wire, arrival.register)

    longest: dict[tuple[str, str], CriticalPath] = {}
    for pin, setup in delays.setups.items():
        if arrival := at_input(pin):
            path = _path(arrival, pin, setup)
            pair = path.source, path.sink
            if pair not in longest or path.fmax_mhz < longest[pair].fmax_mhz:
                longest[pair] = path
    return sorted(longest.values(), key=lambda path: path.fmax_mhz)


def _through(delays: Delays, pin: str, delay: float, arrival: _Arrival | None) -> _Arrival | None:
    """Return the arrival after a cell: of the clock at the clock pin of a register, or of a signal at an input."""
    if pin in delays.clocks:
        return _Arrival(delay, 0.0, 0, _cell(pin))
    return arrival and arrival._replace(time=arrival.time + delay)


def _path(arrival: _Arrival, pin: str, setup: float) -> CriticalPath:
    period = arrival.time + setup
    return CriticalPath(
        fmax_mhz=round(1e6 / period, 2),
        source=register_name(arrival.register),
        sink=register_name(_cell(pin)),
        levels=max(arrival.levels - 1, 0),
        logic_ns=round((period - arrival.routing) / 1000, 2),
        routing_ns=round(arrival.routing / 1000, 2),
    )


def _cell(pin: str) -> str:
    """Return the name of the cell of a pin, without the escapes of SDF."""
    return pin.rsplit("/", 1)[0].replace("\\", "")
