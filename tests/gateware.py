"""Drives a block in Amaranth's simulator, and makes the numbers that its ports carry."""

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

from amaranth.lib import wiring
from amaranth.sim import Simulator
from hypothesis import strategies as st

from spurtle.arch import PMSVer
from spurtle.config import CONFIGS, SPUConfig
from spurtle.inflight import Sample as SampleLayout
from spurtle.layout import NEOVERSE_N1, Packet, RecordLayout
from spurtle.pe import Operation as OperationLayout
from spurtle_sim.reference.records import Facts, Location, Operation, Sample, Start, saturate
from spurtle_sim.reference.registers import Registers

__all__ = [
    "VARIANTS",
    "Bench",
    "boundary_integers",
    "cycle",
    "operation_bits",
    "random_operation",
    "registers",
    "sample_bits",
    "samples",
]

VARIANTS = {
    **CONFIGS,
    # Each choice of a configuration that no named one makes.
    "unnamed": SPUConfig(
        name="unnamed",
        layout=RecordLayout(size=128, places=NEOVERSE_N1.places),
        version=PMSVer.SPE_V1P1,
        ops_per_cycle=3,
        slots=3,
        ernd=True,
        counter_bits=16,
        events=frozenset({*range(16), *range(24, 32)}),
        events_bytes=4,
        data_source_bytes=2,
        bus_bytes=16,
        not_taken_target=False,
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
    return OperationLayout(config).const(_operation_members(config, operation)).as_bits()


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
    return SampleLayout(config).const(members).as_bits()


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


def random_operation(random: Random, config: SPUConfig) -> Operation:
    """Facts in any combination that is possible, plausible or not: only, a branch is neither load nor store."""

    def number(bits: int) -> int:
        return random.choice([0, (1 << bits) - 1, random.getrandbits(bits), random.getrandbits(bits)]) if bits else 0

    kind = random.choice(["load", "store", "atomic", "branch", "other"])
    facts = {name: random.getrandbits(1) for name in Facts.__slots__} | {
        "load": int(kind in ("load", "atomic")),
        "store": int(kind in ("store", "atomic")),
        "branch": int(kind == "branch"),
        "retired": int(random.random() < 0.9),
        "exception": int(random.random() < 0.1),
    }
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


@st.composite
def registers(draw: st.DrawFn, config: SPUConfig) -> Registers:
    """Registers after software wrote anything into them."""
    result = Registers()
    for register in config.registers:
        result.write(config, register, draw(boundary_integers(64)))
    return result
