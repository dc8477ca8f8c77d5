"""Random choice of mutants by a seed, spread over kinds of faults and files."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

from .faults import Mutant, MutantKind, mutants_of, sources

__all__ = ["draw"]


def draw(
    root: Path, count: int, seed: int, legal: Callable[[Sequence[Mutant]], Sequence[Mutant]]
) -> dict[Mutant, MutantKind]:
    """Return `count` mutants with their kinds, in equal numbers of each kind.

    Parameters
    ----------
    root : Path
        Root of the repository.
    count : int
    seed : int
    legal : callable
        Receives mutants, and returns those that can be imported and elaborated. The others are replaced.
    """
    random = Random(seed)
    found = {file: mutants_of(file, (root / file).read_text()) for file in sources(root)}
    drawn: dict[Mutant, MutantKind] = {}
    shares = [count // len(MutantKind) + (index < count % len(MutantKind)) for index in range(len(MutantKind))]
    missing = dict(zip(MutantKind, shares, strict=True))
    orders = {
        kind: _spread([mutant for mutants in found.values() for mutant in mutants[kind]], missing[kind], random)
        for kind in MutantKind
    }
    while candidates := {mutant: kind for kind in MutantKind for mutant in islice(orders[kind], missing[kind])}:
        for mutant in legal(list(candidates)):
            drawn[mutant] = candidates[mutant]
            missing[candidates[mutant]] -= 1
    return drawn


def _spread(mutants: Sequence[Mutant], count: int, random: Random) -> Iterator[Mutant]:
    """Yield `count` mutants at equal distances, so that each file has its share; then the others in random order."""
    step = max(1.0, len(mutants) / max(1, count))
    start = random.random() * step
    chosen = {int(start + number * step) for number in range(min(count, len(mutants)))} & {*range(len(mutants))}
    others = [index for index in range(len(mutants)) if index not in chosen]
    random.shuffle(others)
    return iter([mutants[index] for index in (*sorted(chosen), *others)])
