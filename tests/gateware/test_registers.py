"""Tests of the System registers and their port: encodings, accesses and implemented bits."""

from collections import Counter, deque
from itertools import product
from random import Random
from typing import Any

import pytest
from amaranth.hdl import Value

from configurations import FOR_BLOCKS
from spurtle.arch import PMBIDR_EL1, PMSCR_EL1, PMSCR_EL2, PMSCR_EL12, PMSIDR_EL1, REGISTERS, Register
from spurtle.config import SPUConfig
from spurtle.gateware.registers import RegisterFile
from spurtle.interface.sysreg import ACCESS_LATENCY, AccessOutcome, SystemRegisterSignature
from spurtle_sim.cosim.pack import pe_members
from spurtle_sim.model.pe import PEState, programmable
from spurtle_sim.model.registers import Registers as ReferenceRegisters
from spurtle_sim.model.registers import access
from tests.support.gateware import Bench, cycle, random_pe
from tests.support.seeds import SEED
from tests.support.tiers import configurations, tiers

ONES = (1 << 64) - 1
EL0, EL1, EL2, EL3 = (PEState(el=el) for el in range(4))
"""States of the PE in which Non-secure EL1 owns the buffer and no access traps."""
Encoding = tuple[int, int, int, int]
STORED_ELSEWHERE = {"PMSICR_EL1": "pmsicr", "PMBPTR_EL1": "pmbptr", "PMBSR_EL1": "pmbsr", "IMP_PMSRNDR_EL1": "pmsrndr"}
PORTS = {"PMSCR_EL2": "pmscr_el2"}
"""Ports whose names are not those of the registers without `_EL1`."""


class RegistersBench(Bench):
    """A `RegisterFile` in the simulator."""

    def __init__(self, config: SPUConfig):
        self.config = config
        self.dut = RegisterFile(config)
        self.names = [register.name for register in config.registers if not register.read_only]
        super().__init__(self.dut)

    async def access(
        self, ctx: Any, encoding: Encoding, *, write: int | None = None, pe: PEState = EL3
    ) -> tuple[AccessOutcome, int, set[str]]:
        """Access a register. Return outcome, read data and the write strobes that were asserted when it was performed.

        No strobe is asserted in the cycles before, and `rdata` is zero until the result is valid.
        """
        dut = self.dut
        strobes = {name: getattr(dut, f"{name}_write") for name in (*STORED_ELSEWHERE.values(), "pmblimitr")}
        members = pe_members(self.config, pe)
        inputs = [
            *((Value.cast(getattr(dut.pe, name)), value) for name, value in members.items()),
            (dut.port.valid, 1),
            (dut.port.write, write is not None),
            *zip((dut.port.op1, dut.port.crn, dut.port.crm, dut.port.op2), encoding, strict=True),
            (dut.port.wdata, write or 0),
        ]
        assert not any(await cycle(ctx, inputs, *strobes.values()))
        idle = [(dut.port.valid, 0), (dut.port.wdata, ~(write or 0) & ONES)]
        for _ in range(ACCESS_LATENCY - 2):
            assert not any(await cycle(ctx, idle, *strobes.values(), dut.port.rdata))
        values = await cycle(ctx, idle, *strobes.values())
        asserted = {name for name, strobe in zip(strobes, values, strict=True) if strobe}
        return ctx.get(dut.port.outcome), ctx.get(dut.port.rdata), asserted

    def stored(self, ctx: Any) -> dict[str, int]:
        """Return the values of the registers that the component stores."""
        return {
            name: ctx.get(getattr(self.dut, PORTS.get(name, name.lower()[:-4])).as_value())
            for name in self.names
            if name not in STORED_ELSEWHERE
        }


@pytest.fixture(scope="module", params=configurations(FOR_BLOCKS, fast=["minimal", "v1p4", "everything"]))
def bench(request: pytest.FixtureRequest) -> RegistersBench:
    return RegistersBench(request.param)


def encoding(register: Register) -> Encoding:
    return register.op1, register.crn, register.crm, register.op2


ENCODINGS = {encoding(register): register for register in REGISTERS}
SOME_ENCODINGS = [
    (op1, crn, crm, op2)
    for op1, crn, crm, op2 in product(range(8), range(16), range(16), range(8))
    if crn == 9 or (op1 in (0, 4) and crm in (9, 10))
]
"""All encodings with the CRn of the architectural registers, and those that differ only in CRn from a register here."""


def test_the_encoding_of_the_random_number_register() -> None:
    """IMP_PMSRNDR_EL1 is S3_0_C15_C10_2. CRn 11 and 15 are for IMPLEMENTATION DEFINED registers (D24.1)."""
    assert ENCODINGS[0, 15, 10, 2].name == "IMP_PMSRNDR_EL1"
    assert ENCODINGS[4, 9, 9, 0].name == "PMSCR_EL2"
    assert {crn for _, crn, _, _ in ENCODINGS} == {9, 15}


def test_the_documented_latency_of_an_access() -> None:
    assert f" {ACCESS_LATENCY} cycles after `valid`" in (SystemRegisterSignature.__doc__ or "")


def test_every_register_is_zero_after_reset(bench: RegistersBench) -> None:
    """The exception is PMSCR_EL1.PCT without EL2, which reads as 0b01."""
    pct = 0 if bench.config.el2 else 0x40

    async def scenario(ctx: Any) -> None:
        assert set(bench.stored(ctx).values()) == {0}
        for register in bench.config.registers:
            if not register.read_only:
                value = pct if register is PMSCR_EL1 else 0
                assert await bench.access(ctx, encoding(register)) == (AccessOutcome.VALUE, value, set())

    bench.run(scenario)


@pytest.mark.parametrize("step", tiers(fast=[5], long=[1]))
def test_other_encodings_are_undefined(bench: RegistersBench, step: int) -> None:
    """Every fifth encoding has all values of each field. The proofs have all encodings."""

    async def scenario(ctx: Any) -> None:
        for where in {*SOME_ENCODINGS[::step], *ENCODINGS}:
            register = ENCODINGS.get(where)
            if register not in bench.config.registers:
                register = None
            outcome, value, asserted = await bench.access(ctx, where)
            assert outcome == (AccessOutcome.VALUE if register else AccessOutcome.UNDEFINED), where
            assert register or value == 0
            assert not asserted
            if register is None:
                assert await bench.access(ctx, where, write=ONES) == (AccessOutcome.UNDEFINED, 0, set()), where
        assert set(bench.stored(ctx).values()) == {0}

    bench.run(scenario)


@pytest.mark.parametrize("register", REGISTERS, ids=lambda register: register.name)
def test_accesses_at_el0_are_undefined(bench: RegistersBench, register: Register) -> None:
    async def scenario(ctx: Any) -> None:
        for write in (None, ONES):
            assert await bench.access(ctx, encoding(register), write=write, pe=PEState(el=0)) == (
                AccessOutcome.UNDEFINED,
                0,
                set(),
            )
        assert set(bench.stored(ctx).values()) == {0}

    bench.run(scenario)


def test_a_register_of_el2_is_undefined_at_el1(bench: RegistersBench) -> None:
    async def scenario(ctx: Any) -> None:
        where = encoding(PMSCR_EL2)
        for write in (None, ONES):
            assert await bench.access(ctx, where, write=write, pe=EL1) == (AccessOutcome.UNDEFINED, 0, set())
        assert set(bench.stored(ctx).values()) == {0}
        outcome = AccessOutcome.VALUE if PMSCR_EL2 in bench.config.registers else AccessOutcome.UNDEFINED
        for pe in (EL2, EL3):
            value = bench.config.writable(PMSCR_EL2) & (ONES if pe == EL2 else 0b10_1000)
            assert (await bench.access(ctx, where, write=ONES if pe == EL2 else value, pe=pe))[0] == outcome
            assert await bench.access(ctx, where, pe=pe) == (outcome, value, set())
            assert (await bench.access(ctx, where, pe=EL1))[:2] == (AccessOutcome.UNDEFINED, 0)

    bench.run(scenario)


def test_no_register_changes_without_an_access(bench: RegistersBench) -> None:
    async def scenario(ctx: Any) -> None:
        dut = bench.dut
        inputs = [(dut.pe.el, 1), (dut.port.write, 1), (dut.port.crn, 9), (dut.port.crm, 9), (dut.port.wdata, ONES)]
        for _ in range(ACCESS_LATENCY):
            await cycle(ctx, inputs)
        assert ctx.get(dut.port.rdata) == 0
        assert set(bench.stored(ctx).values()) == {0}

    bench.run(scenario)


@pytest.mark.parametrize("register", [register for register in REGISTERS if register.read_only], ids=lambda r: r.name)
def test_a_write_to_an_id_register_is_undefined(bench: RegistersBench, register: Register) -> None:
    async def scenario(ctx: Any) -> None:
        assert await bench.access(ctx, encoding(register), write=ONES) == (AccessOutcome.UNDEFINED, 0, set())

    bench.run(scenario)


def test_id_registers(bench: RegistersBench) -> None:
    async def scenario(ctx: Any) -> None:
        # ProfilingControl drives `programmable`.
        owned = (0, 1) if bench.config.several_owners else (1,)
        for pe, may_program in product((EL1, EL2, EL3), owned):
            if owned != (1,):
                ctx.set(bench.dut.programmable, may_program)
            assert (await bench.access(ctx, encoding(PMSIDR_EL1), pe=pe))[1] == bench.config.pmsidr
            _, value, _ = await bench.access(ctx, encoding(PMBIDR_EL1), pe=pe)
            assert value == bench.config.pmbidr | (0 if may_program else PMBIDR_EL1.fields["P"].mask)

    bench.run(scenario)


def test_pct_reads_as_physical_time_without_el2(bench: RegistersBench) -> None:
    """PMSCR_EL1.PCT reads as 0b01 and ignores writes."""
    where = encoding(PMSCR_EL1)

    async def scenario(ctx: Any) -> None:
        for written in (0, ONES):
            await bench.access(ctx, where, write=written)
            _, value, _ = await bench.access(ctx, where)
            expected = written & bench.config.writable(PMSCR_EL1)
            assert value == (expected if bench.config.el2 else expected & ~0xC0 | 0x40)

    bench.run(scenario)


@pytest.mark.parametrize("writes", tiers(fast=[60], long=[200]))
def test_unimplemented_bits_read_as_zero(bench: RegistersBench, writes: int) -> None:
    """Random writes, after each of which all registers agree with the reference: a write changes one register."""
    random = Random(SEED)
    reference = ReferenceRegisters()
    writable = [register for register in bench.config.registers if not register.read_only]

    async def scenario(ctx: Any) -> None:
        for name, port in STORED_ELSEWHERE.items():
            value = random.getrandbits(64)
            setattr(reference, name, value)
            ctx.set(getattr(bench.dut, port), value)
        for number in range(writes):
            register = writable[number % len(writable)]
            data = random.choice([0, ONES, random.getrandbits(64)])
            pe = random.choice([EL2, EL3] if register.op1 == 4 else [EL1, EL2, EL3])
            outcome, value, asserted = await bench.access(ctx, encoding(register), write=data, pe=pe)
            strobe = {**STORED_ELSEWHERE, "PMBLIMITR_EL1": "pmblimitr"}.get(register.name)
            assert (outcome, value) == (AccessOutcome.VALUE, 0)
            assert asserted == ({strobe} if strobe else set())
            if register.name not in STORED_ELSEWHERE:
                reference.write(bench.config, register, data)
            for other in writable:
                expected = reference.read(bench.config, other, PEState())
                assert (await bench.access(ctx, encoding(other)))[:2] == (AccessOutcome.VALUE, expected), other.name
            assert bench.stored(ctx) == {
                name: getattr(reference, name) for name in bench.names if name not in STORED_ELSEWHERE
            }

    bench.run(scenario)


def test_an_access_in_every_cycle(bench: RegistersBench) -> None:
    """Accesses in random states of the PE have the results of the reference `ACCESS_LATENCY` cycles later.

    A read returns the value in the cycle before that one, also of a register that changes in every cycle.
    """
    config, dut = bench.config, bench.dut
    random = Random(SEED)
    reference = ReferenceRegisters()
    outcomes = Counter[tuple[str, bool]]()

    async def scenario(ctx: Any) -> None:
        checked: deque[tuple[Any, ...] | None] = deque([None] * (ACCESS_LATENCY - 1))
        answer = None
        for number in range(1000):
            register = random.choice((*REGISTERS, PMSCR_EL12))
            write, data = random.getrandbits(1), random.getrandbits(64)
            pe = random_pe(random, config)
            valid = random.random() < 0.9
            inputs = [
                *((Value.cast(getattr(dut.pe, name)), value) for name, value in pe_members(config, pe).items()),
                (dut.port.valid, valid),
                (dut.port.write, write),
                *zip((dut.port.op1, dut.port.crn, dut.port.crm, dut.port.op2), encoding(register), strict=True),
                (dut.port.wdata, data),
            ]
            for name, port in STORED_ELSEWHERE.items():
                setattr(reference, name, random.getrandbits(64))
                inputs.append((getattr(dut, port), getattr(reference, name)))
            if config.several_owners:
                inputs.append((dut.programmable, programmable(config, pe)))
            outputs = await cycle(ctx, inputs, dut.port.outcome, dut.port.rdata)
            if answer:
                assert (outputs[0].value, outputs[1]) == answer, number
            answer = None
            if performed := checked.popleft():
                outcome, target, was_write, value, then = performed
                reads = target and not was_write
                answer = outcome, reference.read(config, target, then) if reads else 0
                outcomes[outcome.name, was_write] += 1
                if target and was_write and target.name not in STORED_ELSEWHERE:
                    reference.write(config, target, value)
            checked.append((*access(config, register, write, pe), write, data, pe) if valid else None)

    bench.run(scenario)
    expected = {"VALUE", "UNDEFINED"} | ({"TRAP_EL2"} if config.el2 else set())
    assert {*outcomes} == {*product(expected | ({"TRAP_EL3"} if config.el3 else set()), (0, 1))}
