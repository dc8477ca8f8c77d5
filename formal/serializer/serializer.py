"""Serializer: its output is the bytes of its records, in order, none lost or repeated.

Packed records are proved in `packer`.
"""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, Literal

from configurations import FEATURES, distinct
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.beat import beat_layout
from spurtle.gateware.serializer import Serializer
from spurtle.gateware.skid import SkidBuffer
from spurtle.gateware.spu import RecordPath

from ..engine.cover import reach
from ..engine.induction import Invariant, always, independent
from ..engine.proof import Proof, ProvedBlock, Verdict
from ..engine.sby import check
from ..engine.streams import stable, stalled
from ..engine.terms import Boolean, all_of, any_of, if_else, implies, not_
from ..engine.transition import Transition, Wires, transition
from . import packer
from .cutter import CutterSpec
from .steps import PACKED

__all__ = ["proofs", "prove_independent", "prove_path", "prove_queue"]


def prove_queue(system: Transition) -> Verdict:
    """Prove that each item is sent once, in order, and without latency. `system` is a `SkidBuffer`.

    It holds at most one item, which precedes the one at its input.
    """

    def queues(now: Wires, then: Wires) -> Boolean:
        held = now["stalled"] == 1
        received = all_of(now["i__valid"] == 1, now["i__ready"] == 1)
        sent = all_of(now["o__valid"] == 1, now["o__ready"] == 1)
        offered = any_of(held, now["i__valid"] == 1)
        return all_of(
            (now["o__valid"] == 1) == offered,
            implies(held, all_of(not_(received), now["o__payload"] == now["skid"])),
            implies(all_of(not_(held), offered), all_of(received, now["o__payload"] == now["i__payload"])),
            if_else(
                now["rst"] == 1,
                then["stalled"] == 0,
                all_of(
                    (then["stalled"] == 1) == all_of(offered, not_(sent)),
                    implies(then["stalled"] == 1, then["skid"] == now["o__payload"]),
                    stable("o", now, then),
                    # Throughput: one item in each cycle.
                    implies(now["o__ready"] == 1, then["i__ready"] == 1),
                ),
            ),
        )

    return always(system, queues)


def prove_independent(system: Transition) -> Verdict:
    """Prove that there is no combinational path from `o.ready` to `i.ready`. `system` has streams `i` and `o`."""
    return independent(system, ["i__ready"], inputs=["o__ready"])


def prove_path(system: Transition) -> Verdict:
    """Prove that there is no combinational path from `beat.ready` to `sample.ready`. `system` is a `RecordPath`."""
    return independent(system, ["sample__ready"], inputs=["beat__ready"])


def _check(config: SPUConfig, mode: Literal["prove", "cover"], depth: int) -> Verdict:
    name = f"serializer-{config.name}-{mode}"
    return check(
        CutterSpec(config), name, mode=mode, depth=depth, probes={"beat": "dut.beat", "at_last": "dut.at_last"}
    )


@cache
def _skid(config: SPUConfig) -> Transition:
    shape: Any = beat_layout(config)
    return transition(SkidBuffer(shape))


def _covers() -> Iterator[tuple[str, Invariant]]:
    yield "the skid register is full", lambda wires: wires["stalled"] == 1
    yield (
        "a beat is stalled while another is offered",
        lambda wires: all_of(stalled("o", wires), wires["i__valid"] == 1),
    )


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each different circuit of the configurations."""
    configs = (*CONFIGS.values(), *FEATURES.values())
    for config in {beat_layout(config).size: config for config in reversed(configs)}.values():
        proof = ProvedBlock("serializer", config, _skid).proof
        yield proof("each item is sent once, in order", "one cycle", lambda _, system: prove_queue(system))
        for name, goal in _covers():
            yield proof(f"cover: {name}", "bounded search", lambda _, system, goal=goal: reach(system, goal, cycles=4))
    for config in distinct((*configs, *PACKED), "layout.packed layout.align layout.max_size bus_bytes"):
        serializer = ProvedBlock("serializer", config, lambda config: transition(Serializer(config)))
        yield serializer.proof(
            "i.ready does not depend on o.ready", "any two cycles", lambda _, system: prove_independent(system)
        )
    for config in CONFIGS.values():
        path = ProvedBlock("serializer", config, lambda config: transition(RecordPath(config)))
        yield path.proof(
            "sample.ready does not depend on beat.ready", "any two cycles", lambda _, system: prove_path(system)
        )
    cut = (config for config in configs if not config.layout.packed)
    for config in distinct(cut, "layout.max_size bus_bytes"):
        yield Proof(
            "the beats are the bytes of the record, in order, without gaps", "serializer", config.name, "sby prove",
            partial(_check, config, "prove", 2),
        )  # fmt: skip
        yield Proof(
            "cover: back to back, stalled, reset within a record", "serializer", config.name, "sby cover",
            partial(_check, config, "cover", 40), slow=config.max_record_bytes > 8 * config.bus_bytes,
        )  # fmt: skip
    yield from packer.proofs()
