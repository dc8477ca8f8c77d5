"""Tests of the controls of profiling against the reference, in random states of the PE and of registers.

They are the owner of the Profiling Buffer, whether profiling is enabled, the collection permissions and the offset of
the timestamp. The registers of a state are set one cycle before the state of its operation.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from amaranth.hdl import Cat, Const, Mux

from configurations import FOR_SPUS, distinct
from spurtle.arch import PMBLIMITR_EL1, PMBSR_EL1, PMSCR_EL1, PMSCR_EL2
from spurtle.config import SPUConfig
from spurtle.gateware.control import ProfilingControl
from spurtle_sim.model import control
from spurtle_sim.model.pe import Owner, PEState, programmable
from spurtle_sim.model.registers import Registers
from tests.support.gateware import Bench, cycle, pe_bits, random_pe, with_controls
from tests.support.seeds import SEED
from tests.support.tiers import configurations

CONFIGS = [*distinct(FOR_SPUS.values(), "el2 el3 sel2 ecv ecv_poff rme nv2 pbt")]
STATES = 4000
"""Number of states in each configuration."""

ALL = (1 << 64) - 1


def random_registers(random: Random, config: SPUConfig) -> Registers:
    """Return random values of the registers that control profiling. The buffer runs in most of them."""
    registers = Registers()
    registers.write(config, PMSCR_EL1, random.getrandbits(8))
    registers.write(config, PMSCR_EL2, random.getrandbits(8))
    registers.write(config, PMBLIMITR_EL1, PMBLIMITR_EL1.pack(E=random.random() < 0.9))
    registers.write(config, PMBSR_EL1, PMBSR_EL1.pack(S=random.random() < 0.1))
    return registers


class ControlBench(Bench):
    """A `ProfilingControl` in the simulator, compared with the reference in each state."""

    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = dut = ProfilingControl(config)
        self.coverage = Counter[tuple[Any, ...]]()
        self.owners = [Owner(0, 0, 1), Owner(0, 0, 1)]  # reset: Secure EL1
        self.bits = pe_bits(config)
        self.branch = ["el", "ns", "aarch32", *(["nse"] if config.rme else [])]
        # One assignment: the simulator evaluates the design after each.
        self.inputs = Cat(
            *(getattr(dut.pe, name) for name in self.bits),
            dut.pmscr.as_value()[:8],
            *([dut.pmscr_el2.as_value()[:8]] if config.el2 else []),
            *([getattr(dut.branch, name) for name in self.branch] if config.pbt else []),
            dut.running,
        )
        self.outputs = (
            dut.enabled,
            dut.collect,
            Mux(dut.subtract_offset, dut.offset, 0) if config.el2 else Const(0),
            getattr(dut, "programmable", Const(1)),
            dut.branch_enabled if config.pbt else Const(0),
            getattr(dut, "new_owner", Const(0)),
        )
        super().__init__(dut)

    async def drive(
        self, ctx: Any, registers: Registers, pe: PEState, other: PEState, following: tuple[Registers, PEState]
    ) -> tuple[Any, ...]:
        """Drive a state of the PE with the registers of the next state. Return the outputs."""
        config = self.config
        later, following_pe = following
        driven = with_controls(pe, following_pe)
        values = [
            *((getattr(driven, name), width) for name, width in self.bits.items()),
            (later.PMSCR_EL1, 8),
            *([(later.PMSCR_EL2, 8)] if config.el2 else []),
            *([(getattr(other, name), self.bits[name]) for name in self.branch] if config.pbt else []),
            (control.buffer_enabled(registers), 1),
        ]
        self.owners.append(control.owner(config, driven))
        return await cycle(ctx, [(self.inputs, packed(values))], *self.outputs)

    async def change(self, ctx: Any, registers: Registers, pe: PEState) -> None:
        """Check the cycle after the registers were driven: nothing is profiled if they changed the owner."""
        outputs = await self.drive(ctx, registers, pe, pe, (registers, pe))
        enabled, branch_enabled, new_owner = outputs[0], outputs[-2], outputs[-1]
        if self.config.several_owners:
            assert new_owner == (self.owners[-2] != self.owners[-3]), (registers, pe)
        if new_owner:
            assert not enabled, (registers, pe)
            assert not branch_enabled, (registers, pe)
        self.coverage["new owner", new_owner] += 1

    async def check(
        self, ctx: Any, registers: Registers, pe: PEState, other: PEState, following: tuple[Registers, PEState]
    ) -> None:
        """Check the outputs in a state of the PE whose registers were driven in the two cycles before.

        `other` is the state in which a branch was executed. `following` are the registers of the next state.
        """
        config = self.config
        outputs = await self.drive(ctx, registers, pe, other, following)
        enabled, collect, offset, may_program, branch_enabled, new_owner = outputs
        where = registers, pe
        # Without EL3 the owner has the Security state of the PE, which is random here.
        assert new_owner == (config.several_owners and self.owners[-2] != self.owners[-3]), where
        assert enabled == (control.profiling_enabled(config, registers, pe) and not new_owner), where
        if enabled:
            self.check_collection(registers, pe, collect, offset)
            self.coverage["at", control.owner(config, pe), pe.el] += 1
        if pe.el:  # an access from EL0 is UNDEFINED
            assert may_program == programmable(config, pe), where
        if config.pbt:
            at = {name: getattr(other, name) for name in ("el", "ns", "nse", "aarch32")}
            profiled = control.branch_profiled(config, registers, pe, **at) and not new_owner
            assert branch_enabled == profiled, (where, at)
            self.coverage["branch", profiled] += 1
        self.coverage["programmable", may_program] += 1

    def check_collection(self, registers: Registers, pe: PEState, collect: Any, offset: int) -> None:
        """Check the collection permissions and the timestamp, which are valid while profiling is enabled."""
        config, where = self.config, (registers, pe)
        assert collect.context_el1 == control.collect_contextidr_el1(config, registers, pe), where
        assert collect.context_el2 == control.collect_contextidr_el2(config, registers, pe), where
        assert collect.pa == control.collect_physical_address(config, registers, pe), where
        assert collect.nv2_va == control.collect_nv2_va(config, registers, pe), where
        time = control.timestamp(config, registers, pe)
        assert collect.timestamp == (time is not None), where
        assert time is None or time == pe.physical_count - offset & ALL, where
        self.coverage["pa", collect.pa] += 1
        self.coverage["nv2_va", collect.nv2_va] += 1
        self.coverage["contexts", collect.context_el1, collect.context_el2] += 1
        self.coverage["offset", None if time is None else offset_name(pe, offset)] += 1


@pytest.mark.parametrize("config", configurations({config.name: config for config in CONFIGS}, fast=["v1p4"]))
def test_like_the_reference(config: SPUConfig) -> None:
    bench = ControlBench(config)

    async def scenario(ctx: Any) -> None:
        random = Random(SEED)
        states = [(random_registers(random, config), random_pe(random, config)) for _ in range(STATES + 1)]
        await bench.drive(ctx, *states[0], states[0][1], states[0])
        for (registers, pe), following in pairwise(states):
            await bench.change(ctx, registers, pe)
            await bench.check(ctx, registers, pe, random_pe(random, config), following)

    bench.run(scenario)
    missing = required_coverage(config) - bench.coverage.keys()
    assert not missing


def packed(values: Iterable[tuple[int, int]]) -> int:
    """Pack values and their widths into an integer, the first at bit 0."""
    result = at = 0
    for value, width in values:
        result |= value << at
        at += width
    return result


def offset_name(pe: PEState, offset: int) -> str:
    """Return the name of an offset of the timestamp."""
    return {pe.cntvoff_el2: "virtual", pe.cntpoff_el2: "physical", 0: "none"}[offset]


def required_coverage(config: SPUConfig) -> set[tuple[Any, ...]]:
    """Return what must occur: each owner at each Exception level that it profiles, and each permission."""
    required: set[tuple[Any, ...]] = {("pa", 0), ("pa", 1), ("programmable", 1), ("nv2_va", 0)}
    states = [(0, 0), (1, 0), *([(1, 1)] if config.rme else [])]
    required |= {("at", Owner(ns, nse, 1), el) for ns, nse in states for el in (0, 1)}
    hosts = [(ns, nse) for ns, nse in states if ns or config.sel2] if config.el2 else []
    required |= {("at", Owner(ns, nse, 2), el) for ns, nse in hosts for el in range(3)}
    if config.several_owners:
        required |= {("programmable", 0), ("new owner", 0), ("new owner", 1)}
    if config.pbt:
        required |= {("branch", False), ("branch", True)}
    required |= {("contexts", one, other) for one in (0, 1) for other in ((0, 1) if config.el2 else (0,))}
    required |= {("offset", None), ("offset", "none")}
    if config.el2:
        required.add(("offset", "virtual"))
    if config.ecv_poff:
        required.add(("offset", "physical"))
    if config.nv2:
        required.add(("nv2_va", 1))
    return required
