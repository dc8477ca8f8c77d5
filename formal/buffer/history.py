"""History registers of the buffer: where the records are, and what memory has answered."""

import operator
from collections.abc import Mapping
from functools import cache, partial, reduce

from spurtle.arch import FM, PMBLIMITR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.buffer import ProfilingBuffer
from spurtle.gateware.record_issue import IssueState
from spurtle.interface.memory import FaultLayout, WriteFaultKind

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
from ..engine.transition import Transition, Wires, transition, with_history

__all__ = [
    "LENGTH_BITS",
    "SentRecords",
    "circuit",
    "disturbed",
    "limit_of",
    "longest_fits",
    "runs",
    "watched",
    "writes_records",
]


_LIMIT = PMBLIMITR_EL1.fields["LIMIT"]

LENGTH_BITS = 13
"""Bits of the length of a record, and of all outstanding records together, which are at most a page."""


def limit_of(wires: Wires) -> BitVector:
    """Return the limit address of PMBLIMITR_EL1."""
    return concat(extract(63, _LIMIT.lsb, wires["pmblimitr"]), constant(0, _LIMIT.lsb))


def runs(wires: Wires) -> Boolean:
    """Return whether the buffer is enabled and not stopped, and keeps its owner."""
    return all_of(wires["pmblimitr.E"] == 1, wires["pmbsr.S"] == 0, wires["new_owner"] == 0)


def writes_records(wires: Wires) -> Boolean:
    """Return whether PMBLIMITR_EL1, PMBSR_EL1 and the owner permit that records are written."""
    return all_of(runs(wires), wires["pmblimitr.FM"] != FM.DISCARD)


def disturbed(wires: Wires) -> Boolean:
    """Return whether the outstanding records are abandoned in this cycle, unless a fault abandons them."""
    return any_of(wires["pmbptr_write"] == 1, wires["pmblimitr_write"] == 1, not_(runs(wires)))


def faults(wires: Wires) -> Boolean:
    """Return whether memory reports a fault."""
    return all_of(wires["write__done"] == 1, wires["write__fault.kind"] != WriteFaultKind.NONE.value)


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


class SentRecords:
    """State of the records at the write port, from the wires of a cycle.

    The newest record is the one that began last. A word is stored in a register before it is transferred to memory.

    Attributes
    ----------
    next : BitVector
        Address of the byte after those that have been stored.
    origin : BitVector
        Address of the first byte of the newest record.
    words, beats : BitVector
        Stored words of the newest record; beats of the record at `i` that have been accepted.
    writing, valid, begins, stores, ends : Boolean
        The newest record is not complete. A word waits for its transfer. A record begins; a word is stored; it is the
        last one of its record.
    lengths, ends_of : list of BitVector
        Bytes of each complete record that memory has not answered, and low bits of the address after it, the oldest
        first. `complete` is their number.
    """

    def __init__(self, config: SPUConfig, wires: Wires):
        self.bus = config.bus_bytes
        self.word_bit = self.bus.bit_length() - 1
        self.align = min(config.layout.align, self.bus)
        self.units = self.bus // self.align
        self._word = wires["issue.aligner.o__payload.strobe"]
        self.next, self.origin = wires["next"], wires["origin"]
        self.words = widened(wires["words"], 64)
        self.beats = widened(wires["beats_in"], 64)
        self.writing = wires["issue.issue_state"] == IssueState.WRITE
        self.valid = wires["write__beat__valid"] == 1
        self.begins = wires["issue.begin"] == 1
        self.stores = wires["issue.send"] == 1
        self.ends = all_of(self.stores, wires["issue.aligner.o__payload.last"] == 1)
        self.complete = wires["complete"]
        self.lengths = [wires[f"length_{index}"] for index in range(config.outstanding)]
        self.ends_of = [wires[f"end_{index}"] for index in range(config.outstanding)]

    def strobed(self, byte: int) -> Boolean:
        """Return whether this byte of the word at the output of the aligner is written."""
        return extract(byte, byte, self._word) == 1

    @property
    def bytes(self) -> BitVector:
        """Number of bytes of that word that are written."""
        sizes = (
            if_else(self.strobed(byte), constant(self.align, 64), constant(0, 64))
            for byte in range(0, self.bus, self.align)
        )
        return reduce(operator.add, sizes)

    @property
    def stored(self) -> BitVector:
        """Bytes of the newest record that have been stored, if it is not complete; otherwise zero."""
        return if_else(self.writing, self.next - self.origin, constant(0, 64))


def _following(config: SPUConfig, bits: int, wires: Wires) -> Mapping[str, BitVector]:
    """Return the next values of the history registers. A number of words has `bits` bits."""
    records = SentRecords(config, wires)
    reset, done = wires["rst"] == 1, wires["write__done"] == 1
    received = all_of(wires["i__valid"] == 1, wires["i__ready"] == 1)
    zero = constant(0, bits)
    none = all_of(records.complete == 0, not_(records.writing))
    beats = if_else(wires["i__payload.last"] == 1, zero, wires["beats_in"] + 1)
    after = if_else(records.stores, records.next + records.bytes, records.next)
    length = extract(LENGTH_BITS - 1, 0, after - if_else(records.begins, records.next, records.origin))
    ends, popped = as_bits(records.ends, 4), as_bits(done, 4)
    kept = all_of(any_of(wires["undisturbed"] == 1, all_of(none, records.begins)), not_(disturbed(wires)))
    words = if_else(records.begins, constant(1, bits), wires["words"] + 1)
    following = {
        "next": if_else(reset, constant(0, 64), if_else(wires["issue.load"] == 1, wires["pmbptr"], after)),
        "origin": if_else(records.begins, records.next, records.origin),
        "limit": if_else(records.begins, limit_of(wires), wires["limit"]),
        "words": if_else(records.stores, words, wires["words"]),
        "beats_in": if_else(reset, zero, if_else(received, beats, wires["beats_in"])),
        "complete": if_else(reset, constant(0, 4), records.complete + ends - popped),
        "undisturbed": as_bits(all_of(kept, not_(faults(wires)))),
        "unanswered": if_else(
            wires["issue.load"] == 1,
            constant(0, LENGTH_BITS),
            wires["unanswered"]
            + if_else(records.stores, extract(LENGTH_BITS - 1, 0, records.bytes), constant(0, LENGTH_BITS))
            - if_else(wires["answered"] == 1, wires["answered_length"], constant(0, LENGTH_BITS)),
        ),
        "answered_length": records.lengths[0],
        "answered_undisturbed": as_bits(all_of(done, wires["undisturbed"] == 1, not_(disturbed(wires)), not_(reset))),
        **{f"fault_{name}": wires[f"write__fault.{name}"] for name, _ in FaultLayout(config)},
    }
    queues = {"length": (records.lengths, length), "end": (records.ends_of, extract(LENGTH_BITS - 1, 0, after))}
    for name, (queue, newest) in queues.items():
        for index, own in enumerate(queue):
            younger = queue[index + 1] if index + 1 < len(queue) else own
            pushed = all_of(records.ends, records.complete - popped == index)
            following[f"{name}_{index}"] = if_else(pushed, newest, if_else(done, younger, own))
    return following


@cache
def circuit(config: SPUConfig) -> Transition:
    """Return the transition relation of a `ProfilingBuffer`. It is computed once for each configuration."""
    return transition(ProfilingBuffer(config))


def watched(config: SPUConfig, system: Transition) -> Transition:
    """Return `system`, a `ProfilingBuffer` of `config`, with history registers.

    next, origin, words, beats_in, complete, length_*, end_* : see `SentRecords`
    limit : limit address when the newest record began
    unanswered : bytes that have been stored from PMBPTR_EL1 on, unless the records are abandoned
    undisturbed : no outstanding record has been abandoned
    answered_length, answered_undisturbed, fault_* : bytes of the record that memory answered in the previous cycle;
        whether it had not been abandoned; members of its fault
    """
    bits = (2 * config.max_record_bytes // config.bus_bytes).bit_length()
    layout = FaultLayout(config)

    queues = [f"{name}_{index}" for name in ("length", "end") for index in range(config.outstanding)]
    widths = {
        **dict.fromkeys(("next", "origin", "limit"), 64),
        **dict.fromkeys(("words", "beats_in"), bits),
        "complete": 4,
        **dict.fromkeys(("undisturbed", "answered_undisturbed"), 1),
        **dict.fromkeys(("unanswered", "answered_length", *queues), LENGTH_BITS),
        **{f"fault_{name}": field.width for name, field in layout},
    }
    initial = {"next": 0, "beats_in": 0, "complete": 0, "answered_undisturbed": 0}
    return with_history(system, widths, partial(_following, config, bits), initial)
