"""Packed records: the output is the record of `model.records.lay_out`, each byte once and in order.

The packer splits a record into steps and appends them to each other, and the proof has the same structure. The
concatenated steps equal the record of the reference: see `steps`. The appended steps are the steps of the record, each
once and in order: by induction. The appended bytes are sent unchanged: by induction, for an arbitrary byte.
"""

import operator
from collections.abc import Iterator, Mapping
from functools import cache, reduce
from itertools import chain

from spurtle.config import SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle.gateware.packer import STEP_BYTES, Packer
from spurtle.gateware.record import record_layout
from spurtle_sim.model import records

from ..engine.cover import reach_all
from ..engine.induction import Invariant, always, inductive
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.streams import stable
from ..engine.terms import (
    BitVector,
    Boolean,
    all_of,
    any_of,
    constant,
    extract,
    if_else,
    implies,
    not_,
    uge,
    ugt,
    ule,
    ult,
    widened,
    zero_extend,
)
from ..engine.transition import Transition, Wires, transition
from .packer_history import (
    aligned,
    byte_at,
    count_width,
    loads,
    next_step,
    sends,
    start_in_record,
    watched,
)
from .steps import PACKED, Steps, contents_of_layout, prove_steps, steps

__all__ = ["input_contract", "invariant", "proofs", "prove_ends", "prove_output", "prove_rate"]


def invariant(config: SPUConfig) -> Invariant:
    """Return the invariant.

    `step` is the next step of its record, `shifted` the one before it at its byte offset, and `assembled` the bytes
    that have been appended and not sent.
    """

    def holds(wires: Wires) -> Boolean:
        return all_of(
            *_step_is_correct(config, wires), *_shifted_is_correct(config, wires), *_assembled_is_correct(config, wires)
        )

    return holds


def _step_is_correct(config: SPUConfig, wires: Wires) -> Iterator[Boolean]:
    width, beat = count_width(config), config.bus_bytes
    number, start = wires["number"], wires["step_start"]
    started, valid, ends = (wires[name] == 1 for name in ("started", "step.valid", "step.ends"))
    expected = Steps(config, wires["record"], width)
    steps_of_record = (
        all_of(
            number == step,
            wires["step.octets"] == expected.octets[step],
            widened(wires["step.size"], width) == expected.sizes[step],
            start == expected.before[step],
            expected.sizes[step] != 0 if step > 1 else True,
        )
        for step in range(expected.last + 1)
    )
    # A record stays at the input until its last step has been captured. The next step is selected.
    yield implies(started, all_of(valid, wires["record"] == wires["i__payload"], wires["i__valid"] == 1))
    bits = wires["selected_step"].width
    selected = if_else(started, expected.following(number), constant(0, number.width))
    yield wires["selected_step"] == constant(1, bits) << zero_extend(bits - number.width, selected)
    yield implies(valid, all_of(any_of(*steps_of_record), ends == expected.ends(number), started == not_(ends)))
    yield implies(not_(valid), all_of(start == 0, not_(ends)))
    # If padding precedes the end of a record, its last byte is the last one of an aligned unit.
    padded = 0 if config.layout.padding_last else config.layout.align - 1
    position = start & (beat - 1) | if_else(all_of(valid, ends), constant(padded, width), constant(0, width))
    yield widened(wires["position"], width) == position


def _shifted_is_correct(config: SPUConfig, wires: Wires) -> Iterator[Boolean]:
    width, align = count_width(config), config.layout.align
    valid, ends = wires["shifted.valid"] == 1, wires["shifted.ends"] == 1
    size, before, octets = wires["size"], wires["shifted_start"], wires["octets"]
    start = start_in_record(config, ends, before, size)
    position = start & (config.bus_bytes - 1)
    shifted = zero_extend(wires["shifted.octets"].width - octets.width, octets)
    if not config.layout.padding_last:
        yield implies(all_of(valid, ends), size & (align - 1) == 1 % align)
    yield implies(
        valid,
        all_of(
            before == wires["appended"],
            ugt(size, 0),
            ule(size, STEP_BYTES),
            wires["shifted.octets"] == shifted << zero_extend(shifted.width - width, position << 3),
            widened(wires["shifted.fill"], width) == position + size,
            ule(aligned(config, before + size), config.layout.max_size),
            *(implies(ule(size, n), extract(8 * n + 7, 8 * n, octets) == 0) for n in range(STEP_BYTES)),
        ),
    )
    for lane in range(config.bus_bytes):
        yield (extract(lane, lane, wires["shifted.lanes"]) == 1) == all_of(valid, ule(position, lane))
    following = if_else(ends, constant(0, width), before + size)
    yield wires["step_start"] == if_else(valid, following, wires["appended"])


def _assembled_is_correct(config: SPUConfig, wires: Wires) -> Iterator[Boolean]:
    width, beat = count_width(config), config.bus_bytes
    appended, sent, length, k = (wires[name] for name in ("appended", "sent", "length", "k"))
    complete, assembled, fill = wires["complete"] == 1, wires["assembled"], widened(wires["fill"], width)
    # The appended bytes of a record have been sent or are in `assembled`.
    yield implies(not_(complete), sent + fill == appended)
    yield implies(complete, all_of(appended == 0, aligned(config, sent + fill) == length, fill != 0))
    yield implies(complete, ule(length, config.layout.max_size))
    yield ule(fill, beat - 1 + STEP_BYTES)
    yield all_of(ule(appended, config.layout.max_size), ule(sent, config.layout.max_size), sent & (beat - 1) == 0)
    yield (wires["beat_ready"] == 1) == any_of(complete, uge(fill, beat))
    yield (wires["has_space"] == 1) == all_of(not_(complete), ult(fill, beat))
    below = all_of(uge(fill, beat), ult(fill, 2 * beat))
    yield (wires["has_space_after_beat"] == 1) == if_else(complete, ule(fill, beat), below)
    yield (wires["last"] == 1) == all_of(complete, ule(fill, beat))
    if (align := config.layout.align) < beat:
        bits = align.bit_length() - 1, beat.bit_length() - 2
        yield wires["end"] == extract(bits[1], bits[0], fill + (align - 1))
    # Bytes above `fill`, and padding between steps, are zero.
    for index in range(assembled.width // 8):
        yield implies(ule(fill, index), extract(8 * index + 7, 8 * index, assembled) == 0)
    in_assembled = all_of(uge(k, sent), ult(k, sent + fill))
    value = if_else(wires["has_k"] == 1, wires["value"], constant(0, 8))
    yield implies(in_assembled, byte_at(assembled, k - sent) == value)
    yield implies(all_of(any_of(complete, appended != 0), uge(k, sent + fill)), wires["has_k"] == 0)


def input_contract(config: SPUConfig) -> Invariant:
    """Return the contract of the input, which is proved for `RecordBuilder`: the bytes of absent fields are zero."""
    octets = record_layout(config)["octets"].width

    def holds(wires: Wires) -> Boolean:
        record = wires["i__payload"]
        return all_of(
            *(
                implies(
                    extract(octets + piece.bit, octets + piece.bit, record) == 0,
                    extract(8 * (piece.offset + piece.size) - 1, 8 * piece.offset, record) == 0,
                )
                for piece in chain.from_iterable(steps(config))
                if piece.bit is not None
            )
        )

    return holds


def prove_invariant(config: SPUConfig, system: Transition) -> Verdict:
    """Prove the invariant, under the contracts of the stream and the records. `system` is a `watched` packer."""
    record = input_contract(config)
    return inductive(system, invariant(config), contract=lambda now, then: all_of(stable("i", now, then), record(now)))


def prove_output(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that the beats are the bytes of the record, in order. `system` is a `watched` packer.

    Each beat is full, except for the last one, which has the remaining bytes. A record is accepted with its last step.
    """
    width, beat = count_width(config), config.bus_bytes

    def correct(now: Wires, then: Wires) -> Boolean:
        fill, sent, length, k = widened(now["fill"], width), now["sent"], now["length"], now["k"]
        valid, last = now["o__valid"] == 1, now["o__payload.last"] == 1
        data = now["o__payload.data"]
        complete = all_of(last, uge(sent + beat, length))
        end = if_else(complete, length, sent + beat)
        value = if_else(now["has_k"] == 1, now["value"], constant(0, 8))
        in_beat = all_of(uge(k, sent), ult(k, end))
        expected = Steps(config, now["i__payload"], width)
        accepted = all_of(now["i__valid"] == 1, now["i__ready"] == 1)
        terms = [
            # A beat is full, or it is the last one and completes the record.
            implies(valid, if_else(last, complete, uge(fill, beat))),
            implies(all_of(valid, in_beat), byte_at(zero_extend(width, data), k - sent) == value),
            accepted == all_of(loads(now), expected.ends(next_step(config, now))),
            stable("o", now, then),
        ]
        terms += [
            implies(all_of(valid, ule(end, sent + index)), extract(8 * index + 7, 8 * index, data) == 0)
            for index in range(beat)
        ]
        if "o__payload.end" in now:
            beat_end = widened(now["o__payload.end"], width) * config.layout.align
            terms.append(implies(all_of(valid, last), beat_end == length & (beat - 1)))
        return all_of(*terms)

    return always(system, correct, assuming=invariant(config))


def _work(config: SPUConfig, wires: Wires) -> BitVector:
    """Return an upper bound for the cycles until all accepted bytes are sent, if the output is never stalled."""
    # A step has less weight in each later stage, down to its bytes in `fill`.
    size = 16
    last, following = len(steps(config)) - 1, next_step(config, wires)
    parts = [
        if_else(all_of(wires["i__valid"] == 1, ule(following, step)), constant(128, size), constant(0, size))
        for step in range(last + 1)
    ]
    parts += [
        widened(wires["step.valid"], size) * 64,
        widened(wires["shifted.valid"], size) * 32,
        widened(wires["fill"], size),
    ]
    return reduce(operator.add, parts)


def prove_ends(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that each accepted record is sent if the output is not stalled and no other record arrives.

    The bound `_work` decreases in each cycle until everything is sent. `system` is a `watched` packer.
    """

    def less(now: Wires, then: Wires) -> Boolean:
        waits = all_of(now["i__valid"] == 1, now["i__ready"] == 0)
        no_other = all_of(implies(then["i__valid"] == 1, waits), stable("i", now, then))
        before, after = _work(config, now), _work(config, then)
        free = all_of(now["o__ready"] == 1, now["rst"] == 0, no_other)
        idle = all_of(now["step.valid"] == 0, now["shifted.valid"] == 0, now["o__valid"] == 0)
        return implies(free, if_else(before == 0, idle, ult(after, before)))

    return always(system, less, assuming=invariant(config))


def prove_rate(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that no cycle is lost: each stage waits only for the next one. `system` is a `watched` packer.

    A step is appended as soon as less than a beat of its record remains, or none of another. A beat is offered as soon
    as it is complete. After the last beat of a record, the first one of the next record follows without an idle cycle
    if the next step has a beat or is the end.
    """
    beat, width = config.bus_bytes, count_width(config)

    def holds(now: Wires, then: Wires) -> Boolean:
        fill, step_end = widened(now["fill"], width), widened(now["shifted.fill"], width)
        shifted, complete, ends = (now[name] == 1 for name in ("shifted.valid", "complete", "shifted.ends"))
        last = all_of(complete, ule(fill, beat))
        remaining = if_else(sends(now), if_else(last, constant(0, width), fill - beat), fill)
        of_record = any_of(not_(complete), all_of(sends(now), last))
        append = all_of(shifted, ult(remaining, beat), of_record)
        return all_of(
            (now["append"] == 1) == append,
            (now["advance"] == 1) == any_of(not_(shifted), append),
            (now["o__valid"] == 1) == any_of(complete, uge(fill, beat)),
            implies(all_of(append, any_of(ends, uge(step_end, beat)), now["rst"] == 0), then["o__valid"] == 1),
        )

    return always(system, holds, assuming=invariant(config))


def _goals(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Yield name, goal and assumption."""
    lengths = [len(records.lay_out(config, _blank(config, packets))) for packets in contents_of_layout(config)]

    def free(wires: Wires) -> Boolean:
        return all_of(wires["o__ready"] == 1, wires["rst"] == 0)

    def complete(wires: Wires) -> Boolean:
        """Return whether every field is present. The search for the longest record would take minutes without it."""
        record, octets = wires["i__payload"], record_layout(config)["octets"].width
        bits = record.width - octets
        return all_of(free(wires), extract(record.width - 1, octets, record) == (1 << bits) - 1)

    for name, length, assuming in (("shortest", min(lengths), free), ("longest", max(lengths), complete)):

        def sent(wires: Wires, length: int = length) -> Boolean:
            return all_of(sends(wires), wires["o__payload.last"] == 1, wires["length"] == length)

        yield f"the {name} record, {length} bytes", sent, assuming
    yield (
        "a record starts as another ends",
        lambda wires: all_of(sends(wires), wires["o__payload.last"] == 1, wires["append"] == 1),
        free,
    )
    yield (
        "the first beat of a record follows the last beat of another",
        lambda wires: all_of(
            sends(wires),
            wires["o__payload.last"] == 1,
            wires["append"] == 1,
            any_of(uge(wires["shifted.fill"], config.bus_bytes), wires["shifted.ends"] == 1),
        ),
        free,
    )
    parts = steps(config)
    for step, pieces in enumerate(parts):
        yield (
            f"step {step}",
            lambda wires, step=step: all_of(wires["step.valid"] == 1, wires["number"] == step),
            free,
        )
        if all(piece.bit is not None for piece in pieces):

            def omitted(wires: Wires, step: int = step) -> Boolean:
                empty = Steps(config, wires["record"], count_width(config)).sizes[step] == 0
                passed = any_of(ugt(wires["number"], step), wires["step.ends"] == 1)
                return all_of(wires["step.valid"] == 1, empty, passed)

            yield f"step {step} is omitted", omitted, free


def _blank(config: SPUConfig, packets: Mapping[Packet, int]) -> list[tuple[Packet, bytes]]:
    return [(packet, bytes(config.packet_bytes[packet])) for packet in packets]


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Reach every goal. `system` is a `watched` packer."""
    return reach_all(system, _goals(config), cycles=20)


@cache
def _system(config: SPUConfig) -> Transition:
    return watched(config, transition(Packer(config)))


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each configuration with packed records."""
    for config in PACKED:
        proof = ProvedBlock("serializer", config, _system).proof
        yield Proof(
            "the steps of a record are the bytes of the reference", "serializer", config.name, "each pattern",
            lambda config=config: prove_steps(config),
        )  # fmt: skip
        yield proof("each step is packed once, in order, after the previous one", "induction", prove_invariant)
        yield proof("the beats are the packed bytes, complete and in order", "one cycle", prove_output)
        yield proof("every accepted record is sent", "one cycle", prove_ends)
        yield proof("each stage waits only for the next one", "one cycle", prove_rate)
        yield proof("cover: longest, shortest, back to back, each step present and omitted", "bounded search", cover)
