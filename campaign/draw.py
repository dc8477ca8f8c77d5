"""Which mutants are tried: a sample that a seed decides, spread over kinds and files."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

from .faults import Mutant, MutantKind, mutants_of, sources

__all__ = ["draw"]


def draw(
    root: Path, count: int, seed: int, legal: Callable[[Sequence[Mutant]], Sequence[Mutant]]
) -> dict[Mutant, MutantKind]:
    """Return `count` mutants, as many of each kind, with their kinds.

    Parameters
    ----------
    legal : callable
        Returns those of some mutants that can be imported and elaborated. Others are drawn in place of the rest.
    """
    random = Random(seed)
    found = {file: mutants_of(file, (root / file).read_text()) for file in sources(root)}
    drawn: dict[Mutant, MutantKind] = {}
    shares = [count // len(MutantKind) + (place < count % len(MutantKind)) for place in range(len(MutantKind))]
    missing = dict(zip(MutantKind, shares, strict=True))
    orders = {
        kind: _spread([mutant for mutants in found.values() for mutant in mutants[kind]], missing[kind], random)
        for kind in MutantKind
    }
    while next_ones := {mutant: kind for kind in MutantKind for mutant in islice(orders[kind], missing[kind])}:
        for mutant in legal(list(next_ones)):
            drawn[mutant] = next_ones[mutant]
            missing[next_ones[mutant]] -= 1
    return drawn


def _spread(mutants: Sequence[Mutant], count: int, random: Random) -> Iterator[Mutant]:
    """Yield `count` mutants at equal distances, so that each file has its part, and then the others in any order."""
    step = max(1.0, len(mutants) / max(1, count))
    start = random.random() * step
    chosen = {int(start + place * step) for place in range(min(count, len(mutants)))} & {*range(len(mutants))}
    others = [place for place in range(len(mutants)) if place not in chosen]
    random.shuffle(others)
    return iter([mutants[place] for place in (*sorted(chosen), *others)])
