"""The Profiling Buffer that is filled: where records go, and what becomes of each of them; its pointer and its status
are the reference's.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache

import z3

from spurtle.arch import FM, PMBLIMITR_EL1, PMBSR_EL1
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.aligner import AlignerState
from spurtle.gateware.buffer import BufferState, ProfilingBuffer
from spurtle.interface.memory import WriteFaultKind
from spurtle_sim.model.buffer import Buffer as ReferenceBuffer
from spurtle_sim.model.buffer import Fault, FaultKind
from spurtle_sim.model.registers import Registers

from ..engine.features import FEATURES, distinct
from ..engine.induction import Invariant, Reference, Wires, always, follows, inductive, reach_all
from ..engine.proof import Proof, Verdict
from ..engine.transition import Transition, remembering, transition

__all__ = [
    "cover",
    "limit_stands",
    "proofs",
    "prove_beats",
    "prove_drains",
    "prove_fate",
    "prove_full",
    "prove_pointer",
    "prove_relation",
    "prove_silence",
    "prove_status",
    "relation",
    "watched",
]

_LIMIT = PMBLIMITR_EL1.fields["LIMIT"]


def limit_stands(now: Wires, then: Wires) -> z3.BoolRef:
    """PMBLIMITR_EL1 is as it was, unless software wrote it or a reset came between."""
    return z3.Or(now["pmblimitr_write"] == 1, now["rst"] == 1, then["pmblimitr"] == now["pmblimitr"])


def _bit(condition: z3.BoolRef) -> z3.BitVecRef:
    return z3.If(condition, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


def _wide(wire: z3.BitVecRef, bits: int = 64) -> z3.BitVecRef:
    return z3.ZeroExt(bits - wire.size(), wire) if wire.size() < bits else wire


def _limit(wires: Wires) -> z3.BitVecRef:
    return z3.Concat(z3.Extract(63, _LIMIT.lsb, wires["pmblimitr"]), z3.BitVecVal(0, _LIMIT.lsb))


def _in(wires: Wires, *states: int) -> z3.BoolRef:
    return z3.Or(*(wires["buffer_state"] == state for state in states))


def _runs(wires: Wires) -> z3.BoolRef:
    return z3.And(wires["pmblimitr.E"] == 1, wires["pmbsr.S"] == 0, wires["new_owner"] == 0)


def _fills(wires: Wires) -> z3.BoolRef:
    """Records are written, as far as PMBLIMITR_EL1, PMBSR_EL1 and the owner say."""
    return z3.And(_runs(wires), wires["pmblimitr.FM"] != FM.DISCARD)


def _room(config: SPUConfig, pointer: z3.BitVecRef, limit: z3.BitVecRef) -> z3.BoolRef:
    """`model.buffer` says so of a pointer that is as software must set it: see `prove_full`."""
    size = config.max_record_bytes
    return z3.And(
        pointer & (config.layout.align - 1) == 0,
        z3.LShR(pointer, 56) == z3.LShR(limit, 56),
        z3.ULE(_wide(pointer, 65) + size, _wide(limit, 65)),
    )


# What is watched.


class _Record:
    """What of a record is written, from the wires of a cycle."""

    def __init__(self, config: SPUConfig, wires: Wires):
        self._wires = wires
        self.bus = config.bus_bytes
        self.word = self.bus.bit_length() - 1
        self.align = min(config.layout.align, self.bus)
        self.units = self.bus // self.align
        self.origin, self.length = wires["origin"], wires["length"]
        self.within = _wide(wires["within"]) * self.align if self.units > 1 else z3.BitVecVal(0, 64)
        self.words = _wide(wires["words_out"])
        self.beats = _wide(wires["beats_in"])
        self.first = self.origin & -self.bus
        """Address of the word in which it begins."""

    @property
    def offered(self) -> z3.BoolRef:
        return z3.And(self._wires["buffer_state"] == BufferState.WRITE, self._wires["write__beat__valid"] == 1)

    @property
    def leaves(self) -> z3.BoolRef:
        return z3.And(self.offered, self._wires["write__beat__ready"] == 1)

    @property
    def here(self) -> z3.BitVecRef:
        """Where the buffer is: a word that is written next, and in it the byte after what has been written."""
        address = self._wires["write__beat__payload.address"]
        return address + self.within

    def strobed(self, byte: int) -> z3.BoolRef:
        return z3.Extract(byte, byte, self._wires["write__beat__payload.strobe"]) == 1

    @property
    def bytes(self) -> z3.BitVecRef:
        """Of the word that is offered: how many bytes are written."""
        return sum(
            (z3.If(self.strobed(byte), z3.BitVecVal(self.align, 64), z3.BitVecVal(0, 64)))
            for byte in range(0, self.bus, self.align)
        )


def watched(config: SPUConfig, system: Transition) -> Transition:
    """A `ProfilingBuffer` of `config`, and beside it what has become of a record.

    origin, limit : PMBPTR_EL1 and the limit when the record was begun
    words_out, length : words and bytes of it that memory has taken
    beats_in : beats of it that were taken at `i`
    undisturbed : since it was begun the buffer has not stopped, nor were pointer and limit written
    """
    number = (2 * config.max_record_bytes // config.bus_bytes).bit_length()

    def follow(wires: Wires) -> Mapping[str, z3.BitVecRef]:
        record = _Record(config, wires)
        begins = wires["begun"] == 1
        comes = z3.And(wires["i__valid"] == 1, wires["i__ready"] == 1)
        zero = z3.BitVecVal(0, number)
        beats = z3.If(wires["i__payload.last"] == 1, zero, wires["beats_in"] + 1)
        written = z3.Or(wires["pmbptr_write"] == 1, wires["pmblimitr_write"] == 1)
        return {
            "origin": z3.If(begins, wires["pmbptr"], wires["origin"]),
            "limit": z3.If(begins, _limit(wires), wires["limit"]),
            "words_out": z3.If(begins, zero, z3.If(record.leaves, wires["words_out"] + 1, wires["words_out"])),
            "length": z3.If(
                begins, z3.BitVecVal(0, 64), z3.If(record.leaves, record.length + record.bytes, record.length)
            ),
            "beats_in": z3.If(wires["rst"] == 1, zero, z3.If(comes, beats, wires["beats_in"])),
            "undisturbed": z3.If(
                begins, _bit(z3.Not(written)), _bit(z3.And(wires["undisturbed"] == 1, _runs(wires), z3.Not(written)))
            ),
        }

    widths = {"origin": 64, "limit": 64, "length": 64, "words_out": number, "beats_in": number, "undisturbed": 1}
    return remembering(system, widths, follow, {"beats_in": 0})


# The relation.


def _fitting(config: SPUConfig, wires: Wires) -> z3.BoolRef:
    """What is worked out about room is true as soon as it is known, and so are its steps."""
    pointer, limit = wires["pmbptr"], _limit(wires)
    page, pages = z3.LShR(pointer, 12), z3.LShR(limit, 12)
    half = 26
    low = (1 << half) - 1

    def truth(name: str, condition: z3.BoolRef) -> z3.BoolRef:
        return wires[name] == _bit(condition)

    first = z3.And(
        truth("low_below", z3.ULT(page & low, pages & low)),
        truth("high_below", z3.ULT(z3.LShR(page, half), z3.LShR(pages, half))),
        truth("high_same", z3.LShR(page, half) == z3.LShR(pages, half)),
        truth(
            "in_place",
            z3.And(z3.LShR(pointer, 56) == z3.LShR(limit, 56), pointer & (config.layout.align - 1) == 0),
        ),
    )
    if config.layout.align == config.max_record_bytes:
        return z3.Implies(wires["fits_known"] == 1, first)
    last = (pages - 1) & ((1 << 52) - 1)
    first = z3.And(
        first,
        _wide(wires["last_low"]) == (pages & low) - 1 & ((1 << half + 1) - 1),
        truth("crosses", z3.UGT(pointer & 0xFFF, 4096 - config.max_record_bytes)),
    )
    second = z3.And(_wide(wires["last_high"]) == z3.LShR(last, half), truth("on_last_low", page & low == last & low))
    third = truth("on_last_high", z3.LShR(page, half) == z3.LShR(last, half))
    ages = [wires["fits_known_1"] == 1, wires["fits_known_2"] == 1, wires["fits_known"] == 1]
    return z3.And(
        z3.Implies(ages[2], ages[1]), z3.Implies(ages[1], ages[0]),
        z3.Implies(ages[0], first), z3.Implies(ages[1], second), z3.Implies(ages[2], third),
    )  # fmt: skip


def _there_are(config: SPUConfig, kind: z3.BitVecRef) -> z3.BoolRef:
    """Faults of this kind."""
    kinds = [each for each in WriteFaultKind if config.rme or each != WriteFaultKind.GRANULE_PROTECTION]
    return z3.Or(*(kind == each.value for each in kinds))


def _fault_address(config: SPUConfig, wires: Wires) -> z3.BitVecRef:
    """The first byte that was not written."""
    record = _Record(config, wires)
    word = _wide(wires["fault.word"])
    return z3.If(word == 0, record.origin, record.first + word * record.bus)


def relation(config: SPUConfig) -> Invariant:
    """Where a record stands that is being written."""

    def holds(wires: Wires) -> z3.BoolRef:
        record = _Record(config, wires)
        size = config.max_record_bytes
        low_bits = wires["next_low"].size() - 1
        base = z3.LShR(record.origin, size.bit_length() - 1)
        after = base + 1
        next_low = _wide(wires["next_low"]) == (base & ((1 << low_bits) - 1)) + 1
        next_high = _wide(wires["next_high"]) == z3.LShR(after, low_bits) & ((1 << wires["next_high"].size()) - 1)
        begun = _in(wires, BufferState.WRITE, BufferState.RESPONSE, BufferState.FAULT)
        words = (z3.LShR(record.origin, record.word) & (size // record.bus - 1)) + record.words
        terms = [
            z3.ULE(wires["buffer_state"], BufferState.FAULT),
            _fitting(config, wires),
            z3.Implies(
                begun,
                z3.And(
                    _room(config, record.origin, wires["limit"]),
                    wires["keep"] == wires["undisturbed"],
                    z3.Implies(wires["undisturbed"] == 1, wires["pmbptr"] == record.origin),
                    _wide(wires["base"]) == base,
                    z3.Implies(record.words == 0, wires["buffer_state"] == BufferState.WRITE),
                    z3.ULE(record.words, size // record.bus + 1),
                    next_low,
                    z3.Implies(record.words != 0, next_high),
                ),
            ),
            z3.Implies(
                wires["buffer_state"] == BufferState.WRITE,
                z3.And(_wide(wires["words"]) == words, record.within == record.origin & record.bus - 1),
            ),
            z3.Implies(
                wires["buffer_state"] == BufferState.RESPONSE,
                z3.And(record.here == record.origin + record.length, z3.ULE(record.length, size)),
            ),
            z3.Implies(
                wires["buffer_state"] == BufferState.FAULT,
                z3.And(
                    _there_are(config, wires["fault.kind"]),
                    wires["fault.kind"] != WriteFaultKind.NONE.value,
                    z3.ULT(_wide(wires["fault.word"]), record.words),
                    z3.Implies(wires["undisturbed"] == 1, record.here == _fault_address(config, wires)),
                ),
            ),
            z3.Implies(
                z3.And(wires["buffer_state"] == BufferState.IDLE, wires["fits_known"] == 1),
                _wide(wires["base"]) == z3.LShR(wires["pmbptr"], size.bit_length() - 1),
            ),
            z3.ULT(record.beats, size // record.bus),
            wires["pmbsr"] & ~config.writable(PMBSR_EL1) == 0,
        ]
        if record.units == 1:
            terms += [
                z3.Implies(wires["buffer_state"] == BufferState.WRITE, record.length == record.words * record.bus),
                z3.Implies(wires["buffer_state"] == BufferState.WRITE, record.words == record.beats),
                z3.Implies(_in(wires, BufferState.IDLE, BufferState.RESPONSE, BufferState.FAULT), record.beats == 0),
            ]
        else:
            rest = wires["aligner.aligner_state"] == AlignerState.REST
            begins = wires["aligner.begun"] == 1
            ended = _wide(wires["aligner.ended"]) * record.align
            terms += [
                z3.Implies(rest, begins),
                z3.Implies(
                    _in(wires, BufferState.IDLE, BufferState.RESPONSE, BufferState.FAULT),
                    z3.And(z3.Not(begins), z3.Not(rest), record.beats == 0),
                ),
                z3.Implies(rest, record.beats == 0),
                z3.Implies(
                    wires["buffer_state"] == BufferState.WRITE,
                    z3.And(
                        begins == (record.words != 0),
                        record.length == z3.If(begins, record.words * record.bus - record.within, z3.BitVecVal(0, 64)),
                        z3.Implies(z3.Not(rest), record.words == record.beats),
                        # What the last beat has left over.
                        z3.Implies(
                            rest,
                            z3.And(
                                ended != 0,
                                z3.ULE(ended, record.within),
                                z3.ULE(record.words, size // record.bus),
                            ),
                        ),
                    ),
                ),
            ]
        return z3.And(*terms)

    return holds


def _promised(config: SPUConfig, now: Wires, then: Wires) -> z3.BoolRef:
    """What those who drive the buffer keep: PMBLIMITR_EL1 stands, no record is longer than it may be (proved of the
    serializer), and a fault is of a word that was written, of a kind that there is.
    """
    record = _Record(config, now)
    last = config.max_record_bytes // config.bus_bytes - 1
    return z3.And(
        limit_stands(now, then),
        z3.Implies(z3.And(now["i__valid"] == 1, record.beats == last), now["i__payload.last"] == 1),
        z3.Implies(
            z3.And(now["buffer_state"] == BufferState.RESPONSE, now["write__done"] == 1),
            z3.And(_there_are(config, now["write__fault.kind"]), z3.ULT(_wide(now["write__fault.word"]), record.words)),
        ),
    )


def prove_relation(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is a `watched` buffer."""
    return inductive(system, relation(config), contract=lambda now, then: _promised(config, now, then))


# What is proved of each record.


_WORD = ("data", "strobe", "last")


def _aligned(record: _Record, wires: Wires) -> Iterator[z3.BoolRef]:
    """What the aligner is told, or where every beat is a word, what it says."""
    if record.units > 1:
        yield wires["aligner.offset"] == wires["within"]
        yield wires["aligner.i__payload"] == wires["i__payload"]
        return
    told = {"data": wires["i__payload.data"], "last": wires["i__payload.last"], "strobe": z3.BitVecVal(-1, record.bus)}
    for name, value in told.items():
        yield wires[f"aligner.o__payload.{name}"] == value


def prove_beats(config: SPUConfig, system: Transition) -> Verdict:
    """Nothing is written outside of the buffer as it was when the record was begun. `system` is a `watched` buffer."""

    def inside(wires: Wires) -> z3.BoolRef:
        record = _Record(config, wires)
        address, limit = wires["write__beat__payload.address"], wires["limit"]
        written = (
            z3.Implies(
                record.strobed(byte),
                z3.And(z3.UGE(address | byte, record.origin), z3.ULT(address | byte, limit)),
            )
            for byte in range(record.bus)
        )
        return z3.Implies(
            wires["write__beat__valid"] == 1,
            z3.And(
                wires["buffer_state"] == BufferState.WRITE,
                # Word by word; a sum that wraps would not be above the first.
                address == record.first + record.words * record.bus,
                z3.UGE(address, record.first),
                address & record.bus - 1 == 0,
                # What is written is what the aligner makes of what comes.
                *(wires[f"write__beat__payload.{name}"] == wires[f"aligner.o__payload.{name}"] for name in _WORD),
                *_aligned(record, wires),
                *written,
            ),
        )

    def promised(wires: Wires) -> z3.BoolRef:
        return z3.And(relation(config)(wires), _promised(config, wires, wires))

    return always(system, inside, cycles=1, assuming=promised)


def prove_silence(config: SPUConfig, system: Transition) -> Verdict:
    """While the buffer is stopped, disabled or in discard mode, or where the longest record does not fit, no record is
    begun; and it is stopped until software says otherwise.
    """

    def silent(now: Wires, then: Wires) -> z3.BoolRef:
        begins = z3.And(now["buffer_state"] != BufferState.WRITE, then["buffer_state"] == BufferState.WRITE)
        return z3.And(
            now["running"] == _bit(_runs(now)),
            now["writing"] == _bit(_fills(now)),
            z3.Implies(
                begins,
                z3.And(
                    now["begun"] == 1,
                    _fills(now),
                    now["unwanted"] == 0,
                    _room(config, now["pmbptr"], _limit(now)),
                    then["origin"] == now["pmbptr"],
                    then["limit"] == _limit(now),
                    then["words_out"] == 0,
                ),
            ),
            z3.Implies(
                z3.And(now["pmbsr.S"] == 1, now["pmbsr_write"] == 0, now["rst"] == 0),
                z3.And(then["pmbsr.S"] == 1, z3.Not(begins)),
            ),
        )

    return always(system, silent, assuming=relation(config))


def prove_fate(config: SPUConfig, system: Transition) -> Verdict:
    """What is taken at `i` is of a record that is being written, or dropped because the buffer is not filled or does
    not want it. A record that has been written moves the pointer over its bytes, unless it met a fault, or the buffer
    stopped, or software wrote pointer or limit in the meantime.
    """

    def told(now: Wires, then: Wires) -> z3.BoolRef:
        state, after = now["buffer_state"], then["buffer_state"]
        record = _Record(config, now)
        last = now["write__beat__payload.last"] == 1
        taken = z3.And(now["i__valid"] == 1, now["i__ready"] == 1)
        done = z3.And(state == BufferState.RESPONSE, now["write__done"] == 1)
        fault = now["write__fault.kind"] != WriteFaultKind.NONE.value
        ends = _bit(z3.And(record.leaves, last))
        return z3.Implies(
            now["rst"] == 0,
            z3.And(
                z3.Implies(taken, z3.Or(state == BufferState.WRITE, state == BufferState.DROP)),
                z3.Implies(
                    z3.And(state != BufferState.DROP, after == BufferState.DROP),
                    z3.And(now["begun"] == 1, z3.Or(z3.Not(_fills(now)), now["unwanted"] == 1)),
                ),
                (now["begun"] == 1) == z3.And(state == BufferState.IDLE, after != BufferState.IDLE),
                z3.Implies(
                    state == BufferState.WRITE, after == z3.If(ends == 1, z3.BitVecVal(BufferState.RESPONSE, 3), state)
                ),
                z3.Implies(z3.And(state == BufferState.WRITE, taken), record.leaves),
                z3.Implies(z3.And(state == BufferState.RESPONSE, z3.Not(done)), after == BufferState.RESPONSE),
                z3.Implies(
                    done, after == z3.If(fault, z3.BitVecVal(BufferState.FAULT, 3), z3.BitVecVal(BufferState.IDLE, 3))
                ),
                z3.Implies(state == BufferState.FAULT, after == BufferState.IDLE),
                z3.Implies(
                    now["pmbptr_write"] == 0,
                    z3.If(
                        z3.And(done, z3.Not(fault), now["undisturbed"] == 1, _runs(now)),
                        then["pmbptr"] == record.origin + record.length,
                        z3.Implies(state != BufferState.FAULT, then["pmbptr"] == now["pmbptr"]),
                    ),
                ),
            ),
        )

    return always(system, told, assuming=relation(config))


def _left(config: SPUConfig, wires: Wires) -> z3.BitVecRef:
    """Steps until the buffer is not busy, at most."""

    def number(value: int) -> z3.BitVecRef:
        return z3.BitVecVal(value, 16)

    beats = number(config.max_record_bytes // config.bus_bytes) - _wide(wires["beats_in"], 16)
    # What the last beat has left over is a word of its own.
    words = beats
    if config.layout.align < config.bus_bytes:
        words = z3.If(wires["aligner.aligner_state"] == AlignerState.REST, number(0), beats + 1)
    unknown = number(4)
    if config.layout.align < config.max_record_bytes:
        unknown = z3.If(wires["fits_known_2"] == 1, number(2), z3.If(wires["fits_known_1"] == 1, number(3), unknown))
    idle = z3.If(wires["fits_known"] == 1, z3.ZeroExt(15, wires["full"]), unknown)
    state = wires["buffer_state"]
    return z3.If(
        state == BufferState.IDLE,
        idle,
        z3.If(
            state == BufferState.FAULT, number(5), z3.If(state == BufferState.RESPONSE, number(6), number(7) + words)
        ),
    )


def prove_drains(config: SPUConfig, system: Transition) -> Verdict:
    """As long as software writes nothing and no other record comes, `busy` falls: each cycle comes nearer to that, but
    those in which a record's next beat, memory or its answer is waited for.
    """

    def nearer(now: Wires, then: Wires) -> z3.BoolRef:
        state = now["buffer_state"]
        resting = (
            now["aligner.aligner_state"] == AlignerState.REST
            if config.layout.align < config.bus_bytes
            else z3.BoolVal(False)
        )
        offered = z3.Or(now["i__valid"] == 1, resting)
        goes_on = z3.If(
            state == BufferState.WRITE,
            z3.And(offered, now["write__beat__ready"] == 1),
            z3.If(
                state == BufferState.DROP, offered, z3.Implies(state == BufferState.RESPONSE, now["write__done"] == 1)
            ),
        )
        quiet = z3.And(
            *(now[name] == 0 for name in ("rst", "pmbptr_write", "pmblimitr_write", "pmbsr_write", "new_owner")),
            z3.Implies(state == BufferState.IDLE, now["i__valid"] == 0),
        )
        left, after = _left(config, now), _left(config, then)
        # Of the next cycle: `full` is answered in it.
        steady = z3.And(then["pmblimitr"] == now["pmblimitr"], then["new_owner"] == 0)
        return z3.And(
            z3.ULE(left, config.max_record_bytes // config.bus_bytes + 8),
            z3.Implies(
                z3.And(quiet, steady, now["busy"] == 1),
                z3.And(z3.ULE(after, left), z3.Implies(goes_on, z3.ULT(after, left))),
            ),
            z3.Implies(z3.And(left == 0, now["new_owner"] == 0), now["busy"] == 0),
            # It is not said to be idle while a record is on its way, or before the status says that it is full.
            z3.Implies(
                now["busy"] == 0,
                z3.And(state == BufferState.IDLE, z3.Implies(_fills(now), _room(config, now["pmbptr"], _limit(now)))),
            ),
        )

    def promised(wires: Wires) -> z3.BoolRef:
        return z3.And(relation(config)(wires), _promised(config, wires, wires))

    return always(system, nearer, assuming=promised)


# Pointer, status and full are the reference's.


def _registers(wires: Mapping[str, int]) -> Registers:
    return Registers(PMBPTR_EL1=wires["pmbptr"], PMBLIMITR_EL1=wires["pmblimitr"], PMBSR_EL1=wires["pmbsr"])


def prove_full(config: SPUConfig, system: Transition) -> Verdict:
    """It is found full exactly if it is, when no record is being written and what is worked out is known."""

    def found(wires: Mapping[str, int]) -> Mapping[str, int]:
        if wires["buffer_state"] != BufferState.IDLE or wires["fits_known"] == 0 or wires["new_owner"] == 1:
            return {"full": 0}
        registers = _registers(wires)
        before = PMBSR_EL1.unpack(registers.PMBSR_EL1).S
        ReferenceBuffer(config, registers).stop_if_full()
        return {"full": PMBSR_EL1.unpack(registers.PMBSR_EL1).S - before}

    arguments = ["buffer_state", "fits_known", "new_owner", "pmbptr", "pmblimitr", "pmbsr"]
    return follows(system, found, arguments=arguments, assuming=relation(config), latency=0)


def _fault(config: SPUConfig, wires: Mapping[str, int]) -> Fault:
    """The fault of the record that was begun at PMBPTR_EL1."""
    word, pointer = wires["fault.word"], wires["pmbptr"]
    kind = next(kind for kind in FaultKind if wires["fault.kind"] == WriteFaultKind[kind.name].value)
    flags = 0
    for name in config.fault_flags:
        flags = flags | wires[f"fault.{name}"] << PMBSR_EL1.fields[name].lsb
    return Fault(
        kind=kind,
        written=0 if word == 0 else word * config.bus_bytes - (pointer & config.bus_bytes - 1),
        fsc=wires["fault.fsc"],
        flags=flags,
        external=wires["fault.external"] if config.external_aborts else False,
    )


def _ends(config: SPUConfig, wires: Mapping[str, int], registers: Registers, fault: Fault | None) -> None:
    buffer = ReferenceBuffer(config, registers)
    if wires["undisturbed"] == 1 and wires["running"] == 1:
        buffer.end(wires["length"], fault)
    else:
        buffer.discard(fault)


def prove_pointer(config: SPUConfig, system: Transition) -> Verdict:
    """PMBPTR_EL1, in each cycle: software's write comes last."""

    def moved(wires: Mapping[str, int]) -> Mapping[str, int]:
        if wires["rst"] == 1:
            return {"pmbptr": 0}
        if wires["pmbptr_write"] == 1:
            return {"pmbptr": wires["wdata"]}
        registers = _registers(wires)
        if (
            wires["buffer_state"] == BufferState.RESPONSE
            and wires["write__done"] == 1
            and wires["write__fault.kind"] == 0
        ):
            _ends(config, wires, registers, None)
        elif wires["buffer_state"] == BufferState.FAULT:
            _ends(config, wires, registers, _fault(config, wires))
        return {"pmbptr": registers.PMBPTR_EL1}

    return _cycle(config, system, moved, "pmbptr_write", "write__done", "write__fault.kind")


def prove_status(config: SPUConfig, system: Transition) -> Verdict:
    """PMBSR_EL1, in each cycle: first software's write, then a collision, then a full buffer or a fault, then an
    asynchronous External abort.
    """

    def changed(wires: Mapping[str, int]) -> Mapping[str, int]:
        if wires["rst"] == 1:
            return {"pmbsr": 0}
        registers = _registers(wires)
        buffer = ReferenceBuffer(config, registers)
        if wires["pmbsr_write"] == 1:
            registers.write(config, PMBSR_EL1, wires["wdata"])
        if wires["collision"] == 1:
            buffer.collide()
        if wires["full"] == 1:
            buffer.stop_if_full()
        if wires["buffer_state"] == BufferState.FAULT:
            _ends(config, wires, registers, _fault(config, wires))
        if config.external_aborts and wires["write__abort"] == 1:
            buffer.abort()
        return {"pmbsr": registers.PMBSR_EL1}

    abort = ["write__abort"] if config.external_aborts else []
    return _cycle(config, system, changed, "pmbsr_write", "collision", "full", *abort)


def _cycle(config: SPUConfig, system: Transition, reference: Reference, *inputs: str) -> Verdict:
    external = ["external"] if config.external_aborts else []
    arguments = [
        *("rst", "wdata", *inputs),
        *("buffer_state", "pmbptr", "pmblimitr", "pmbsr", "running", "undisturbed", "length"),
        *(f"fault.{name}" for name in ("kind", "word", "fsc", *external, *config.fault_flags)),
    ]
    return follows(system, reference, arguments=arguments, assuming=relation(config))


# What does happen.


def _goals(config: SPUConfig) -> Iterator[tuple[str, Invariant, Invariant]]:
    def promised(wires: Wires) -> z3.BoolRef:
        return z3.And(wires["rst"] == 0, _promised(config, wires, wires))

    def goal(name: str, reached: Invariant) -> tuple[str, Invariant, Invariant]:
        return name, reached, promised

    yield goal("a fault within a record", lambda wires: z3.And(wires["faulted"] == 1, wires["fault.word"] == 1))
    yield goal(
        "a fault of which nobody hears",
        lambda wires: z3.And(wires["buffer_state"] == BufferState.FAULT, wires["faulted"] == 0),
    )
    yield goal("a record that fills the buffer", lambda wires: z3.And(wires["full"] == 1, wires["length"] != 0))
    yield goal(
        "a record that is dropped",
        lambda wires: z3.And(wires["buffer_state"] == BufferState.DROP, wires["aligner.o__ready"] == 1),
    )
    if config.layout.packed:
        yield goal(
            "a record that crosses a multiple of the longest",
            lambda wires: z3.And(
                wires["write__beat__valid"] == 1,
                z3.ULT(wires["write__beat__payload.address"] & config.max_record_bytes - 1, config.bus_bytes),
                wires["words_out"] != 0,
            ),
        )
    if config.external_aborts:
        yield goal(
            "an abort as the buffer is full", lambda wires: z3.And(wires["full"] == 1, wires["write__abort"] == 1)
        )


def cover(config: SPUConfig, system: Transition) -> Verdict:
    """Every goal. `system` is a `watched` buffer."""
    return reach_all(system, _goals(config), cycles=14)


@cache
def _system(config: SPUConfig) -> Transition:
    return watched(config, transition(ProfilingBuffer(config)))


PROOFS: Mapping[str, tuple[str, Callable[[SPUConfig, Transition], Verdict]]] = {
    "where a record stands that is being written": ("induction", prove_relation),
    "nothing is written outside of the buffer": ("any cycle", prove_beats),
    "stopped, disabled or without room: no record is begun": ("one cycle", prove_silence),
    "a record is written or dropped, and moves the pointer unless something came between": ("one cycle", prove_fate),
    "busy falls, and not before the status is known": ("one cycle", prove_drains),
    "full exactly if the reference's is": ("reference", prove_full),
    "PMBPTR_EL1 is the reference's": ("reference", prove_pointer),
}
"""Of each configuration, by what it says."""

CHANGING = "layout.align layout.max_size bus_bytes discard_mode external_aborts fault_flags rme"
"""What of a configuration changes the buffer."""


def proofs() -> Iterator[Proof]:
    """For each configuration that has a buffer that is not another's."""
    configs = (*CONFIGS.values(), *FEATURES.values())

    def proof(config: SPUConfig, name: str, method: str, prove: Callable[[SPUConfig, Transition], Verdict]) -> Proof:
        return Proof(name, "buffer", config.name, method, lambda: prove(config, _system(config)))

    for config in distinct(configs, CHANGING):
        for name, (method, prove) in PROOFS.items():
            yield proof(config, name, method, prove)
        yield proof(config, "cover: faults, full, dropped, an abort, across a boundary", "bounded search", cover)
    # What of the layout it depends on, the word of a fault, is the relation's.
    for config in distinct(configs, "external_aborts fault_flags rme"):
        yield proof(config, "PMBSR_EL1 is the reference's", "reference", prove_status)
