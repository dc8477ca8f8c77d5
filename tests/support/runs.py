"""Comparison of the operations that two front ends have executed."""

import numpy as np
from numpy.typing import NDArray

from spurtle_sim.qemu.find import Qemu
from spurtle_sim.trace.instruction import FACT

__all__ = ["compare_operations"]


def compare_operations(qemu: Qemu, expected: NDArray[np.void], found: NDArray[np.void]) -> NDArray[np.uint64]:
    """Check that two runs are equal, except in the addresses of accesses. Return those that QEMU should report."""
    assert found["pc"].tolist() == expected["pc"].tolist()
    assert np.array_equal(found["target"], expected["target"])
    facts, addresses = expected["facts"].copy(), expected["va"].copy()
    if not qemu.exact:
        facts[(facts & FACT["conditional"] != 0) & (facts & FACT["branch"] == 0)] |= FACT["taken"]
        zeros = facts & FACT["unspecified"] != 0
        facts[zeros] &= ~np.uint32(FACT["va_valid"])
        addresses[zeros] = 0
    assert np.array_equal(found["facts"], facts)
    return addresses
