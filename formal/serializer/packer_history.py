"""Registers beside the packer, which a proof watches: what has become of the record at its input."""

from collections.abc import Mapping

from spurtle.config import SPUConfig
from spurtle.gateware.packer import STEP_BYTES
from spurtle.gateware.record import record_layout

from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    constant,
    extract,
    if_else,
    shift_right,
    uge,
    ult,
    widened,
    zero_extend,
)
from ..engine.transition import Transition, Wires, with_history
from .steps import Steps, steps

__all__ = [
    "aligned",
    "byte_at",
    "count_width",
    "leaves",
    "loads",
    "next_step",
    "start_in_record",
    "watched",
]


def count_width(config: SPUConfig) -> int:
    """Bits of a count of bytes. More than a record has, and a beat and a step besides."""
    return (2 * config.layout.max_size + 2 * config.bus_bytes).bit_length()


def byte_at(value: BitVector, place: BitVector) -> BitVector:
    """The byte at a place that is not known; anything if `value` has none there."""
    distance = zero_extend(value.width - place.width, place) << 3
    return extract(7, 0, shift_right(value, distance))


def aligned(config: SPUConfig, size: BitVector) -> BitVector:
    unit = config.layout.align
    return (size + unit - 1) & ~(unit - 1)


def loads(wires: Wires) -> Boolean:
    """The record at the input gives its next step."""
    return all_of(wires["advance"] == 1, wires["i__valid"] == 1)


def next_step(wires: Wires) -> BitVector:
    """Which one it is."""
    return if_else(wires["begun"] == 1, wires["number"] + 1, constant(0, wires["number"].width))


def leaves(wires: Wires) -> Boolean:
    return all_of(wires["o__valid"] == 1, wires["o__ready"] == 1)


def start_in_record(config: SPUConfig, ends: Boolean, before: BitVector, size: BitVector) -> BitVector:
    """Where a step comes in its record: behind the bytes that are there `before`, the end behind padding."""
    if config.layout.padding_last:
        return before
    return if_else(ends, aligned(config, before + size) - size, before)


def watched(config: SPUConfig, system: Transition) -> Transition:
    """A `Packer` of `config`, and beside it what has become of records.

    record, number : which step of which record is in `step`
    begun : it is one of the record at the input, of which there is more
    at : bytes of that record that come before it
    octets, size, before : what is in `placed`, unshifted, and bytes of its record that come before it
    down : bytes that have been laid down of a record that is not whole
    sent, length : bytes of the record in `laid` that have left; how long it is, once it is whole
    k, value, laid_k : an arbitrary place in every record; the byte that a step had for it, and whether one had
    """
    width = count_width(config)
    zero = constant(0, width)

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        reset, taken = wires["rst"] == 1, wires["append"] == 1
        loading, number = loads(wires), next_step(wires)
        more = if_else(Steps(config, wires["i__payload"], width).ends(number), constant(0, 1), constant(1, 1))
        passes = all_of(wires["advance"] == 1, wires["step.valid"] == 1)
        at = if_else(wires["step.ends"] == 1, zero, wires["at"] + widened(wires["step.size"], width))
        placed = all_of(passes, wires["step.size"] != 0)

        k, size, before, ends = wires["k"], wires["size"], wires["before"], wires["shifted.ends"] == 1
        start = start_in_record(config, ends, before, size)
        brings = all_of(taken, uge(k, start), ult(k, start + size))
        begins = all_of(taken, before == 0)
        left = wires["o__payload.last"] == 1
        sent = if_else(left, zero, wires["sent"] + config.bus_bytes)
        return {
            "record": if_else(loading, wires["i__payload"], wires["record"]),
            "number": if_else(loading, number, wires["number"]),
            "begun": if_else(reset, constant(0, 1), if_else(loading, more, wires["begun"])),
            "at": if_else(reset, zero, if_else(passes, at, wires["at"])),
            "octets": if_else(placed, wires["step.octets"], wires["octets"]),
            "size": if_else(placed, widened(wires["step.size"], width), size),
            "before": if_else(placed, wires["at"], before),
            "down": if_else(reset, zero, if_else(taken, if_else(ends, zero, before + size), wires["down"])),
            "sent": if_else(reset, zero, if_else(leaves(wires), sent, wires["sent"])),
            "length": if_else(all_of(taken, ends), aligned(config, before + size), wires["length"]),
            "k": k,
            "value": if_else(brings, byte_at(wires["octets"], k - start), wires["value"]),
            "laid_k": if_else(brings, constant(1, 1), if_else(begins, constant(0, 1), wires["laid_k"])),
        }

    widths = {
        "record": record_layout(config).size,
        "number": len(steps(config)).bit_length(),
        "begun": 1,
        "octets": 8 * STEP_BYTES,
        **dict.fromkeys(("at", "size", "before", "down", "sent", "length", "k"), width),
        "value": 8,
        "laid_k": 1,
    }
    return with_history(system, widths, follow, {"begun": 0, "at": 0, "down": 0, "sent": 0})
