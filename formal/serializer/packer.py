"""Records of any length: the bytes of `model.records.lay_out`, each once, in order, and nothing else.

The packer takes a record apart into steps and lays them down behind each other. So does this proof. The steps, one
after the other, are what the reference writes: see `steps`. The steps that are laid down are those of the record, each
once, in order: induction. What is laid down leaves as it was: induction, for an arbitrary byte.
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
    leaves,
    loads,
    next_step,
    start_in_record,
    watched,
)
from .steps import PACKED, Steps, contents_of_layout, prove_steps, steps

__all__ = ["invariant", "proofs", "prove_ends", "prove_output", "record_comes"]


def invariant(config: SPUConfig) -> Invariant:
    """`step` is the one that comes next of its record, `placed` the one before it where it belongs, and `laid` what has
    been laid down and has not left.
    """

    def holds(wires: Wires) -> Boolean:
        return all_of(*_step_is_next(config, wires), *_placed_is_next(config, wires), *_laid_is_left(config, wires))

    return holds


def _step_is_next(config: SPUConfig, wires: Wires) -> Iterator[Boolean]:
    width, beat = count_width(config), config.bus_bytes
    number, at = wires["number"], wires["at"]
    begun, stepping, ends = (wires[name] == 1 for name in ("begun", "step.valid", "step.ends"))
    its = Steps(config, wires["record"], width)
    shown = (
        all_of(
            number == step,
            wires["step.octets"] == its.octets[step],
            widened(wires["step.size"], width) == its.sizes[step],
            at == its.before[step],
            its.sizes[step] != 0 if step == its.last else True,
        )
        for step in range(its.last + 1)
    )
    # A record stays at the input until its last step has been taken over; the next one is chosen.
    yield implies(begun, all_of(stepping, wires["record"] == wires["i__payload"], wires["i__valid"] == 1))
    places = wires["selected_step"].width
    yield wires["selected_step"] == constant(1, places) << zero_extend(places - number.width, next_step(wires))
    yield implies(stepping, all_of(any_of(*shown), ends == its.ends(number), begun == not_(ends)))
    yield implies(not_(stepping), at == 0)
    in_front = 0 if config.layout.padding_last else config.layout.align - 1
    place = at & (beat - 1) | if_else(all_of(stepping, ends), constant(in_front, width), constant(0, width))
    yield widened(wires["position"], width) == place


def _placed_is_next(config: SPUConfig, wires: Wires) -> Iterator[Boolean]:
    width, align = count_width(config), config.layout.align
    valid, ends = wires["shifted.valid"] == 1, wires["shifted.ends"] == 1
    size, before, octets = wires["size"], wires["before"], wires["octets"]
    start = start_in_record(config, ends, before, size)
    place = start & (config.bus_bytes - 1)
    shifted = zero_extend(wires["shifted.octets"].width - octets.width, octets)
    if not config.layout.padding_last:
        yield implies(all_of(valid, ends), size & (align - 1) == 1 % align)
    yield implies(
        valid,
        all_of(
            before == wires["down"],
            ugt(size, 0),
            ule(size, STEP_BYTES),
            wires["shifted.octets"] == shifted << zero_extend(shifted.width - width, place << 3),
            widened(wires["shifted.fill"], width) == place + size,
            ule(aligned(config, before + size), config.layout.max_size),
            *(implies(ule(size, n), extract(8 * n + 7, 8 * n, octets) == 0) for n in range(STEP_BYTES)),
        ),
    )
    behind = if_else(ends, constant(0, width), before + size)
    yield wires["at"] == if_else(valid, behind, wires["down"])


def _laid_is_left(config: SPUConfig, wires: Wires) -> Iterator[Boolean]:
    width, beat = count_width(config), config.bus_bytes
    down, sent, length, k = (wires[name] for name in ("down", "sent", "length", "k"))
    ending, laid, fill = wires["complete"] == 1, wires["assembled"], widened(wires["fill"], width)
    # What has been laid down of a record has left or is there.
    yield implies(not_(ending), sent + fill == down)
    yield implies(ending, all_of(down == 0, aligned(config, sent + fill) == length, fill != 0))
    yield implies(ending, ule(length, config.layout.max_size))
    yield ule(fill, beat - 1 + STEP_BYTES)
    yield all_of(ule(down, config.layout.max_size), ule(sent, config.layout.max_size), sent & (beat - 1) == 0)
    yield (wires["beat_ready"] == 1) == any_of(ending, uge(fill, beat))
    yield (wires["has_room"] == 1) == all_of(not_(ending), ult(fill, beat))
    below = all_of(uge(fill, beat), ult(fill, 2 * beat))
    yield (wires["has_room_after_beat"] == 1) == if_else(ending, ule(fill, beat), below)
    # Beyond that, and where no step had a byte, it is zero.
    for place in range(laid.width // 8):
        yield implies(ule(fill, place), extract(8 * place + 7, 8 * place, laid) == 0)
    here = all_of(uge(k, sent), ult(k, sent + fill))
    value = if_else(wires["laid_k"] == 1, wires["value"], constant(0, 8))
    yield implies(here, byte_at(laid, k - sent) == value)
    yield implies(all_of(any_of(ending, down != 0), uge(k, sent + fill)), wires["laid_k"] == 0)


def record_comes(config: SPUConfig) -> Invariant:
    """What `Record` is proved to keep: a record at the input is zero where a place is left out."""
    octets = record_layout(config)["octets"].width

    def holds(wires: Wires) -> Boolean:
        record = wires["i__payload"]
        return all_of(
            *(
                implies(
                    extract(octets + piece.place, octets + piece.place, record) == 0,
                    extract(8 * (piece.offset + piece.size) - 1, 8 * piece.offset, record) == 0,
                )
                for piece in chain.from_iterable(steps(config))
                if piece.place is not None
            )
        )

    return holds


def prove_invariant(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is a `watched` packer, fed with a stream of records."""
    comes = record_comes(config)
    return inductive(system, invariant(config), contract=lambda now, then: all_of(stable("i", now, then), comes(now)))


def prove_output(config: SPUConfig, system: Transition) -> Verdict:
    """Each beat holds the next bytes of its record, whole, the last one what is left; a record is taken when its last
    step is. `system` is a `watched` packer.
    """
    width, beat = count_width(config), config.bus_bytes

    def told(now: Wires, then: Wires) -> Boolean:
        fill, sent, length, k = widened(now["fill"], width), now["sent"], now["length"], now["k"]
        valid, last = now["o__valid"] == 1, now["o__payload.last"] == 1
        data = now["o__payload.data"]
        whole = all_of(last, uge(sent + beat, length))
        end = if_else(whole, length, sent + beat)
        value = if_else(now["laid_k"] == 1, now["value"], constant(0, 8))
        here = all_of(uge(k, sent), ult(k, end))
        its = Steps(config, now["i__payload"], width)
        taken = all_of(now["i__valid"] == 1, now["i__ready"] == 1)
        terms = [
            # A beat is full, or it is the last one, and then all of the record has left with it.
            implies(valid, if_else(last, whole, uge(fill, beat))),
            implies(all_of(valid, here), byte_at(zero_extend(width, data), k - sent) == value),
            taken == all_of(loads(now), its.ends(next_step(now))),
            stable("o", now, then),
        ]
        terms += [
            implies(all_of(valid, ule(end, sent + place)), extract(8 * place + 7, 8 * place, data) == 0)
            for place in range(beat)
        ]
        if "o__payload.end" in now:
            shown = widened(now["o__payload.end"], width) * config.layout.align
            terms.append(implies(all_of(valid, last), shown == length & (beat - 1)))
        return all_of(*terms)

    return always(system, told, assuming=invariant(config))


def _work(config: SPUConfig, wires: Wires) -> BitVector:
    """More than the cycles until what has come has left, if nothing stalls it."""
    size = 16
    last = Steps(config, wires["i__payload"], count_width(config)).last
    parts = [
        if_else(all_of(wires["i__valid"] == 1, ule(next_step(wires), step)), constant(128, size), constant(0, size))
        for step in range(last + 1)
    ]
    parts += [
        widened(wires["step.valid"], size) * 64,
        widened(wires["shifted.valid"], size) * 32,
        widened(wires["fill"], size),
    ]
    return reduce(operator.add, parts)


def prove_ends(config: SPUConfig, system: Transition) -> Verdict:
    """Where the output is free and no record comes, there is less to do in each cycle, until all has left: no more than
    a number of cycles. `system` is a `watched` packer.
    """

    def less(now: Wires, then: Wires) -> Boolean:
        waits = all_of(now["i__valid"] == 1, now["i__ready"] == 0)
        none_comes = all_of(implies(then["i__valid"] == 1, waits), stable("i", now, then))
        before, after = _work(config, now), _work(config, then)
        free = all_of(now["o__ready"] == 1, now["rst"] == 0, none_comes)
        idle = all_of(now["step.valid"] == 0, now["shifted.valid"] == 0, now["o__valid"] == 0)
        return implies(free, if_else(before == 0, idle, ult(after, before)))

    return always(system, less, assuming=invariant(config))


def _goals(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    """Name, goal, what is assumed."""
    lengths = [len(records.lay_out(config, _blank(config, packets))) for packets in contents_of_layout(config)]

    def free(wires: Wires) -> Boolean:
        return all_of(wires["o__ready"] == 1, wires["rst"] == 0)

    for name, length in (("shortest", min(lengths)), ("longest", max(lengths))):

        def sent(wires: Wires, length: int = length) -> Boolean:
            return all_of(leaves(wires), wires["o__payload.last"] == 1, wires["length"] == length)

        yield f"the {name} record, {length} bytes", sent, free
    yield (
        "a record begins as another ends",
        lambda wires: all_of(leaves(wires), wires["o__payload.last"] == 1, wires["append"] == 1),
        free,
    )
    parts = steps(config)
    for step, pieces in enumerate(parts):
        yield (
            f"step {step}",
            lambda wires, step=step: all_of(wires["step.valid"] == 1, wires["number"] == step),
            free,
        )
        if all(piece.place is not None for piece in pieces):

            def lacks(wires: Wires, step: int = step) -> Boolean:
                last = all_of(wires["step.ends"] == 1, wires["number"] == step - 1)
                none = all_of(wires["number"] == step, wires["step.size"] == 0)
                return all_of(wires["step.valid"] == 1, last if step == len(parts) - 1 else none)

            yield f"nothing of step {step}", lacks, free


def _blank(config: SPUConfig, packets: Mapping[Packet, int]) -> list[tuple[Packet, bytes]]:
    return [(packet, bytes(config.packet_bytes[packet])) for packet in packets]


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Every goal. `system` is a `watched` packer."""
    return reach_all(system, _goals(config), cycles=20)


@cache
def _system(config: SPUConfig) -> Transition:
    return watched(config, transition(Packer(config)))


def proofs() -> Iterator[Proof]:
    """For each configuration whose records differ in size."""
    for config in PACKED:
        proof = ProvedBlock("serializer", config, _system).proof
        yield Proof(
            "the steps of a record are the bytes of the reference", "serializer", config.name, "each pattern",
            lambda config=config: prove_steps(config),
        )  # fmt: skip
        yield proof("each step is packed once, in order, after the previous one", "induction", prove_invariant)
        yield proof("the beats are the packed bytes, complete and in order", "one cycle", prove_output)
        yield proof("every accepted record is sent", "one cycle", prove_ends)
        yield proof("cover: longest, shortest, back to back, each step full and empty", "bounded search", cover)
