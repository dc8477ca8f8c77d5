"""History registers of the packer: the steps of its records, and the bytes that were appended and sent."""

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
    "loads",
    "next_step",
    "sends",
    "start_in_record",
    "watched",
]


def count_width(config: SPUConfig) -> int:
    """Return the width of a count of bytes. Upper bound: a record, a beat and a step."""
    return (2 * config.layout.max_size + 2 * config.bus_bytes).bit_length()


def byte_at(value: BitVector, index: BitVector) -> BitVector:
    """Return the byte at a symbolic index. It is unspecified if `value` has no byte at it."""
    distance = zero_extend(value.width - index.width, index) << 3
    return extract(7, 0, shift_right(value, distance))


def aligned(config: SPUConfig, size: BitVector) -> BitVector:
    """Return the size, rounded up to a multiple of the alignment."""
    unit = config.layout.align
    return (size + unit - 1) & ~(unit - 1)


def loads(wires: Wires) -> Boolean:
    """Return whether the next step of the record at the input is captured."""
    return all_of(wires["advance"] == 1, wires["i__valid"] == 1)


def next_step(config: SPUConfig, wires: Wires) -> BitVector:
    """Return the number of the next step of the record at the input.

    It is the next one that has bytes. A record begins with its first step or, if that has no bytes, with the second.
    """
    record, number = Steps(config, wires["i__payload"], count_width(config)), wires["number"]
    first = if_else(record.sizes[0] != 0, constant(0, number.width), constant(1, number.width))
    return if_else(wires["started"] == 1, record.following(number), first)


def sends(wires: Wires) -> Boolean:
    """Return whether a beat is accepted at the output."""
    return all_of(wires["o__valid"] == 1, wires["o__ready"] == 1)


def start_in_record(config: SPUConfig, ends: Boolean, before: BitVector, size: BitVector) -> BitVector:
    """Return the byte offset of a step in its record: after the bytes `before` it, and for the end after padding."""
    if config.layout.padding_last:
        return before
    return if_else(ends, aligned(config, before + size) - size, before)


def watched(config: SPUConfig, system: Transition) -> Transition:
    """Return `system`, a `Packer` of `config`, with history registers of its records.

    record, number : record and number of the step in `step`
    started : the record at the input has further steps after that one
    step_start : bytes of the record before that step
    octets, size, shifted_start : unshifted step in `shifted`, and bytes of its record before it
    appended : bytes that have been appended of an incomplete record
    sent, length : bytes sent of the record in `assembled`; its length, once it is complete
    k, value, has_k : an arbitrary byte index in every record; the byte of a step at it; whether it was appended
    """
    width = count_width(config)
    zero = constant(0, width)

    def follow(wires: Wires) -> Mapping[str, BitVector]:
        reset, append = wires["rst"] == 1, wires["append"] == 1
        loading, number = loads(wires), next_step(config, wires)
        more = if_else(Steps(config, wires["i__payload"], width).ends(number), constant(0, 1), constant(1, 1))
        passes = all_of(wires["advance"] == 1, wires["step.valid"] == 1)
        start_after = if_else(wires["step.ends"] == 1, zero, wires["step_start"] + widened(wires["step.size"], width))
        shifts = all_of(passes, wires["step.size"] != 0)

        k, size, before, ends = wires["k"], wires["size"], wires["shifted_start"], wires["shifted.ends"] == 1
        start = start_in_record(config, ends, before, size)
        contains_k = all_of(append, uge(k, start), ult(k, start + size))
        first_step = all_of(append, before == 0)
        last = wires["o__payload.last"] == 1
        sent = if_else(last, zero, wires["sent"] + config.bus_bytes)
        return {
            "record": if_else(loading, wires["i__payload"], wires["record"]),
            "number": if_else(loading, number, wires["number"]),
            "started": if_else(reset, constant(0, 1), if_else(loading, more, wires["started"])),
            "step_start": if_else(reset, zero, if_else(passes, start_after, wires["step_start"])),
            "octets": if_else(shifts, wires["step.octets"], wires["octets"]),
            "size": if_else(shifts, widened(wires["step.size"], width), size),
            "shifted_start": if_else(shifts, wires["step_start"], before),
            "appended": if_else(reset, zero, if_else(append, if_else(ends, zero, before + size), wires["appended"])),
            "sent": if_else(reset, zero, if_else(sends(wires), sent, wires["sent"])),
            "length": if_else(all_of(append, ends), aligned(config, before + size), wires["length"]),
            "k": k,
            "value": if_else(contains_k, byte_at(wires["octets"], k - start), wires["value"]),
            "has_k": if_else(contains_k, constant(1, 1), if_else(first_step, constant(0, 1), wires["has_k"])),
        }

    widths = {
        "record": record_layout(config).size,
        "number": len(steps(config)).bit_length(),
        "started": 1,
        "octets": 8 * STEP_BYTES,
        **dict.fromkeys(("step_start", "size", "shifted_start", "appended", "sent", "length", "k"), width),
        "value": 8,
        "has_k": 1,
    }
    return with_history(system, widths, follow, {"started": 0, "step_start": 0, "appended": 0, "sent": 0})
