"""Drives a block in Amaranth's simulator, and makes the numbers that its ports carry."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

from amaranth.hdl import Shape
from amaranth.lib import data, wiring
from amaranth.sim import Simulator
from hypothesis import strategies as st

from spurtle.arch import PMSFCR_EL1, PMSVer
from spurtle.config import CONFIGS, SPUConfig, UnpredictableFilter
from spurtle.inflight import Sample as SampleLayout
from spurtle.layout import NEOVERSE_N1, V1P4, Packet, RecordLayout
from spurtle.pe import Operation as OperationLayout
from spurtle_sim.reference.records import Facts, Location, Operation, Sample, Start, events, saturate
from spurtle_sim.reference.registers import Registers

__all__ = [
    "VARIANTS",
    "Bench",
    "boundary_integers",
    "cycle",
    "operation_bits",
    "random_operation",
    "random_registers",
    "random_sample",
    "sample_bits",
    "samples",
]

Path = tuple[str | int, ...]

VARIANTS = {
    **CONFIGS,
    # Each choice of a configuration that no named one makes.
    "unnamed": SPUConfig(
        name="unnamed",
        layout=RecordLayout(size=256, places=V1P4.places),
        version=PMSVer.SPE_V1P4,
        ops_per_cycle=3,
        slots=3,
        ernd=True,
        eft=True,
        fne=True,
        fds=True,
        mops=True,
        gcs=True,
        unpredictable_filter=UnpredictableFilter.DISCARD,
        counter_bits=16,
        events=frozenset({*range(16), *range(19, 24), *range(48, 64)}),
        events_bytes=8,
        data_source_bytes=2,
        bus_bytes=16,
        not_taken_target=False,
    ),
    # An older version without FEAT_SPE_FnE has other events, and events that can be recorded but not selected.
    "unnamed_v1p1": SPUConfig(
        name="unnamed_v1p1",
        layout=RecordLayout(size=128, places=NEOVERSE_N1.places),
        version=PMSVer.SPE_V1P1,
        slots=2,
        eft=True,
        unpredictable_filter=UnpredictableFilter.DISCARD,
        events=frozenset({*range(16), *range(24, 32)}),
        events_bytes=4,
        data_source_bytes=1,
    ),
}
"""Configurations that blocks are tested in."""


class Bench:
    """A block in the simulator. It is compiled once, and starts from reset in each `run`."""

    def __init__(self, dut: wiring.Component, *, clocked: bool = True):
        self._simulator = Simulator(dut)
        if clocked:
            self._simulator.add_clock(1e-6)
        self._simulator.add_testbench(self._play)
        self._scenario: Callable[[Any], Awaitable[Any]]
        self._result = None
        self._used = False

    async def _play(self, ctx: Any) -> None:
        self._result = await self._scenario(ctx)

    def run(self, scenario: Callable[[Any], Awaitable[Any]]) -> Any:
        """What `scenario(ctx)`, a coroutine function, returns."""
        self._scenario = scenario
        if self._used:
            self._simulator.reset()
        self._used = True
        self._simulator.run()
        return self._result


async def cycle(ctx: Any, inputs: Sequence[tuple[Any, Any]], *outputs: Any) -> tuple[Any, ...]:
    """One clock cycle with each signal of `inputs` set. Returns what `outputs` were in that cycle, before its edge."""
    for signal, value in inputs:
        ctx.set(signal, value)
    _, _, *values = await ctx.tick().sample(*outputs)
    return tuple(values)


def boundary_integers(bits: int) -> st.SearchStrategy[int]:
    """Unsigned integers of so many bits; the smallest, the largest and single bits come often."""
    edges = [0, 1, (1 << bits) - 1, *(1 << bit for bit in range(bits))]
    return st.sampled_from(edges) | st.integers(0, (1 << bits) - 1)


# Reference values as the numbers on a port. The layouts are the gateware's own; the values are not.


def operation_bits(config: SPUConfig, operation: Operation) -> int:
    """`operation` as `spurtle.pe.Operation` carries it."""
    return _pack(_places(OperationLayout, config), _operation_members(config, operation))


def sample_bits(config: SPUConfig, sample: Sample, hidden: int = 0) -> int:
    """`sample` as `spurtle.inflight.Sample` carries it. `hidden` stands where something may not be collected."""
    start = sample.start
    members = {
        "start": {
            "el": start.el,
            "ns": start.ns,
            "contextidr_el1": _shown(start.contextidr_el1, hidden, 32),
            "contextidr_el2": _shown(start.contextidr_el2, hidden, 32),
            "timestamp": _shown(start.timestamp, hidden, 64),
            "collect": {
                "context_el1": start.contextidr_el1 is not None,
                "context_el2": start.contextidr_el2 is not None,
                "timestamp": start.timestamp is not None,
                "pa": start.collect_pa,
            },
        },
        "operation": _operation_members(config, sample.operation),
        **{name: saturate(config, getattr(sample, name)) for name in ("total", "issue", "translation")},
    }
    return _pack(_places(SampleLayout, config), members)


@cache
def _places(layout: Callable[[SPUConfig], Any], config: SPUConfig) -> dict[Path, tuple[int, int]]:
    """Offset and width of each number in a layout. Amaranth's `const` would work them out for each value again."""

    def walk(shape: Any, path: Path, offset: int) -> Iterator[tuple[Path, tuple[int, int]]]:
        try:
            members: Any = data.Layout.cast(shape)
        except TypeError:
            yield path, (offset, Shape.cast(shape).width)
            return
        for name, field in members:
            yield from walk(field.shape, (*path, name), offset + field.offset)

    return dict(walk(layout(config), (), 0))


def _pack(places: Mapping[Path, tuple[int, int]], members: Mapping[str, Any], path: Path = ()) -> int:
    bits = 0
    for name, value in members.items():
        if isinstance(value, Mapping):
            bits |= _pack(places, value, (*path, name))
        else:
            offset, width = places[*path, name]
            assert 0 <= value < 1 << width, f"{name} has {width} bits, not {value}"
            bits |= value << offset
    return bits


def _shown(value: int | None, hidden: int, bits: int) -> int:
    return hidden & (1 << bits) - 1 if value is None else value


def _operation_members(config: SPUConfig, operation: Operation) -> dict[str, Any]:
    members = {
        "facts": {name: getattr(operation.facts, name) for name in Facts.__slots__},
        "target": {name: getattr(operation.target, name) for name in Location.__slots__},
        **{name: getattr(operation, name) for name in ("events", "pc", "va", "pa", "pa_ns")},
    }
    if config.data_source_bytes:
        members["data_source"] = operation.data_source
    return members


# Random values.

_KINDS = ((1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 0, 0))
"""Load, store, branch. An atomic operation is load and store."""


def random_operation(random: Random, config: SPUConfig) -> Operation:
    """Facts in any combination that a core may state, plausible or not.

    A branch is neither load nor store, unless it accesses the Guarded control stack. Facts that belong to a feature
    which `config` lacks are anything.
    """

    def number(bits: int) -> int:
        return random.choice([0, (1 << bits) - 1, random.getrandbits(bits), random.getrandbits(bits)]) if bits else 0

    facts = {name: random.getrandbits(1) for name in Facts.__slots__}
    facts |= dict(zip(("load", "store", "branch"), random.choice(_KINDS), strict=True))
    facts |= {"retired": int(random.random() < 0.9), "exception": int(random.random() < 0.1)}
    for name, present in (("memory_copy", config.mops), ("memory_set", config.mops), ("gcs", config.gcs)):
        if present:
            facts[name] = int(random.random() < 0.2)
    if random.random() < 0.5 and config.mops and facts["memory_copy"]:
        facts |= {"load": 1, "store": 1}
    if facts["branch"] and not (config.gcs and facts["gcs"]):
        facts |= {"load": 0, "store": 0}
    return Operation(
        facts=Facts(**facts),
        events=number(8 * config.events_bytes),
        pc=number(56),
        target=Location(number(56), number(2), number(1)),
        va=number(64),
        pa=number(56),
        pa_ns=number(1),
        data_source=number(8 * config.data_source_bytes),
    )


def random_sample(random: Random, config: SPUConfig) -> Sample:
    """A random operation with random latencies, started with random permissions."""

    def context(packet: Packet) -> int | None:
        return random.choice([None, random.getrandbits(32)]) if packet in config.packet_offsets else None

    def latency() -> int:
        return random.choice([random.randrange(40), random.getrandbits(config.counter_bits + 1)])

    return Sample(
        start=Start(
            el=random.getrandbits(2),
            ns=random.getrandbits(1),
            contextidr_el1=context(Packet.CONTEXT_EL1),
            contextidr_el2=context(Packet.CONTEXT_EL2),
            timestamp=random.choice([None, random.getrandbits(64)]),
            collect_pa=random.choice([False, True]),
        ),
        operation=random_operation(random, config),
        total=latency(),
        issue=latency(),
        translation=latency(),
    )


def samples(config: SPUConfig) -> st.SearchStrategy[Sample]:
    """Random samples; an even choice for each bit matters more than how a failing one shrinks."""
    return st.integers(0, (1 << 32) - 1).map(lambda seed: random_sample(Random(seed), config))


def random_registers(random: Random, config: SPUConfig, sample: Sample) -> Registers:
    """Registers that filter as software may have set them up: any filters enabled, most of them within reach of
    `sample`, some that select nothing, some that want an event both to be set and not to be.
    """
    bits = random.getrandbits
    seen = events(config, sample)
    one = 1 << random.choice(sorted(config.events))
    latency = saturate(config, sample.total) + random.randint(-1, 1)
    masks = random.choice([0, bits(5), bits(5) & bits(5)])
    values = {
        "PMSFCR_EL1": bits(5) | bits(5) << PMSFCR_EL1.fields["B"].lsb | masks << PMSFCR_EL1.fields["Bm"].lsb,
        "PMSEVFR_EL1": random.choice([0, seen, seen & bits(64), seen & bits(64), one, one, bits(64)]),
        "PMSNEVFR_EL1": random.choice([0, bits(64) & ~seen, bits(64) & ~seen, one, one, bits(64)]),
        "PMSLATFR_EL1": random.choice([0, max(latency, 0), bits(config.counter_bits)]),
        "PMSDSFR_EL1": random.choice([0, bits(64), bits(64), 1 << bits(6), (1 << 64) - 1]),
    }
    result = Registers()
    for register in config.registers:
        if register.name in values:
            result.write(config, register, values[register.name])
    return result
