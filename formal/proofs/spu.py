"""The whole SPU: it comes out of reset the same, stands still while profiling is disabled, and counts its samples."""

from collections.abc import Callable, Iterator
from functools import cache

import z3

from spurtle.config import CONFIGS, SPUConfig
from spurtle.spu import SPU

from ..induction import Wires, always, resets
from ..proof import Proof, Verdict
from ..transition import Transition, transition
from .buffer import limit_stands

__all__ = ["memories", "proofs", "prove_disabled", "prove_fed", "prove_limit", "prove_reset"]


def memories(config: SPUConfig) -> list[str]:
    """Words that no reset reaches. They are read only of a finished slot, whose finish wrote them: see `inflight`."""
    if config.slots == 1:
        return []
    return [f"inflight.{memory}[{slot}]" for memory in ("operations", "order.storage") for slot in range(config.slots)]


def prove_reset(config: SPUConfig, system: Transition) -> Verdict:
    """`system` is an `SPU`."""
    return resets(system, kept=memories(config))


def prove_disabled(config: SPUConfig, system: Transition) -> Verdict:
    """What passes while profiling is disabled is not counted: unless they are written, the counters stand (D17.3.5)."""

    def stands(*cycles: Wires) -> z3.BoolRef:
        passing, counting, after = cycles[0], cycles[-2], cycles[-1]
        no_reset = z3.And(*(wires["rst"] == 0 for wires in cycles[:-1]))
        still = {"interval_counter.pmsicr": "registers.pmsicr_write", "lfsr.state": "registers.pmsrndr_write"}
        return z3.Implies(
            z3.And(no_reset, passing["control.enabled"] == 0),
            z3.And(
                *(
                    z3.Implies(counting[write] == 0, after[register] == counting[register])
                    for register, write in still.items()
                ),
            ),
        )

    return always(system, stands, cycles=config.count_delay + 2)


def prove_fed(config: SPUConfig, system: Transition) -> Verdict:
    """Variants of PMU event SAMPLE_FEED come with it, and SAMPLE_FILTRATE in the cycle after it."""

    def told(*cycles: Wires) -> z3.BoolRef:
        before, now = cycles[-2:]
        variants = (now[f"pmu__sample_feed_{event}"] == 1 for event in config.feed_events)
        return z3.And(
            z3.Implies(z3.Or(*variants), now["pmu__sample_feed"] == 1),
            z3.Implies(now["pmu__sample_filtrate"] == 1, before["pmu__sample_feed"] == 1),
        )

    return always(system, told, cycles=3)


def prove_limit(config: SPUConfig, system: Transition) -> Verdict:
    """PMBLIMITR_EL1 stands unless the buffer is told that software writes it: see `buffer`."""

    def stands(now: Wires, then: Wires) -> z3.BoolRef:
        wires = [{name: one[f"buffer.{name}"] for name in ("pmblimitr", "pmblimitr_write")} for one in (now, then)]
        return limit_stands({"rst": now["rst"], **wires[0]}, wires[1])

    return always(system, stands)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(SPU(config))


def proofs() -> Iterator[Proof]:
    """The same for each configuration."""
    for config in CONFIGS.values():

        def proof(name: str, prove: Callable[[SPUConfig, Transition], Verdict], config: SPUConfig = config) -> Proof:
            return Proof(name, "spu", config.name, "induction", lambda: prove(config, _system(config)))

        yield proof("one cycle of reset, from any state", prove_reset)
        yield proof("PMSICR_EL1 and the random numbers stand while profiling is disabled", prove_disabled)
        yield proof("SAMPLE_FEED_* and SAMPLE_FILTRATE tell of what SAMPLE_FEED counts", prove_fed)
        yield proof("PMBLIMITR_EL1 stands unless software writes it", prove_limit)
