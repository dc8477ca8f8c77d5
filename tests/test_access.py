"""Which access is sampled of an operation that makes two, against the reference's `filtering.sampled_access`."""

from itertools import product
from random import Random
from typing import Any

import pytest
from gateware import VARIANTS, Bench

from formal.features import FEATURES
from spurtle.access import AccessChoice
from spurtle.arch import PMSFCR_EL1
from spurtle.config import SPUConfig
from spurtle_sim.reference import filtering
from spurtle_sim.reference.registers import Registers

CONFIGS = {name: config for name, config in (VARIANTS | FEATURES).items() if config.two_accesses}


class AccessBench(Bench):
    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = AccessChoice(config)
        super().__init__(self.dut, clocked=False)

    def choose(self, pmsfcr: int, lanes: list[int], random: list[int]) -> list[int]:
        """The destination that is told of each selected operation; `lanes` are theirs, in program order. So many random
        bits are drawn.
        """

        async def scenario(ctx: Any) -> tuple[int, int]:
            ctx.set(self.dut.pmsfcr.as_value(), pmsfcr)
            for index, (selected, bit) in enumerate(zip(self.dut.selected, self.dut.random, strict=True)):
                ctx.set(selected, 1 << lanes[index] if index < len(lanes) else 0)
                ctx.set(bit, random[index])
            return ctx.get(self.dut.destination), ctx.get(self.dut.draw)

        destination, drawn = self.run(scenario)
        assert drawn == len(lanes)
        return [destination >> lane & 1 for lane in lanes]


@pytest.fixture(scope="module", params=CONFIGS.values(), ids=CONFIGS)
def bench(request: pytest.FixtureRequest) -> AccessBench:
    return AccessBench(request.param)


def selections(config: SPUConfig) -> list[list[int]]:
    """Lanes of what can be selected in one cycle, in program order."""
    lanes = range(config.ops_per_cycle)
    pairs = [[one, other] for one, other in product(lanes, lanes) if one < other]
    return [[], *([lane] for lane in lanes), *(pairs if config.selections_per_cycle == 2 else [])]


def test_like_the_reference(bench: AccessBench) -> None:
    random = Random(1)
    for lanes in selections(bench.config):
        for _ in range(10):
            bits = [random.getrandbits(1) for _ in range(bench.config.selections_per_cycle)]
            registers = Registers()
            registers.write(bench.config, PMSFCR_EL1, random.getrandbits(64) | random.choice([0, 0b10]))
            expected = [filtering.sampled_access(registers, bit) for bit in bits[: len(lanes)]]
            assert bench.choose(registers.PMSFCR_EL1, lanes, bits) == expected


@pytest.mark.parametrize(
    ("fields", "destination"),
    [
        ({}, None),
        ({"FT": 1}, None),
        ({"FT": 1, "LD": 1, "ST": 1}, None),
        ({"FT": 1, "ST": 1}, 1),
        ({"FT": 1, "LD": 1}, 0),
        ({"ST": 1}, None),
        ({"LD": 1}, None),
        ({"FT": 1, "ST": 1, "B": 1}, 1),
        ({"FE": 1, "FL": 1, "ST": 1}, None),
    ],
    ids=str,
)
def test_the_filter_by_type_decides_if_it_selects_one_of_the_two(
    bench: AccessBench, fields: dict[str, int], destination: int | None
) -> None:
    for bit in (0, 1):
        bits = [bit] * bench.config.selections_per_cycle
        expected = bit if destination is None else destination
        assert bench.choose(PMSFCR_EL1.pack(**fields), [0], bits) == [expected]


def test_masks_do_not_matter(bench: AccessBench) -> None:
    if bench.config.eft:
        for masks in product((0, 1), repeat=2):
            pmsfcr = PMSFCR_EL1.pack(FT=1, ST=1, STm=masks[0], LDm=masks[1])
            assert bench.choose(pmsfcr, [0], [0] * bench.config.selections_per_cycle) == [1]
