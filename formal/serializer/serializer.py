"""The serializer's output: the bytes of its records, in order, none lost, none twice. Records that differ in size are
`packer`'s.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import Literal

import z3
from amaranth.hdl import Assert, Assume, Cover, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.beat import beat_layout
from spurtle.gateware.cutter import Cutter
from spurtle.gateware.record import record_layout
from spurtle.gateware.serializer import Serializer
from spurtle.gateware.skid import SkidBuffer
from spurtle.gateware.spu import RecordPath

from ..engine.contracts import RecordBeats, StreamContract
from ..engine.features import FEATURES, distinct
from ..engine.induction import Invariant, Wires, always, independent, inductive, reach
from ..engine.proof import Proof, Verdict
from ..engine.sby import check
from ..engine.streams import refused, steady
from ..engine.transition import Transition, transition
from . import packer

__all__ = ["CutterSpec", "proofs", "prove_independent", "prove_path", "prove_queue", "spares"]


# The register stage at the output.


def spares(wires: Wires) -> z3.BoolRef:
    """The second place is filled only behind the first."""
    return z3.Implies(wires["spared"] == 1, wires["o__valid"] == 1)


def prove_queue(system: Transition) -> Verdict:
    """What comes leaves in the order in which it came, each once. `system` is a `SkidBuffer`: it holds two at most, the
    first one at its output.
    """

    def number(condition: z3.BoolRef) -> z3.BitVecRef:
        return z3.If(condition, z3.BitVecVal(1, 4), z3.BitVecVal(0, 4))

    def held(wires: Wires) -> z3.BitVecRef:
        return number(wires["o__valid"] == 1) + number(wires["spared"] == 1)

    def queues(now: Wires, then: Wires) -> z3.BoolRef:
        comes = z3.And(now["i__valid"] == 1, now["i__ready"] == 1)
        leaves = z3.And(now["o__valid"] == 1, now["o__ready"] == 1)
        rest = held(now) - number(leaves)
        first = z3.If(leaves, now["spare"], now["o__payload"])
        return z3.If(
            now["rst"] == 1,
            held(then) == 0,
            z3.And(
                held(then) == rest + number(comes),
                z3.Implies(rest != 0, then["o__payload"] == first),
                z3.Implies(z3.And(rest == 0, comes), then["o__payload"] == now["i__payload"]),
                z3.Implies(rest == 2, then["spare"] == now["spare"]),
                z3.Implies(z3.And(rest == 1, comes), then["spare"] == now["i__payload"]),
                steady("o", now, then),
                # One can pass in each cycle.
                z3.Implies(now["o__ready"] == 1, then["i__ready"] == 1),
            ),
        )

    return always(system, queues, assuming=spares)


def prove_independent(system: Transition) -> Verdict:
    """No path goes from `o.ready` to `i.ready`. `system` is a `SkidBuffer` or a `Serializer`."""
    return independent(system, ["i__ready"], of=["o__ready"])


def prove_path(system: Transition) -> Verdict:
    """The same of a `RecordPath`."""
    return independent(system, ["sample__ready"], of=["beat__ready"])


# Records of one size.


class CutterSpec(wiring.Component):
    """The cutter between free surroundings that keep the stream contract; `rst` is free in every cycle.

    Members
    -------
    i, o : as the cutter's
    beat : In(range(beats))
        The cutter's register of that name, connected when the design is flat. Only the relation that makes the proof
        inductive looks at it.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        self._beats = config.layout.max_size // config.bus_bytes
        super().__init__(
            {
                "i": In(stream.Signature(record_layout(config))),
                "o": Out(stream.Signature(beat_layout(config))),
                "beat": In(range(self._beats)),
            }
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.dut = dut = Cutter(self._config)
        connect(m, flipped(self.i), dut.i)
        connect(m, dut.o, flipped(self.o))
        m.submodules.i_rules = StreamContract(self.i, prop=Assume)
        m.submodules.o_rules = StreamContract(self.o, prop=Assert)
        m.submodules.o_beats = o_beats = RecordBeats(self.o, beats=self._beats, prop=Assert)

        # Never an idle beat while there is a record. Beat k holds the bytes from k * bus_bytes on, and the record is
        # taken with its last.
        m.d.comb += Assert(self.o.valid == self.i.valid)
        with m.If(self.i.valid):
            m.d.comb += Assert(self.o.p.data == self.i.p.octets.word_select(o_beats.index, len(self.o.p.data)))
            m.d.comb += Assert(self.i.ready == (self.o.ready & self.o.p.last))

        m.d.comb += Assert(self.beat == o_beats.index)

        # Two records in twice as many cycles as one has beats; a stall in the middle of a record; a reset there.
        sent = self.o.valid & self.o.ready
        run = Signal(range(2 * self._beats + 1))
        m.d.sync += run.eq(Mux(sent, run + 1, 0))
        stalled = Signal()
        with m.If(self.o.valid & ~self.o.ready & (o_beats.index == self._beats // 2)):
            m.d.sync += stalled.eq(1)
        was_cut = Signal(reset_less=True)
        m.d.sync += was_cut.eq(self.beat == self._beats // 2)
        m.d.comb += Cover((run == 2 * self._beats) & (self.i.p.octets[8:16] == 0xB0))
        m.d.comb += Cover(stalled & sent & self.o.p.last)
        m.d.comb += Cover(was_cut & (self.beat == 0))

        return m


def _check(config: SPUConfig, mode: Literal["prove", "cover"], depth: int) -> Verdict:
    name = f"serializer-{config.name}-{mode}"
    return check(CutterSpec(config), name, mode=mode, depth=depth, inside={"beat": "dut.beat"})


@cache
def _skid(config: SPUConfig) -> Transition:
    return transition(SkidBuffer(beat_layout(config)))


def _covers() -> Iterator[tuple[str, Invariant]]:
    yield "both places are filled", lambda wires: wires["spared"] == 1
    yield "a beat waits, and another comes", lambda wires: z3.And(refused("o", wires), wires["i__valid"] == 1)


def proofs() -> Iterator[Proof]:
    """For each circuit that the configurations make of layout and bus."""
    configs = (*CONFIGS.values(), *FEATURES.values())
    for config in {beat_layout(config).size: config for config in reversed(configs)}.values():

        def proof(name, method, prove, config=config):
            return Proof(name, "serializer", config.name, method, lambda: prove(_skid(config)))

        yield proof("the second place is behind the first", "induction", lambda system: inductive(system, spares))
        yield proof("what comes leaves, once, in order", "one cycle", prove_queue)
        for name, goal in _covers():
            yield proof(f"cover: {name}", "bounded search", lambda system, goal=goal: reach(system, goal, cycles=4))
    for config in distinct((*configs, *packer.PACKED), "layout.packed layout.align layout.max_size bus_bytes"):
        yield Proof(
            "i.ready does not depend on o.ready", "serializer", config.name, "any two cycles",
            lambda config=config: prove_independent(transition(Serializer(config))),
        )  # fmt: skip
    for config in CONFIGS.values():
        yield Proof(
            "sample.ready does not depend on beat.ready", "serializer", config.name, "any two cycles",
            lambda config=config: prove_path(transition(RecordPath(config))),
        )  # fmt: skip
    cut = (config for config in configs if not config.layout.packed)
    for config in distinct(cut, "layout.max_size bus_bytes"):
        yield Proof(
            "beats are the record's bytes, in order, without a gap", "serializer", config.name, "sby prove",
            partial(_check, config, "prove", 2),
        )  # fmt: skip
        yield Proof(
            "cover: back to back, stalled, reset in the middle", "serializer", config.name, "sby cover",
            partial(_check, config, "cover", 40),
        )  # fmt: skip
    yield from packer.proofs()
