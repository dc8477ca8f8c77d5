"""Parameters of the timing model for tests."""

from dataclasses import replace
from typing import Any

from spurtle_sim.timing.core import read_core
from spurtle_sim.timing.parameters import Parameters

__all__ = ["core"]


def core(*, ops_per_cycle: int = 1, **changes: Any) -> Parameters:
    """Return the parameters of the default core for one lane, with changes."""
    return replace(read_core().parameters, ops_per_cycle=ops_per_cycle, **changes)
