"""Tests of the choice of the sampled access of an operation against `ReferenceSPU.choose_access`."""

from itertools import product
from random import Random
from typing import Any

import pytest

from configurations import FEATURES, FOR_BLOCKS
from spurtle.arch import IMP_PMSRNDR_EL1, PMSFCR_EL1
from spurtle.config import SPUConfig
from spurtle.gateware.access_choice import AccessChoice
from spurtle_sim.model.registers import Registers
from spurtle_sim.model.spu import ReferenceSPU
from tests.support.gateware import Bench
from tests.support.seeds import SEED

CONFIGS = {name: config for name, config in (FOR_BLOCKS | FEATURES).items() if config.access_bits}
TWO_ACCESSES = {name: config for name, config in CONFIGS.items() if config.two_accesses}


class AccessBench(Bench):
    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = AccessChoice(config)
        super().__init__(self.dut, clocked=False)

    def choose(self, pmsfcr: int, lanes: list[int], random: list[int]) -> list[tuple[int, int]]:
        """Return the destination bit and the element of each selected operation, zero where the port is absent.

        `lanes` are the lanes of the selected operations, in program order. Check that one random number is drawn for
        each of them.
        """
        dut, config = self.dut, self.config

        async def scenario(ctx: Any) -> tuple[int, list[int], int]:
            ctx.set(dut.pmsfcr.as_value(), pmsfcr)
            for index, (selected, number) in enumerate(zip(dut.selected, dut.random, strict=True)):
                ctx.set(selected, 1 << lanes[index] if index < len(lanes) else 0)
                ctx.set(number, random[index])
            destination = ctx.get(dut.destination) if config.two_accesses else 0
            elements = [ctx.get(element) for element in dut.element] if config.scalable else [0] * config.ops_per_cycle
            return destination, elements, ctx.get(dut.draw)

        destination, elements, drawn = self.run(scenario)
        assert drawn == len(lanes)
        return [(destination >> lane & 1, elements[lane]) for lane in lanes]


@pytest.fixture(scope="module", params=CONFIGS.values(), ids=CONFIGS)
def any_bench(request: pytest.FixtureRequest) -> AccessBench:
    return AccessBench(request.param)


@pytest.fixture(scope="module", params=TWO_ACCESSES.values(), ids=TWO_ACCESSES)
def bench(request: pytest.FixtureRequest) -> AccessBench:
    return AccessBench(request.param)


def selections(config: SPUConfig) -> list[list[int]]:
    """Return the lanes of the operations that can be selected in one cycle, in program order."""
    lanes = range(config.ops_per_cycle)
    pairs = [[one, other] for one, other in product(lanes, lanes) if one < other]
    return [[], *([lane] for lane in lanes), *(pairs if config.selections_per_cycle == 2 else [])]


def test_like_the_reference(any_bench: AccessBench) -> None:
    random, config = Random(SEED), any_bench.config
    for lanes in selections(config):
        for _ in range(10):
            numbers = [random.getrandbits(config.access_bits) for _ in range(config.selections_per_cycle)]
            registers = Registers()
            registers.write(config, PMSFCR_EL1, random.getrandbits(64) | random.choice([0, 0b10]))
            expected = []
            for number in numbers[: len(lanes)]:
                # The number is the low bits of the state of the generator.
                registers.write(config, IMP_PMSRNDR_EL1, IMP_PMSRNDR_EL1.pack(ACCESS=1 << config.access_bits | number))
                expected.append(ReferenceSPU(config).choose_access(registers))
            assert any_bench.choose(registers.PMSFCR_EL1, lanes, numbers) == expected


def test_bit_0_of_the_random_number_chooses_between_two_accesses(any_bench: AccessBench) -> None:
    """The remaining bits are the element."""
    config = any_bench.config
    element = 0b1010_0011 if config.scalable else 0
    for store in (0, 1) if config.two_accesses else (0,):
        number = element << 1 | store if config.two_accesses else element
        assert any_bench.choose(0, [0], [number] * config.selections_per_cycle) == [(store, element)]


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
def test_a_type_filter_that_selects_one_access_chooses_it(
    bench: AccessBench, fields: dict[str, int], destination: int | None
) -> None:
    for bit in (0, 1):
        numbers = [bit] * bench.config.selections_per_cycle
        expected = bit if destination is None else destination
        assert bench.choose(PMSFCR_EL1.pack(**fields), [0], numbers) == [(expected, 0)]


def test_masks_do_not_affect_the_choice(bench: AccessBench) -> None:
    if bench.config.eft:
        for masks in product((0, 1), repeat=2):
            pmsfcr = PMSFCR_EL1.pack(FT=1, ST=1, STm=masks[0], LDm=masks[1])
            assert bench.choose(pmsfcr, [0], [0] * bench.config.selections_per_cycle) == [(1, 0)]
