"""D17.3: which members of the sample population are selected."""

import pytest

from spurtle_sim.reference import sampling


def selections(count: int, interval: int, members: int) -> list[int]:
    """Numbers of the selected ones among `members`, the first being 1."""
    selected_members: list[int] = []
    for member in range(1, members + 1):
        count, selected = sampling.advance(count, interval)
        if selected:
            selected_members.append(member)
    return selected_members


@pytest.mark.parametrize(
    ("interval", "first"),
    [(1, [257, 514, 771, 1028]), (2, [513, 1026]), (4, [1025])],
)
def test_selections_are_interval_times_256_plus_1_apart(interval: int, first: list[int]):
    assert selections(0, interval, 1028) == first


def test_a_restored_count_is_counted_down_first():
    assert selections(5, 1, 5 + 257) == [5, 262]


def test_count_keeps_a_zero_for_the_next_member_to_reload():
    assert sampling.advance(1, 3) == (0, True)
    assert sampling.advance(0, 3) == (0x300, False)


def test_interval_zero_behaves_as_one():
    assert selections(0, 0, 600) == selections(0, 1, 600) == [257, 514]


def test_the_largest_values_stay_in_32_bits():
    assert sampling.advance(0, 0xFF_FFFF) == (0xFFFF_FF00, False)
    assert sampling.advance(0xFFFF_FFFF, 1) == (0xFFFF_FFFE, False)
