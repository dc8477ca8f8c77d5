"""Permission to profile and to collect, against the reference, for every combination of what it depends on."""

from itertools import product
from typing import Any

import pytest
from gateware import VARIANTS, Bench

from spurtle.arch import PMBLIMITR_EL1, PMBSR_EL1, PMSCR_EL1
from spurtle.control import Control
from spurtle_sim.reference import control
from spurtle_sim.reference.control import PEState
from spurtle_sim.reference.registers import Registers

BITS = ("E0SPE", "E1SPE", "CX", "PA", "TS", "PCT")


@pytest.mark.parametrize("name", ["minimal", "v1p4"])
def test_every_combination(name: str) -> None:
    config = VARIANTS[name]
    dut = Control(config)
    answers = []

    async def scenario(ctx: Any) -> None:
        nses = range(2) if config.rme else range(1)
        for el, nse, ns, debug, aarch32, enable, stopped, *bits in product(
            range(4), nses, *[range(2)] * (5 + len(BITS))
        ):
            registers = Registers(
                PMSCR_EL1=PMSCR_EL1.pack(**dict(zip(BITS, bits, strict=True))),
                PMBLIMITR_EL1=PMBLIMITR_EL1.pack(E=enable),
                PMBSR_EL1=PMBSR_EL1.pack(S=stopped),
            )
            pe = PEState(el=el, ns=ns, nse=nse, debug=debug, aarch32=aarch32)
            for state in (dut.pe, *([dut.branch] if config.pbt else [])):
                ctx.set(state.el, el)
                ctx.set(state.ns, ns)
                ctx.set(state.aarch32, aarch32)
                if config.rme:
                    ctx.set(state.nse, nse)
            ctx.set(dut.pe.debug, debug)
            ctx.set(dut.pmscr.as_value(), registers.PMSCR_EL1)
            ctx.set(dut.running, enable and not stopped)

            enabled = ctx.get(dut.enabled)
            assert enabled == control.profiling_enabled(registers, pe), (registers, pe)
            if config.pbt:
                told = control.branch_profiled(registers, el=el, ns=ns, nse=nse, aarch32=aarch32)
                assert ctx.get(dut.branch_enabled) == told, (registers, pe)
            collect = ctx.get(dut.collect)
            assert collect.context_el1 == control.collect_contextidr_el1(registers, pe), (registers, pe)
            assert collect.timestamp == control.collect_timestamp(registers), (registers, pe)
            assert collect.pa == control.collect_physical_address(registers), (registers, pe)
            assert (collect.context_el2, collect.nv2_va) == (0, 0)
            answers.append(enabled)

    Bench(dut, clocked=False).run(scenario)
    # E0SPE at EL0 and E1SPE at EL1, in Non-secure AArch64 state outside of Debug state: half of all PMSCR_EL1 each.
    assert sum(answers) == 2 * (1 << len(BITS)) // 2
