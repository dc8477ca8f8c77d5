"""Tests of the operations in flight: allocation of slots, captured state, latencies, and the order of the samples."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configurations import FOR_BLOCKS, SLOTS, lanes
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.control import CollectionPermissions
from spurtle.gateware.inflight import InFlight
from spurtle.gateware.sample import SampleLayout, StartLayout
from spurtle.gateware.slots import Allocation, Slot
from tests.support.gateware import Bench, cycle
from tests.support.tiers import configurations, tiers

NEVER = 1 << 30

CONFIGURATIONS = {**FOR_BLOCKS, **SLOTS}


def selections(config: SPUConfig) -> Iterator[tuple[int, ...]]:
    """Yield all combinations of lanes whose operations can be selected in one cycle, in program order."""
    for number in range(config.selections_per_cycle + 1):
        yield from combinations(range(config.ops_per_cycle), number)


def one_hot(config: SPUConfig, lanes: Sequence[int]) -> list[int]:
    """Return `lanes` as the interval counter reports them."""
    return [1 << lane for lane in lanes] + [0] * (config.selections_per_cycle - len(lanes))


# Allocation.


@pytest.mark.parametrize(
    "config",
    [
        lanes(width, slots=slots, ernd=ernd)
        for width, slots, ernd in [*product((1, 2, 3), (1, 2, 3, 4), (False, True)), (8, 4, True), (4, 8, False)]
    ],
    ids=lambda config: f"{config.ops_per_cycle}-{config.slots}-ernd{config.ernd:d}",
)
def test_the_lowest_free_slot_is_allocated_first(config: SPUConfig) -> None:
    dut = Allocation(config)

    async def scenario(ctx: Any) -> None:
        for order, free in product(selections(config), range(1 << config.slots)):
            for port, selected in zip(dut.selected, one_hot(config, order), strict=True):
                ctx.set(port, selected)
            ctx.set(dut.free, free)

            free_slots = [slot for slot in range(config.slots) if free >> slot & 1]
            allocated = dict(zip(order, free_slots, strict=False))
            where = f"lanes {order}, free {free:b}"
            assert ctx.get(dut.sampled) == sum(1 << lane for lane in allocated), where
            assert ctx.get(dut.allocate) == sum(1 << slot for slot in allocated.values()), where
            assert ctx.get(dut.collisions) == len(order) - len(allocated), where
            if config.slots > 1:
                assert {lane: ctx.get(dut.slot[lane]) for lane in allocated} == allocated, where

    Bench(dut, clocked=False).run(scenario)


# The component `InFlight`.


@dataclass(frozen=True)
class Flight:
    """The course of a sampled operation. Cycles are relative to the one in which it passes the sampling point.

    Members
    -------
    finish : int
        The cycle in which it finishes. It is later if another operation finishes in this cycle.
    issue, complete : int or None
        The cycles in which it is reported as issued and as completed.
    translating : set of int
        The cycles in which it is reported as translating.
    vanished : bool
    wait : int
        Cycles for which its sample is stalled.
    """

    finish: int = 2
    issue: int | None = 1
    complete: int | None = None
    translating: frozenset[int] = frozenset()
    vanished: bool = False
    wait: int = 0

    @property
    def end(self) -> int:
        """The cycle in which its counters stop."""
        return min(self.finish, self.complete or NEVER)


@dataclass
class Sampled:
    """A sampled operation in flight.

    Members
    -------
    slot : int
    passed : int
        The cycle in which it passed.
    state : mapping
        The state that was captured then.
    flight : Flight
    operation, previous : int
        Facts and previous branch target, as bits, when it finishes.
    ticks : int
    """

    slot: int
    passed: int
    state: Mapping[str, int]
    flight: Flight
    operation: int = 0
    previous: int = 0
    ticks: int = 0
    """Ticks of the alternate clock before the operation is issued."""


_STATE = {
    "el": 2, "ns": 1, "nse": 1, "contextidr_el1": 32, "contextidr_el2": 32, "timestamp": 64, "offset": 64,
    "subtract": 1, "collect": 5,
}  # fmt: skip
"""The state that is captured when an operation passes, and the widths in bits."""


class InFlightBench(Bench):
    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = InFlight(config)
        self.coverage = Counter[str]()
        super().__init__(self.dut)

    def play(
        self,
        schedule: Sequence[Sequence[int]],
        flights: Sequence[Flight],
        stops: frozenset[int] = frozenset(),
        seed: int = 0,
    ) -> None:
        """Run operations and check all outputs in each cycle. Unused inputs are random from `seed`.

        Parameters
        ----------
        schedule : sequence of sequence of int
            For each cycle, the lanes in which operations pass that will be selected.
        flights : sequence of Flight
            The courses of the sampled operations. The first follows the last.
        stops : set of int
            The cycles in which the buffer does not run. No operation of such a cycle is selected.
        seed : int
        """
        run = Run(self, schedule, flights, stops, seed)

        async def scenario(ctx: Any) -> None:
            while run.active:
                await run.cycle(ctx)

        self.run(scenario)

    def state_ports(self) -> Mapping[str, Any]:
        dut = self.dut
        el2 = {}
        if self.config.el2:
            offset = {"offset": dut.offset, "subtract": dut.subtract_offset}
            el2 = {"contextidr_el2": dut.pe.contextidr_el2, **offset}
        return {
            **({"nse": dut.pe.nse} if self.config.rme else {}),
            **el2,
            "el": dut.pe.el,
            "ns": dut.pe.ns,
            "contextidr_el1": dut.pe.contextidr_el1,
            "timestamp": dut.pe.physical_count,
            "collect": dut.collect.as_value(),
        }

    def sample(self, sampled: Sampled) -> int:
        """Return the expected sample as bits of its port."""
        layout = SampleLayout(self.config)
        flight = sampled.flight
        latencies = {
            "total": flight.end,
            "issue": min(flight.end, flight.issue or NEVER),
            "translation": len([at for at in flight.translating if 1 <= at < flight.end]),
            **({"alternate_issue": sampled.ticks} if self.config.altclk else {}),
        }
        state = dict(sampled.state)
        time = state["timestamp"] - state.pop("offset", 0) * state.pop("subtract", 0) & (1 << 64) - 1
        start = StartLayout(self.config).const(
            state | {"timestamp": time, "collect": CollectionPermissions.from_bits(state["collect"])}
        )
        bits = start.as_bits() << layout["start"].offset | sampled.operation << layout["operation"].offset
        if self.config.pbt:
            bits |= sampled.previous << layout["previous"].offset
        for name, cycles in latencies.items():
            bits |= min(cycles, (1 << self.config.counter_bits) - 1) << layout[name].offset
        return bits


class Run:
    """A run of an `InFlightBench`: the operations in flight and the expected outputs, cycle by cycle."""

    def __init__(
        self,
        bench: InFlightBench,
        schedule: Sequence[Sequence[int]],
        flights: Sequence[Flight],
        stops: frozenset[int],
        seed: int,
    ):
        self.bench, self.config, self.dut = bench, bench.config, bench.dut
        self.schedule, self.flights, self.stops, self.seed = schedule, flights, stops, seed
        self.random = Random(seed)
        self.now = self.count = 0
        self.states: list[Mapping[str, int]] = []
        self.free_from = dict.fromkeys(range(self.config.slots), 0)
        self.in_flight: dict[int, Sampled] = {}
        self.finished: deque[Sampled] = deque()
        self.offered: Sampled | None = None
        self.since = 0
        """The first cycle in which the sample is valid."""

    @property
    def active(self) -> bool:
        passing = self.now < len(self.schedule) + self.config.answer_latency
        return passing or bool(self.in_flight or self.finished or self.offered)

    @property
    def where(self) -> object:
        return ("cycle", self.now, "seed", self.seed, self.schedule, self.flights, self.stops)

    async def cycle(self, ctx: Any) -> None:
        config, dut, random, now = self.config, self.dut, self.random, self.now
        # The operations that are answered in this cycle, and the free slots for them.
        passed = now - config.answer_latency
        free = sorted(slot for slot, since in self.free_from.items() if slot not in self.in_flight and since <= now)
        lanes = self.schedule[passed] if 0 <= passed < len(self.schedule) and passed not in self.stops else ()
        allocated = dict(zip(lanes, free, strict=False))
        finishing = next((s for s in self.in_flight.values() if s.passed + s.flight.finish - 1 == passed), None)
        ready = now - self.since >= self.offered.flight.wait if self.offered else bool(random.getrandbits(1))

        ports = self.bench.state_ports()
        state = {name: random.getrandbits(bits) for name, bits in _STATE.items() if name in ports}
        self.states.append(state)
        previous = random.getrandbits(64) & (1 << len(dut.previous.as_value())) - 1 if config.pbt else 0
        tick = random.getrandbits(1)
        for slot in allocated.values():
            self._take(slot, passed)
        reports = [self._report(slot) for slot in range(config.slots)]
        operation = random.getrandbits(len(dut.finish.operation.as_value()))
        for sampled in self.in_flight.values():
            sampled.ticks += tick * self._awaits_issue(sampled)
        inputs = [
            *zip(dut.selected, one_hot(config, lanes), strict=True),
            *((ports[name], value) for name, value in state.items()),
            (dut.running, now not in self.stops),
            *self._in_flight(reports, tick),
            *self._finish(finishing, operation),
            (dut.sample.ready, ready),
            *([(dut.previous.as_value(), previous)] if config.pbt else []),
        ]
        await self._check(ctx, inputs, lanes, allocated)
        self._move_samples(ready)
        if finishing:
            finishing.operation, finishing.previous = operation, previous
            self._finish_operation(finishing)
        self.now += 1

    def _take(self, slot: int, passed: int) -> None:
        """Allocate a slot to an operation. It finishes later if another finishes in the same cycle."""
        flight = self.flights[self.count % len(self.flights)]
        ending = {sampled.passed + sampled.flight.finish for sampled in self.in_flight.values()}
        while passed + flight.finish in ending:
            flight = replace(flight, finish=flight.finish + 1)
        self.in_flight[slot] = Sampled(slot, passed, self.states[passed], flight)
        self.free_from.pop(slot)
        self.count += 1

    def _in_flight(self, reports: Sequence[tuple[int, int, int]], tick: int) -> Iterator[tuple[Any, int]]:
        ports = self.dut.in_flight
        for what, port in enumerate((ports.issued, ports.completed, ports.translating)):
            yield port, sum(report[what] << slot for slot, report in enumerate(reports))
        if self.config.altclk:
            yield ports.alternate_tick, tick

    def _finish(self, finishing: Sampled | None, operation: int) -> Iterator[tuple[Any, int]]:
        finish, random = self.dut.finish, self.random
        yield finish.valid, finishing is not None
        yield finish.vanished, finishing.flight.vanished if finishing else random.getrandbits(1)
        yield finish.operation.as_value(), operation
        if self.config.slots > 1:
            yield finish.slot, finishing.slot if finishing else random.randrange(self.config.slots)

    async def _check(
        self, ctx: Any, inputs: Sequence[tuple[Any, int]], lanes: Sequence[int], allocated: Mapping[int, int]
    ) -> None:
        """Advance by one cycle and check all outputs.

        Operations in `lanes` are selected. `allocated` holds the slots of those that are sampled, by lane.
        """
        dut, offered, coverage = self.dut, self.offered, self.bench.coverage
        outputs = (dut.sampled, dut.collisions, dut.sample.valid, dut.pending, dut.drop)
        tags = tuple(dut.slot) if self.config.slots > 1 else ()
        sampled, collisions, valid, pending, drop, payload, *slots = await cycle(
            ctx, inputs, *outputs, dut.sample.payload.as_value(), *tags
        )
        assert sampled == sum(1 << lane for lane in allocated), self.where
        assert collisions == len(lanes) - len(allocated), self.where
        if tags:
            assert {lane: slots[lane] for lane in allocated} == allocated, self.where
        assert valid == (offered is not None), self.where
        assert pending == bool(self.finished or offered), self.where
        if offered:
            assert payload == self.bench.sample(offered), self.where
            assert drop == any(stop in self.stops for stop in range(offered.passed + 1, self.now)), self.where
            coverage["dropped" if drop else "kept"] += 1
        coverage[f"{len(allocated)} sampled"] += 1
        coverage["waits for another"] += len(self.finished) > 0 and offered is not None

    def _move_samples(self, ready: bool) -> None:
        """Remove the sample if it is accepted. One cycle later the next finished one follows, with several slots."""
        if self.offered:
            if ready and self.config.slots == 1:
                self.free_from[self.offered.slot] = self.now + 1
            self.offered = None if ready else self.offered
        elif self.finished:
            self.offered, self.since = self.finished.popleft(), self.now + 1
            self.free_from[self.offered.slot] = self.now + 1

    def _finish_operation(self, finishing: Sampled) -> None:
        """Finish an operation."""
        del self.in_flight[finishing.slot]
        self.bench.coverage["overtakes"] += any(other.passed < finishing.passed for other in self.in_flight.values())
        if finishing.flight.vanished:
            self.free_from[finishing.slot] = self.now + 1
        elif self.config.slots > 1:
            self.finished.append(finishing)
        else:
            self.offered, self.since = finishing, self.now + 1

    def _report(self, slot: int) -> tuple[int, int, int]:
        """Return `issued`, `completed` and `translating` of a slot.

        They are those of its operation, from the cycle after it passed until it finishes, and random otherwise.
        """
        random, sampled = self.random, self.in_flight.get(slot)
        at = self.now - (self.config.answer_latency - 1) - sampled.passed if sampled else 0
        if sampled and 1 <= at < sampled.flight.finish:
            flight = sampled.flight
            return int(at == flight.issue), int(at == flight.complete), int(at in flight.translating)
        return random.getrandbits(1), random.getrandbits(1), random.getrandbits(1)

    def _awaits_issue(self, sampled: Sampled) -> bool:
        """Return whether the core has not reported the operation as issued so far."""
        at = self.now - (self.config.answer_latency - 1) - sampled.passed
        return 1 <= at < min(sampled.flight.end, sampled.flight.issue or NEVER)


@pytest.fixture(scope="module", params=configurations(CONFIGURATIONS, fast=["minimal", "v1p4"]))
def bench(request: pytest.FixtureRequest) -> InFlightBench:
    return InFlightBench(request.param)


@pytest.mark.parametrize(
    "flight",
    [Flight(), Flight(vanished=True), Flight(finish=5, issue=None), Flight(finish=5, issue=4),
     Flight(finish=5, issue=5), Flight(finish=5, translating=frozenset(range(6))), Flight(wait=4),
     Flight(finish=6, issue=None, complete=1), Flight(finish=6, issue=2, complete=4, translating=frozenset(range(7)))],
    ids=str,
)  # fmt: skip
def test_an_operation_is_sampled_as_soon_as_a_slot_is_free(bench: InFlightBench, flight: Flight) -> None:
    # Operations are selected in each cycle, and collide while no slot is free. A collision is not retried.
    most = max(selections(bench.config), key=len)
    bench.play([most] * 40, [flight])
    bench.play([most[:1]] * 3 + [()] * 20 + [most] * 3, [flight, Flight()])


def test_samples_are_output_in_the_order_in_which_operations_finish(bench: InFlightBench) -> None:
    many = min(bench.config.slots, 4)
    bench.coverage.clear()
    for order, wait in product(permutations(range(many)), (0, 3)):
        flights = [Flight(finish=2 * many + 2 * rank - number, wait=wait) for number, rank in enumerate(order)]
        bench.play([[number % bench.config.ops_per_cycle] for number in range(many)], flights)
    assert (bench.coverage["overtakes"] > 0) == (many > 1)
    assert (bench.coverage["waits for another"] > 0) == (many > 1)


@pytest.mark.parametrize("wait", tiers(fast=[3], full=[0]))
def test_drop_is_asserted_after_the_buffer_has_not_run(bench: InFlightBench, wait: int) -> None:
    # The buffer stops in any cycle after the operation passed: before the answer, in flight, and while its sample is
    # stalled. The sample of the second operation follows the first, if there are several slots. The last operation
    # passes long after the stop.
    schedule = [[0], [0], *[()] * 30, [0]]
    for stop in range(1, 20):
        bench.coverage.clear()
        bench.play(schedule, [Flight(finish=4, wait=wait), Flight(finish=3, wait=wait)], frozenset([stop]), seed=stop)
        assert bench.coverage["kept"] > 0
        if stop <= 4:
            assert bench.coverage["dropped"] > 0


@st.composite
def flights(draw: st.DrawFn) -> Flight:
    finish = draw(st.integers(2, 12))
    return Flight(
        finish=finish,
        issue=draw(st.none() | st.integers(1, finish)),
        complete=draw(st.none() | st.integers(1, finish)),
        translating=draw(st.frozensets(st.integers(1, finish))),
        vanished=draw(st.booleans()),
        wait=draw(st.integers(0, 5)),
    )


@settings(max_examples=14)
@given(
    st.integers(0, 9999),
    st.sampled_from([0.1, 0.3, 1]),
    st.lists(flights(), min_size=1, max_size=6),
    st.frozensets(st.integers(0, 60), max_size=3),
)
def test_any_flights(
    bench: InFlightBench, seed: int, density: float, flights: list[Flight], stops: frozenset[int]
) -> None:
    random = Random(seed)
    choices = list(selections(bench.config))
    schedule = [random.choice(choices) if random.random() < density else () for _ in range(60)]
    bench.play(schedule, flights, stops, seed)


# One slot.


@pytest.mark.parametrize("config", configurations(CONFIGS))
@pytest.mark.parametrize("beyond", range(-3, 4))
def test_a_counter_stops_at_all_ones(config: SPUConfig, beyond: int) -> None:
    dut = Slot(config)
    largest = (1 << config.counter_bits) - 1

    async def scenario(ctx: Any) -> None:
        ctx.set(dut.translating, 1)
        await cycle(ctx, [(dut.allocate, 1)])
        # Skip the time until six cycles before all ones.
        for counter in (dut.total, dut.issue, dut.translation):
            ctx.set(counter, largest - 6)
        for _ in range(6 + beyond):
            await cycle(ctx, [(dut.allocate, 0)])
        await cycle(ctx, [(dut.finish, 1)])
        for counter in (dut.total, dut.issue, dut.translation):
            assert ctx.get(counter) == largest + min(beyond, 0)

    Bench(dut).run(scenario)
