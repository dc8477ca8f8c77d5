"""The whole SPU: it comes out of reset the same, and stands still while profiling is disabled."""

from collections.abc import Callable, Iterator
from functools import cache

import z3

from spurtle.config import CONFIGS, SPUConfig
from spurtle.spu import SPU

from ..induction import Wires, always, resets
from ..proof import Proof, Verdict
from ..transition import Transition, transition

__all__ = ["memories", "proofs", "prove_disabled", "prove_reset"]


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
