"""Selection of members of the sample population, and pseudorandom numbers, in the reference model (D17.3)."""

from collections.abc import Iterable, Sequence
from itertools import chain, cycle, pairwise, repeat
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spurtle.config import LFSR_ACCESS_RESET, LFSR_DELAYS
from spurtle_sim.model.sampling import access_number, advance, draw, draw_access
from tests.support.gateware import boundary_integers
from tests.support.interval_cases import CASES, Case
from tests.support.seeds import SEED


def run(
    rnds: Iterable[int], *, ernd: bool, interval: int, numbers: Iterable[int], count: int = 0, ecount: int = 0
) -> tuple[tuple[int, ...], tuple[int, int]]:
    """Count one member for each of `rnds`. Return the numbers of the selected members, from 1, and the counters."""
    random_numbers = cycle(numbers)
    number = next(random_numbers)
    selected: list[int] = []
    for member, rnd in enumerate(rnds, start=1):
        count, ecount, chosen, drawn = advance(count, ecount, interval=interval, rnd=rnd, random=number, ernd=ernd)
        if drawn:
            number = next(random_numbers)
        if chosen:
            selected.append(member)
    return tuple(selected), (count, ecount)


def distances(selected: Sequence[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(selected)]


@pytest.mark.parametrize(
    ("case", "ernd"),
    [
        pytest.param(case, ernd, id=f"{case.rule}, {'ERnd' if ernd else 'no ERnd'}")
        for case in CASES
        for ernd in case.ernd
    ],
)
def test_rule(case: Case, ernd: bool) -> None:
    rnds = chain.from_iterable(repeat(rnd, members) for members, rnd in case.passing)
    found = run(rnds, ernd=ernd, interval=case.interval, numbers=case.numbers, count=case.count, ecount=case.ecount)
    assert found == (case.selected, case.remaining)


def test_mean_random_interval_is_half_a_member_longer_than_the_note_states() -> None:
    # D17.3.4.2 states INTERVAL * 256 + 128. The mean of a random byte is 127.5, and the reload takes one member.
    numbers = Random(SEED).sample(range(256), 256)
    selected, counters = run(repeat(1, 98_432), ernd=False, interval=1, numbers=numbers)
    assert distances((0, *selected)) == [257 + number for number in numbers]
    assert (len(selected), selected[-1], counters) == (256, 98_432, (0, 0))


def test_ernd_does_not_change_the_mean_interval() -> None:
    # D17.3.4.3, Note: a random number delays its own selection, but not the following selections.
    numbers = Random(SEED).sample(range(256), 256)
    selected, _ = run(repeat(1, 257 * 257), ernd=True, interval=1, numbers=numbers)
    assert list(selected[:256]) == [257 * count + number for count, number in enumerate(numbers, start=1)]


@given(
    count=boundary_integers(32),
    ecount=boundary_integers(8),
    interval=boundary_integers(24),
    rnd=st.integers(0, 1),
    random=boundary_integers(8),
    ernd=st.booleans(),
)
def test_counters_after_any_member(count: int, ecount: int, interval: int, rnd: int, random: int, ernd: bool) -> None:
    new_count, new_ecount, selected, drawn = advance(
        count, ecount, interval=interval, rnd=rnd, random=random, ernd=ernd
    )
    assert 0 <= new_count < 1 << 32
    assert 0 <= new_ecount < 1 << 8
    # COUNT always changes, and it increases only from zero.
    assert new_count > 0xFF if count == 0 else new_count == count - 1
    if not rnd:
        assert (new_ecount, selected, drawn) == (ecount, count == 1, False)
    if drawn:
        assert count == (1 if ernd else 0)


@pytest.mark.parametrize("bits", [1, 8, 9])
def test_access_numbers_are_consecutive_bits_of_the_sequence(bits: int) -> None:
    """Each bit is the exclusive OR of earlier bits at fixed distances. No bit is in two numbers."""
    state = LFSR_ACCESS_RESET
    sequence = [state >> bit & 1 for bit in reversed(range(32))]
    for _ in range(500):
        assert access_number(state, bits) == int("".join(map(str, sequence[-bits:])), 2)
        state = draw_access(state, bits)
        for _ in range(bits):
            sequence.append(sum(sequence[-delay] for delay in LFSR_DELAYS) % 2)
    assert draw(state) == draw_access(state, 8)
