"""Random tables of timed operations."""

from random import Random

import numpy as np
from numpy.typing import NDArray

from spurtle_sim.model.operation import Facts
from spurtle_sim.trace.dtypes import TIMED_OPERATION
from spurtle_sim.trace.vectors import LENGTH_LIMIT, LENGTH_SHIFT
from tests.support.seeds import SEED

__all__ = ["table"]

_KINDS = (
    Facts(load=1, va_valid=1, pa_valid=1, data_source_valid=1, retired=1, taken=1),
    Facts(store=1, va_valid=1, retired=1, taken=1),
    Facts(branch=1, conditional=1, retired=1),
    Facts(retired=1, taken=1),
)


def table(rows: int, seed: int, *, lanes: int, gap: int = 3, longest: int = 400) -> NDArray[np.void]:
    """Return a table of random operations.

    Up to `lanes` operations pass in a cycle. At most `gap` cycles are between two cycles with operations, and each
    operation is in flight for at most `longest` cycles.
    """
    random, vectors = Random(f"{SEED} {seed}"), Random(f"{SEED} {seed} vectors")
    operations = np.zeros(rows, TIMED_OPERATION)
    dispatch, free_lanes = 10, lanes
    for row in operations:
        finish = random.choice([2, 3, random.randint(2, 20), random.randint(2, longest)])
        translate_from = random.randint(1, finish)
        free_lanes -= 1
        if free_lanes == 0 or random.random() < 0.25:
            dispatch += random.randint(1, gap)
            free_lanes = lanes
        row["dispatch"] = dispatch
        row["facts"] = random.choice(_KINDS).pack()
        row["events"] = random.getrandbits(8)
        row["finish"] = finish
        row["issue"] = random.randint(1, finish - 1)
        row["translate_from"] = translate_from
        row["translate_to"] = random.randint(translate_from, finish)
        row["data_source"] = random.getrandbits(8)
        if vectors.random() < 0.25:
            row["vectors"] = _random_vectors(vectors)
        for name, bits in (("pc", 56), ("target", 56), ("va", 56), ("pa", 48)):
            row[name] = random.getrandbits(bits)
    return operations


def _random_vectors(random: Random) -> int:
    """Return random vectors. Those of operations that are not of SVE have no effect."""
    return random.randint(1, LENGTH_LIMIT) << LENGTH_SHIFT | random.getrandbits(LENGTH_SHIFT)
