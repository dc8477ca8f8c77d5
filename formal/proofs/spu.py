"""The whole SPU: it comes out of reset the same, whatever its registers held."""

from collections.abc import Iterator
from functools import partial

from spurtle.config import CONFIGS, SPUConfig
from spurtle.spu import SPU

from ..induction import resets
from ..proof import Proof, Verdict
from ..transition import transition

__all__ = ["proofs"]


def _reset(config: SPUConfig) -> Verdict:
    return resets(transition(SPU(config)))


def proofs() -> Iterator[Proof]:
    """The same for each configuration."""
    for config in CONFIGS.values():
        yield Proof("one cycle of reset, from any state", "spu", config.name, "induction", partial(_reset, config))
