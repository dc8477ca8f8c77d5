"""Test benches in Amaranth's simulator, and random values for the ports of components."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from inspect import getmembers, isclass
from pkgutil import iter_modules
from random import Random
from typing import Any

from amaranth.hdl import Shape, Signal
from amaranth.lib import wiring
from amaranth.sim import Simulator
from hypothesis import strategies as st

from spurtle import gateware, shell
from spurtle.arch import PMSFCR_EL1
from spurtle.config import SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle.gateware.component import ConfiguredComponent
from spurtle.interface.pe_state import PROFILING_CONTROLS, PEStateSignature
from spurtle_sim.model.operation import Facts, Location, Operation, Sample, Start, Vectors
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.records import events, saturate
from spurtle_sim.model.registers import Registers
from tests.support.operation_kinds import KINDS, RARE

__all__ = [
    "Bench",
    "boundary_integers",
    "components",
    "cycle",
    "pe_bits",
    "random_location",
    "random_operation",
    "random_pe",
    "random_registers",
    "random_sample",
    "uniform_samples",
]


def components() -> list[type[wiring.Component]]:
    """Return all components of gateware and shells."""
    modules = [
        import_module(f"{package.__name__}.{module.name}")
        for package in (gateware, shell)
        for module in iter_modules(package.__path__)
    ]
    return [
        member
        for module in modules
        for _, member in getmembers(module, isclass)
        if issubclass(member, wiring.Component) and member.__module__ == module.__name__
        if member is not ConfiguredComponent
    ]


class Bench:
    """A component in the simulator. It is compiled once, and each `run` starts from reset.

    Parameters
    ----------
    dut : Component
    clocked : bool
        Whether the component has a clock.
    """

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
        """Run `scenario(ctx)`, a coroutine function, from reset. Return its result."""
        self._scenario = scenario
        if self._used:
            self._simulator.reset()
        self._used = True
        self._simulator.run()
        return self._result


async def cycle(ctx: Any, inputs: Sequence[tuple[Any, Any]], *outputs: Any) -> tuple[Any, ...]:
    """Set each signal of `inputs`, advance by one clock cycle and return `outputs` as they were before its edge."""
    for signal, value in inputs:
        # The simulator evaluates the design after each `set`, which takes several times as long as `get`.
        if not isinstance(signal, Signal) or ctx.get(signal) != value:
            ctx.set(signal, value)
    _, _, *values = await ctx.tick().sample(*outputs)
    return tuple(values)


def boundary_integers(bits: int) -> st.SearchStrategy[int]:
    """Return a strategy of unsigned integers of `bits` bits. Zero, all ones and single bits are frequent."""
    edges = [0, 1, (1 << bits) - 1, *(1 << bit for bit in range(bits))]
    return st.sampled_from(edges) | st.integers(0, (1 << bits) - 1)


# Random values.


def _number(random: Random, bits: int) -> int:
    return random.choice([0, (1 << bits) - 1, random.getrandbits(bits), random.getrandbits(bits)]) if bits else 0


def random_location(random: Random, config: SPUConfig) -> Location:
    """Return any instruction address, in any Exception level and Security state that `config` has."""
    nse = random.getrandbits(1) if config.rme else 0
    return Location(_number(random, 56), random.getrandbits(2), random.getrandbits(1), nse)


@cache  # Amaranth takes milliseconds to build the port's signature.
def pe_bits(config: SPUConfig) -> Mapping[str, int]:
    """Return the width in bits of each member of the port that carries the state of the PE."""
    return {name: Shape.cast(member.shape).width for name, member in PEStateSignature(config).members.items()}


def random_pe(random: Random, config: SPUConfig) -> PEState:
    """Return any state of the PE. In most of them the owning Security state is the current one."""
    bits = random.getrandbits
    state = {name: bits(64 if name.startswith("hdfg") else width) for name, width in pe_bits(config).items()}
    for name in ("debug", "aarch32"):
        state[name] = int(random.random() < 0.1)
    state["count_enabled"] = int(random.random() < 0.9)
    if config.el2:
        state["mdcr_el2_e2pb"] = random.choice([0, 0, 0, 1, 2, 3])
        state["hcr_el2_tge"] = bits(1) & bits(1)
    if config.ecv_poff:
        state["cnthctl_el2_ecv"] |= bits(1)
    if config.el3 and random.random() < 0.8:
        state["ns"] = state["mdcr_el3_nspb"] >> 1
        if config.rme:
            state["nse"] = state["ns"] & state["mdcr_el3_nspbe"]
    return PEState(**state)


def with_controls(pe: PEState, other: PEState) -> PEState:
    """Return the state `pe`, with the registers that control profiling as in `other`."""
    return replace(pe, **{name: getattr(other, name) for name in PROFILING_CONTROLS})


def _random_vectors(random: Random, config: SPUConfig) -> Vectors:
    """Return vectors of any size. Sizes next to those that have an encoding are frequent."""
    bits = random.getrandbits
    if not config.scalable:
        return Vectors()
    size = random.choice([bits(12), 1 << random.randrange(12), (1 << random.randrange(12)) + 1])
    vectors = Vectors(sve=bits(1), predicated=bits(1), gather_scatter=bits(1), bits=size)
    if config.sme:
        vectors = replace(vectors, sme=bits(1) & bits(1))
    if not config.spe_sme:
        return vectors
    tile = random.choice([bits(19), 1 << random.randrange(19), (1 << random.randrange(18)) + 1])
    return replace(
        vectors,
        tile=bits(1),
        whole_array=bits(1) & bits(1),
        bits=random.choice([size, tile]),
        count=random.choice([1, 1, 2, 3, 4, 16, bits(5)]),
    )


def random_operation(random: Random, config: SPUConfig) -> Operation:
    """Return an operation with any combination of facts that a core may report, plausible or not.

    A branch is neither load nor store, unless it accesses the Guarded control stack, even if `config` does not
    implement FEAT_GCS. Facts of features that `config` does not implement are random.
    """
    bits = random.getrandbits
    facts = {name: bits(1) for name in Facts.__slots__}
    facts |= {name: int(random.random() < 0.15) for name in RARE}
    facts |= dict(zip(("load", "store", "branch"), random.choice(KINDS), strict=True))
    facts |= {"retired": int(random.random() < 0.9), "exception": int(random.random() < 0.1)}
    if random.random() < 0.5 and config.mops and facts["memory_copy"]:
        facts |= {"load": 1, "store": 1}
    if facts["branch"] and not facts["gcs"]:
        facts |= {"load": 0, "store": 0}
    return Operation(
        facts=Facts(**facts),
        events=_number(random, 8 * config.events_bytes),
        pc=_number(random, 56),
        target=random_location(random, config),
        va=_number(random, 64),
        pa=_number(random, 56),
        pa_ns=bits(1),
        pa_nse=bits(1) if config.rme else 0,
        pa_checked=bits(1) if config.mte else 0,
        pa_tag=bits(4) if config.mte else 0,
        data_source=_number(random, 8 * config.data_source_bytes),
        vectors=_random_vectors(random, config),
        imp_counter=_number(random, config.counter_bits) if config.imp_counter else 0,
        imp_address=_number(random, 64) if config.imp_address else 0,
    )


def random_sample(random: Random, config: SPUConfig) -> Sample:
    """Return a random operation with random latencies and random collection permissions."""

    def context(packet: Packet) -> int | None:
        return random.choice([None, random.getrandbits(32)]) if packet in config.layout.packets else None

    def latency() -> int:
        return random.choice([random.randrange(40), random.getrandbits(config.counter_bits + 1)])

    return Sample(
        start=Start(
            el=random.getrandbits(2),
            ns=random.getrandbits(1),
            nse=random.getrandbits(1) if config.rme else 0,
            contextidr_el1=context(Packet.CONTEXT_EL1),
            contextidr_el2=context(Packet.CONTEXT_EL2),
            timestamp=random.choice([None, random.getrandbits(64)]),
            collect_pa=random.choice([False, True]),
            collect_nv2_va=random.choice([False, True]),
        ),
        operation=random_operation(random, config),
        previous_target=random.choice([None, random_location(random, config)]) if config.pbt else None,
        total=latency(),
        issue=latency(),
        translation=latency(),
        alternate_issue=latency() if config.altclk else 0,
    )


def uniform_samples(config: SPUConfig) -> st.SearchStrategy[Sample]:
    """Return a strategy of samples from `random_sample`.

    They are uniform, and do not shrink: Hypothesis would prefer small values to random ones.
    """
    return st.integers(0, (1 << 32) - 1).map(lambda seed: random_sample(Random(seed), config))


def random_registers(random: Random, config: SPUConfig, sample: Sample) -> Registers:
    """Return registers with any filters enabled.

    Most settings are near those that `sample` passes. Some select nothing, and some require the same event to be both
    set and not set.
    """
    bits = random.getrandbits
    sampled = events(config, sample)
    one = 1 << random.choice(sorted(config.events))
    latency = saturate(config, sample.total) + random.randint(-1, 1)
    masks = random.choice([0, bits(5), bits(5) & bits(5)])
    values = {
        "PMSFCR_EL1": bits(5) | bits(5) << PMSFCR_EL1.fields["B"].lsb | masks << PMSFCR_EL1.fields["Bm"].lsb,
        "PMSEVFR_EL1": random.choice([0, sampled, sampled & bits(64), sampled & bits(64), one, one, bits(64)]),
        "PMSNEVFR_EL1": random.choice([0, bits(64) & ~sampled, bits(64) & ~sampled, one, one, bits(64)]),
        "PMSLATFR_EL1": random.choice([0, max(latency, 0), bits(config.counter_bits)]),
        "PMSDSFR_EL1": random.choice([0, bits(64), bits(64), 1 << bits(6), (1 << 64) - 1]),
    }
    result = Registers()
    for register in config.registers:
        if register.name in values:
            result.write(config, register, values[register.name])
    return result
