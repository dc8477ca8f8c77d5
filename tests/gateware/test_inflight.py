"""The sampled operations: who is sampled, what is captured and counted, in which order samples leave, and when a slot
is free again.
"""

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
    """Every choice of lanes whose operations can be selected in one cycle, in program order."""
    for number in range(config.selections_per_cycle + 1):
        yield from combinations(range(config.ops_per_cycle), number)


def one_hot(config: SPUConfig, lanes: Sequence[int]) -> list[int]:
    """`lanes` as the interval counter tells them."""
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

            there = [slot for slot in range(config.slots) if free >> slot & 1]
            given = dict(zip(order, there, strict=False))
            where = f"lanes {order}, free {free:b}"
            assert ctx.get(dut.sampled) == sum(1 << lane for lane in given), where
            assert ctx.get(dut.allocate) == sum(1 << slot for slot in given.values()), where
            assert ctx.get(dut.collisions) == len(order) - len(given), where
            if config.slots > 1:
                assert {lane: ctx.get(dut.slot[lane]) for lane in given} == given, where

    Bench(dut, clocked=False).run(scenario)


# The whole.


@dataclass(frozen=True)
class Flight:
    """What becomes of a sampled operation. Cycles count from the one in which it passes the sampling point.

    If another finishes in that cycle, `finish` is later. Its sample is taken `wait` cycles after it could be.
    """

    finish: int = 2
    issue: int | None = 1
    complete: int | None = None
    translating: frozenset[int] = frozenset()
    vanished: bool = False
    wait: int = 0

    @property
    def ends(self) -> int:
        """When its counters stop."""
        return min(self.finish, self.complete or NEVER)


@dataclass
class Sampled:
    """A sampled operation under way: where it is, when it passed, in which state of the PE; then, what it was."""

    slot: int
    passed: int
    state: Mapping[str, int]
    flight: Flight
    operation: int = 0
    previous: int = 0
    ticks: int = 0
    """Of the alternate clock, until it was issued."""


_STATE = {
    "el": 2, "ns": 1, "nse": 1, "contextidr_el1": 32, "contextidr_el2": 32, "timestamp": 64, "offset": 64, "collect": 5,
}  # fmt: skip
"""What is captured when an operation passes, and its bits."""


class InFlightBench(Bench):
    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = InFlight(config)
        self.seen = Counter[str]()
        super().__init__(self.dut)

    def play(
        self,
        schedule: Sequence[Sequence[int]],
        flights: Sequence[Flight],
        stops: frozenset[int] = frozenset(),
        seed: int = 0,
    ) -> None:
        """Check every output in every cycle. Inputs without a meaning are noise from `seed`.

        In each cycle of `schedule` some lanes pass whose operations will be selected, unless it is one of `stops`, in
        which the buffer does not run. Those that are sampled take from `flights`, over and over.
        """
        play = Play(self, schedule, flights, stops, seed)

        async def scenario(ctx: Any) -> None:
            while play.under_way:
                await play.cycle(ctx)

        self.run(scenario)

    def state_ports(self) -> Mapping[str, Any]:
        dut = self.dut
        return {
            **({"nse": dut.pe.nse} if self.config.rme else {}),
            **({"contextidr_el2": dut.pe.contextidr_el2, "offset": dut.offset} if self.config.el2 else {}),
            "el": dut.pe.el,
            "ns": dut.pe.ns,
            "contextidr_el1": dut.pe.contextidr_el1,
            "timestamp": dut.pe.physical_count,
            "collect": dut.collect.as_value(),
        }

    def sample(self, sampled: Sampled) -> int:
        """Return the sample as its port carries it, with latencies counted anew from what happened."""
        layout = SampleLayout(self.config)
        flight = sampled.flight
        latencies = {
            "total": flight.ends,
            "issue": min(flight.ends, flight.issue or NEVER),
            "translation": len([at for at in flight.translating if 1 <= at < flight.ends]),
            **({"alternate_issue": sampled.ticks} if self.config.altclk else {}),
        }
        state = dict(sampled.state)
        time = state["timestamp"] - state.pop("offset", 0) & (1 << 64) - 1
        start = StartLayout(self.config).const(
            state | {"timestamp": time, "collect": CollectionPermissions.from_bits(state["collect"])}
        )
        bits = start.as_bits() << layout["start"].offset | sampled.operation << layout["operation"].offset
        if self.config.pbt:
            bits |= sampled.previous << layout["previous"].offset
        for name, cycles in latencies.items():
            bits |= min(cycles, (1 << self.config.counter_bits) - 1) << layout[name].offset
        return bits


class Play:
    """A run of an `InFlightBench`, cycle by cycle: the operations in flight, and what each output has to be."""

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
        self.flying: dict[int, Sampled] = {}
        self.finished: deque[Sampled] = deque()
        self.offered: Sampled | None = None
        self.since = 0
        """Cycle from which on the sample is offered."""

    @property
    def under_way(self) -> bool:
        passing = self.now < len(self.schedule) + self.config.answer_latency
        return passing or bool(self.flying or self.finished or self.offered)

    @property
    def where(self) -> object:
        return ("cycle", self.now, "seed", self.seed, self.schedule, self.flights, self.stops)

    async def cycle(self, ctx: Any) -> None:
        config, dut, random, now = self.config, self.dut, self.random, self.now
        # Which operations passed `latency` cycles ago, and which slots they can have.
        passed = now - config.answer_latency
        free = sorted(slot for slot, since in self.free_from.items() if slot not in self.flying and since <= now)
        lanes = self.schedule[passed] if 0 <= passed < len(self.schedule) and passed not in self.stops else ()
        given = dict(zip(lanes, free, strict=False))
        ends = next((s for s in self.flying.values() if s.passed + s.flight.finish - 1 == passed), None)
        ready = now - self.since >= self.offered.flight.wait if self.offered else bool(random.getrandbits(1))

        ports = self.bench.state_ports()
        state = {name: random.getrandbits(bits) for name, bits in _STATE.items() if name in ports}
        self.states.append(state)
        previous = random.getrandbits(64) & (1 << len(dut.previous.as_value())) - 1 if config.pbt else 0
        tick = random.getrandbits(1)
        for slot in given.values():
            self._take(slot, passed)
        reports = [self._report(slot) for slot in range(config.slots)]
        operation = random.getrandbits(len(dut.finish.operation.as_value()))
        for sampled in self.flying.values():
            sampled.ticks += tick * self._waits(sampled)
        inputs = [
            *zip(dut.selected, one_hot(config, lanes), strict=True),
            *((ports[name], value) for name, value in state.items()),
            (dut.running, now not in self.stops),
            *self._in_flight(reports, tick),
            *self._finish(ends, operation),
            (dut.sample.ready, ready),
            *([(dut.previous.as_value(), previous)] if config.pbt else []),
        ]
        await self._check(ctx, inputs, lanes, given)
        self._move_samples(ready)
        if ends:
            ends.operation, ends.previous = operation, previous
            self._end(ends)
        self.now += 1

    def _take(self, slot: int, passed: int) -> None:
        """An operation gets a slot. If another finishes in the same cycle, it finishes later."""
        flight = self.flights[self.count % len(self.flights)]
        ending = {sampled.passed + sampled.flight.finish for sampled in self.flying.values()}
        while passed + flight.finish in ending:
            flight = replace(flight, finish=flight.finish + 1)
        self.flying[slot] = Sampled(slot, passed, self.states[passed], flight)
        self.free_from.pop(slot)
        self.count += 1

    def _in_flight(self, reports: Sequence[tuple[int, int, int]], tick: int) -> Iterator[tuple[Any, int]]:
        ports = self.dut.in_flight
        for what, port in enumerate((ports.issued, ports.completed, ports.translating)):
            yield port, sum(report[what] << slot for slot, report in enumerate(reports))
        if self.config.altclk:
            yield ports.alternate_tick, tick

    def _finish(self, ends: Sampled | None, operation: int) -> Iterator[tuple[Any, int]]:
        finish, random = self.dut.finish, self.random
        yield finish.valid, ends is not None
        yield finish.vanished, ends.flight.vanished if ends else random.getrandbits(1)
        yield finish.operation.as_value(), operation
        if self.config.slots > 1:
            yield finish.slot, ends.slot if ends else random.randrange(self.config.slots)

    async def _check(
        self, ctx: Any, inputs: Sequence[tuple[Any, int]], lanes: Sequence[int], given: Mapping[int, int]
    ) -> None:
        """Let a cycle pass. Operations in `lanes` were selected, and have the slots that were `given` to them."""
        dut, offered, seen = self.dut, self.offered, self.bench.seen
        outputs = (dut.sampled, dut.collisions, dut.sample.valid, dut.pending, dut.drop)
        tags = tuple(dut.slot) if self.config.slots > 1 else ()
        sampled, collisions, valid, pending, unwanted, payload, *slots = await cycle(
            ctx, inputs, *outputs, dut.sample.payload.as_value(), *tags
        )
        assert sampled == sum(1 << lane for lane in given), self.where
        assert collisions == len(lanes) - len(given), self.where
        if tags:
            assert {lane: slots[lane] for lane in given} == given, self.where
        assert valid == (offered is not None), self.where
        assert pending == bool(self.finished or offered), self.where
        if offered:
            assert payload == self.bench.sample(offered), self.where
            assert unwanted == any(stop in self.stops for stop in range(offered.passed + 1, self.now)), self.where
            seen["unwanted" if unwanted else "wanted"] += 1
        seen[f"{len(given)} sampled"] += 1
        seen["waits for another"] += len(self.finished) > 0 and offered is not None

    def _move_samples(self, ready: bool) -> None:
        """The sample is taken, if there is one, and the next one follows, if it has a slot of its own."""
        taken = self.offered is not None and ready
        if self.config.slots > 1:
            if taken or not self.offered:
                self.offered, self.since = self.finished.popleft() if self.finished else None, self.now + 1
                if self.offered:
                    self.free_from[self.offered.slot] = self.now + 1
        elif self.offered and taken:
            self.free_from[self.offered.slot] = self.now + 1
            self.offered = None

    def _end(self, ends: Sampled) -> None:
        """An operation finishes."""
        del self.flying[ends.slot]
        self.bench.seen["overtakes"] += any(other.passed < ends.passed for other in self.flying.values())
        if ends.flight.vanished:
            self.free_from[ends.slot] = self.now + 1
        elif self.config.slots > 1:
            self.finished.append(ends)
        else:
            self.offered, self.since = ends, self.now + 1

    def _report(self, slot: int) -> tuple[int, int, int]:
        """Return `issued`, `completed` and `translating` of a slot: those of its operation from the cycle after it
        passed until it finishes, noise otherwise.
        """
        random, sampled = self.random, self.flying.get(slot)
        at = self.now - (self.config.answer_latency - 1) - sampled.passed if sampled else 0
        if sampled and 1 <= at < sampled.flight.finish:
            flight = sampled.flight
            return int(at == flight.issue), int(at == flight.complete), int(at in flight.translating)
        return random.getrandbits(1), random.getrandbits(1), random.getrandbits(1)

    def _waits(self, sampled: Sampled) -> bool:
        """Return whether the operation waits to be issued, as the core has reported so far."""
        at = self.now - (self.config.answer_latency - 1) - sampled.passed
        return 1 <= at < min(sampled.flight.ends, sampled.flight.issue or NEVER)


@pytest.fixture(scope="module", params=configurations(CONFIGURATIONS))
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
    # Something is selected in every cycle, and collides in those in which there is no slot: a collision is not retried.
    most = max(selections(bench.config), key=len)
    bench.play([most] * 40, [flight])
    bench.play([most[:1]] * 3 + [()] * 20 + [most] * 3, [flight, Flight()])


def test_samples_are_output_in_the_order_in_which_operations_finish(bench: InFlightBench) -> None:
    many = min(bench.config.slots, 4)
    bench.seen.clear()
    for order, wait in product(permutations(range(many)), (0, 3)):
        flights = [Flight(finish=2 * many + 2 * place - number, wait=wait) for number, place in enumerate(order)]
        bench.play([[number % bench.config.ops_per_cycle] for number in range(many)], flights)
    assert (bench.seen["overtakes"] > 0) == (many > 1)
    assert (bench.seen["waits for another"] > 0) == (many > 1)


@pytest.mark.parametrize("wait", tiers(fast=[3], full=[0]))
def test_a_record_is_unwanted_after_the_buffer_has_not_run(bench: InFlightBench, wait: int) -> None:
    # In any cycle from the one after it passed: before the answer, in flight, and while its sample waits. That of the
    # second operation waits behind the first one's, if it has a slot of its own. The last comes long after.
    schedule = [[0], [0], *[()] * 30, [0]]
    for stop in range(1, 20):
        bench.seen.clear()
        bench.play(schedule, [Flight(finish=4, wait=wait), Flight(finish=3, wait=wait)], frozenset([stop]), seed=stop)
        assert bench.seen["wanted"] > 0
        if stop <= 4:
            assert bench.seen["unwanted"] > 0


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


@settings(max_examples=20)
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
        # Skips the time to six cycles before all ones.
        for counter in (dut.total, dut.issue, dut.translation):
            ctx.set(counter, largest - 6)
        for _ in range(6 + beyond):
            await cycle(ctx, [(dut.allocate, 0)])
        await cycle(ctx, [(dut.finish, 1)])
        for counter in (dut.total, dut.issue, dut.translation):
            assert ctx.get(counter) == largest + min(beyond, 0)

    Bench(dut).run(scenario)
