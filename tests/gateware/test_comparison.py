"""Tests of the comparisons: all numbers of one to four bits."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.sim import Simulator

from spurtle.gateware.comparison import at_most, at_most_one_more


@pytest.mark.parametrize(
    ("compare", "expected"),
    [
        (at_most, lambda a, b: a <= b),
        (at_most_one_more, lambda a, b: a <= b + 1),
    ],
    ids=["at_most", "at_most_one_more"],
)
def test_like_python(compare: Callable[[Any, Any], Any], expected: Callable[[int, int], bool]) -> None:
    m = Module()
    widths = [*product(range(1, 5), repeat=2)]
    pairs = [(Signal(a, name=f"a_{a}_{b}"), Signal(b, name=f"b_{a}_{b}")) for a, b in widths]
    results = Signal(len(pairs))
    m.d.comb += results.eq(Cat(compare(a, b) for a, b in pairs))
    numbers = Signal(8)
    m.d.comb += [port.eq(half) for pair in pairs for port, half in zip(pair, (numbers[:4], numbers[4:]), strict=True)]

    async def scenario(ctx: Any) -> None:
        for a, b in product(range(16), repeat=2):
            ctx.set(numbers, a | b << 4)
            bits = [expected(a % (1 << width), b % (1 << other)) for width, other in widths]
            assert ctx.get(results) == sum(bit << index for index, bit in enumerate(bits)), (a, b)

    simulator = Simulator(m)
    simulator.add_testbench(scenario)
    simulator.run()
