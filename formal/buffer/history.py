"""History registers of the buffer: which bytes of a record are written, and where."""

import operator
from collections.abc import Mapping
from functools import reduce

from spurtle.arch import FM, PMBLIMITR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.buffer import BufferState

from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    as_bits,
    concat,
    constant,
    extract,
    if_else,
    not_,
    shift_right,
    ule,
    widened,
)
from ..engine.transition import Transition, Wires, with_history

__all__ = [
    "WrittenRecord",
    "in_state",
    "limit_of",
    "longest_fits",
    "runs",
    "watched",
    "writes_records",
]


_LIMIT = PMBLIMITR_EL1.fields["LIMIT"]


def limit_of(wires: Wires) -> BitVector:
    """Return the limit address of PMBLIMITR_EL1."""
    return concat(extract(63, _LIMIT.lsb, wires["pmblimitr"]), constant(0, _LIMIT.lsb))


def in_state(wires: Wires, *states: int) -> Boolean:
    """Return whether the buffer is in one of the states."""
    return any_of(*(wires["buffer_state"] == state for state in states))


def runs(wires: Wires) -> Boolean:
    """Return whether the buffer is enabled and not stopped, and keeps its owner."""
    return all_of(wires["pmblimitr.E"] == 1, wires["pmbsr.S"] == 0, wires["new_owner"] == 0)


def writes_records(wires: Wires) -> Boolean:
    """Return whether PMBLIMITR_EL1, PMBSR_EL1 and the owner permit that records are written."""
    return all_of(runs(wires), wires["pmblimitr.FM"] != FM.DISCARD)


def longest_fits(config: SPUConfig, pointer: BitVector, limit: BitVector) -> Boolean:
    """Return whether the longest record fits at the pointer and the pointer is valid.

    `prove_full` proves that this matches `model.buffer`.
    """
    size = config.max_record_bytes
    return all_of(
        pointer & (config.layout.align - 1) == 0,
        shift_right(pointer, 56) == shift_right(limit, 56),
        ule(widened(pointer, 65) + size, widened(limit, 65)),
    )


class WrittenRecord:
    """State of the record that is being written, from the wires of a cycle."""

    def __init__(self, config: SPUConfig, wires: Wires):
        self._wires = wires
        self.bus = config.bus_bytes
        self.word = self.bus.bit_length() - 1
        self.align = min(config.layout.align, self.bus)
        self.units = self.bus // self.align
        self.origin, self.length = wires["origin"], wires["length"]
        self.within = widened(wires["within"], 64) * self.align if self.units > 1 else constant(0, 64)
        self.words = widened(wires["words_out"], 64)
        self.beats = widened(wires["beats_in"], 64)
        self.first = self.origin & -self.bus
        """Address of the word that contains the first byte."""

    @property
    def offered(self) -> Boolean:
        """A word is offered to memory."""
        return all_of(self._wires["buffer_state"] == BufferState.WRITE, self._wires["write__beat__valid"] == 1)

    @property
    def sent(self) -> Boolean:
        """A word is accepted by memory."""
        return all_of(self.offered, self._wires["write__beat__ready"] == 1)

    @property
    def next_address(self) -> BitVector:
        """Address of the byte after those that have been written."""
        address = self._wires["write__beat__payload.address"]
        return address + self.within

    def strobed(self, byte: int) -> Boolean:
        """Return whether this byte of the offered word is written."""
        return extract(byte, byte, self._wires["write__beat__payload.strobe"]) == 1

    @property
    def bytes(self) -> BitVector:
        """Number of bytes of the offered word that are written."""
        sizes = (
            if_else(self.strobed(byte), constant(self.align, 64), constant(0, 64))
            for byte in range(0, self.bus, self.align)
        )
        return reduce(operator.add, sizes)


def watched(config: SPUConfig, system: Transition) -> Transition:
    """Return `system`, a `ProfilingBuffer` of `config`, with history registers of a record.

    origin, limit : PMBPTR_EL1 and the limit when the record was accepted
    words_out, length : words and bytes of it that memory has accepted
    beats_in : beats of it that were accepted at `i`
    undisturbed : since then the buffer has not stopped, and neither pointer nor limit was written
    """
    number = (2 * config.max_record_bytes // config.bus_bytes).bit_length()

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        record = WrittenRecord(config, wires)
        accepted = wires["accepted"] == 1
        received = all_of(wires["i__valid"] == 1, wires["i__ready"] == 1)
        zero = constant(0, number)
        beats = if_else(wires["i__payload.last"] == 1, zero, wires["beats_in"] + 1)
        written = any_of(wires["pmbptr_write"] == 1, wires["pmblimitr_write"] == 1)
        return {
            "origin": if_else(accepted, wires["pmbptr"], wires["origin"]),
            "limit": if_else(accepted, limit_of(wires), wires["limit"]),
            "words_out": if_else(accepted, zero, if_else(record.sent, wires["words_out"] + 1, wires["words_out"])),
            "length": if_else(
                accepted, constant(0, 64), if_else(record.sent, record.length + record.bytes, record.length)
            ),
            "beats_in": if_else(wires["rst"] == 1, zero, if_else(received, beats, wires["beats_in"])),
            "undisturbed": if_else(
                accepted, as_bits(not_(written)), as_bits(all_of(wires["undisturbed"] == 1, runs(wires), not_(written)))
            ),
        }

    widths = {"origin": 64, "limit": 64, "length": 64, "words_out": number, "beats_in": number, "undisturbed": 1}
    return with_history(system, widths, follow, {"beats_in": 0})
