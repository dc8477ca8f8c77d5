# amaranth: UnusedElaboratable=no

"""Tests of the APB4 completer, and of the Verilog of shells with the bus models of cocotbext-axi."""

import shutil
from collections import deque
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any

import pytest

from spurtle.config import CONFIGS
from spurtle.export import verilog
from spurtle.gateware.spu import SPU
from spurtle.interface.sysreg import ACCESS_LATENCY, AccessOutcome
from spurtle.shell.apb4 import APB4, APB4Completer
from spurtle.shell.axi4 import AXI4Write
from spurtle.shell.shell import Shell
from tests.support.cocotb_shell import SHELLS, ObservedShell
from tests.support.gateware import Bench, cycle
from tests.support.seeds import SEED
from tests.support.simulator import run_icarus, run_verilator
from tests.support.tiers import configurations

# APB4.


@dataclass
class Registers:
    """A model of the register port. Some accesses are UNDEFINED or trapped."""

    values: dict[int, int]
    outcomes: dict[tuple[int, bool], AccessOutcome]
    accesses: list[tuple[int, bool, int]] = field(default_factory=list)
    _answers: deque[tuple[int, AccessOutcome]] = field(
        default_factory=lambda: deque([(0, AccessOutcome.UNDEFINED)] * ACCESS_LATENCY)
    )

    def observe(self, valid: int, write: int, encoding: int, wdata: int) -> None:
        """Observe the port in a cycle."""
        answer = (0, AccessOutcome.UNDEFINED)
        if valid:
            self.accesses.append((encoding, bool(write), wdata if write else 0))
            outcome = self.outcomes.get((encoding, bool(write)), AccessOutcome.VALUE)
            if outcome is AccessOutcome.VALUE and write:
                self.values[encoding] = wdata
            answer = (self.values[encoding] if outcome is AccessOutcome.VALUE and not write else 0, outcome)
        self._answers.append(answer)
        self._answers.popleft()

    @property
    def answer(self) -> tuple[int, AccessOutcome]:
        """Read data and outcome of the access `ACCESS_LATENCY` cycles before."""
        return self._answers[0]


class Requester:
    """An APB4 requester, with the model of the registers."""

    def __init__(self, ctx: Any, dut: APB4Completer, registers: Registers, random: Random):
        self._ctx, self._dut, self._registers, self._random = ctx, dut, registers, random

    async def _cycle(self, *, psel: int, penable: int, write: int, address: int, data: int, strobe: int) -> Any:
        apb, port = self._dut.apb, self._dut.sysreg
        rdata, outcome = self._registers.answer
        inputs = [
            (apb.psel, psel), (apb.penable, penable), (apb.pwrite, write), (apb.paddr, address), (apb.pwdata, data),
            (apb.pstrb, strobe), (port.rdata, rdata), (port.outcome, outcome),
        ]  # fmt: skip
        pready, pslverr, prdata, valid, pwrite, op1, crn, crm, op2, wdata = await cycle(
            self._ctx, inputs, apb.pready, apb.pslverr, apb.prdata,
            port.valid, port.write, port.op1, port.crn, port.crm, port.op2, port.wdata,
        )  # fmt: skip
        assert not (pready or valid) or (psel and penable), "activity outside the access phase"
        assert pready or not pslverr
        self._registers.observe(valid, pwrite, op1 << 11 | crn << 7 | crm << 3 | op2, wdata)
        return pready, pslverr, prdata

    async def transfer(self, address: int, *, write: bool = False, data: int = 0, strobe: int = 0) -> tuple[int, ...]:
        """Make a transfer. Return read data, PSLVERR and the number of cycles of the access phase."""
        what = {"write": write, "address": address, "data": data, "strobe": strobe}
        while self._random.random() < 0.3:
            await self._cycle(psel=0, penable=self._random.getrandbits(1), **what)
        await self._cycle(psel=1, penable=0, **what)
        for cycles in range(1, 10):
            pready, pslverr, prdata = await self._cycle(psel=1, penable=1, **what)
            if pready:
                return prdata, pslverr, cycles
        raise AssertionError("the transfer does not end")


def merge(value: int, data: int, strobe: int) -> int:
    """Return `value` with the strobed bytes replaced by those of `data`."""
    mask = sum(0xFF << 8 * byte for byte in range(8) if strobe >> byte & 1)
    return value & ~mask | data & mask


def test_apb_accesses_each_register_once() -> None:
    bench = Bench(dut := APB4Completer())

    async def scenario(ctx: Any, seed: int) -> None:
        random = Random(f"{SEED} {seed}")
        encodings = random.sample(range(1 << 14), 8)
        registers = Registers(
            {encoding: random.getrandbits(64) for encoding in encodings},
            {
                (encoding, write): random.choice(
                    [AccessOutcome.UNDEFINED, AccessOutcome.TRAP_EL2, AccessOutcome.TRAP_EL3]
                )
                for encoding in encodings
                for write in (False, True)
                if random.random() < 0.15
            },
        )
        requester = Requester(ctx, dut, registers, random)
        upper = low = low_strobe = 0
        for _ in range(300):
            encoding, high, write = random.choice(encodings), random.getrandbits(1), random.getrandbits(1)
            data, strobe = random.getrandbits(32), random.choice([15, 15, random.getrandbits(4)])
            registers.accesses.clear()
            before = registers.values[encoding]
            address = encoding << 3 | high << 2 | random.getrandbits(2)
            value, error, cycles = await requester.transfer(address, write=bool(write), data=data, strobe=strobe)
            reads, writes = (
                registers.outcomes.get((encoding, w), AccessOutcome.VALUE) is AccessOutcome.VALUE for w in (0, 1)
            )
            if high != write:
                assert (registers.accesses, error, cycles) == ([], 0, 1)
                if write:
                    low, low_strobe = data, strobe
                else:
                    assert value == upper
            elif not write:
                shown = before if reads else 0
                assert registers.accesses == [(encoding, False, 0)]
                assert (value, error, cycles) == (shown & 0xFFFF_FFFF, not reads, 1 + ACCESS_LATENCY)
                upper = shown >> 32
            else:
                all_strobes = low_strobe | strobe << 4
                new = merge(before, low | data << 32, all_strobes)
                expected = [(encoding, False, 0)] if all_strobes != 255 else []
                if all_strobes == 255 or reads:
                    expected.append((encoding, True, new))
                assert registers.accesses == expected
                assert error == (not writes or (all_strobes != 255 and not reads))
                assert registers.values[encoding] == (before if error else new)
                assert cycles == 1 + ACCESS_LATENCY * len(expected)
                low_strobe = 0

    for seed in range(4):
        try:
            bench.run(lambda ctx, seed=seed: scenario(ctx, seed))
        except AssertionError as failed:
            raise AssertionError(f"with seed {seed}: {failed}") from failed


# Shells.


@cache
def shell(name: str) -> verilog.Verilog:
    return verilog.generate(ObservedShell(SHELLS[name]), f"shell_{name}")


def test_arguments_out_of_range() -> None:
    with pytest.raises(ValueError, match=r"^shell must be axi4 or axi4-apb, not 'ahb'$"):
        Shell(CONFIGS["minimal"], "ahb")


@pytest.mark.parametrize("name", configurations([*SHELLS], fast=["packed"]))
def test_the_ports_of_a_shell(name: str) -> None:
    """The buses replace ports of the SPU."""
    config = SHELLS[name].config
    apb = SHELLS[name].shell == "axi4-apb"
    replaced = ("write__", "sysreg__") if apb else ("write__",)
    plain = {port.name for port in verilog.ports(SPU(config)) if not port.name.startswith(replaced)}
    buses = {"m_axi_": AXI4Write(config), **({"s_apb_": APB4()} if apb else {})}
    added = {f"{prefix}{member}" for prefix, bus in buses.items() for member in bus.members}
    assert {port.name for port in shell(name).ports} == plain | added | {"observed_beat", "observed_transfer"}


@pytest.mark.parametrize("name", configurations([*SHELLS], fast=[]))
def test_the_verilog_of_a_shell(name: str) -> None:
    # Icarus Verilog runs slower than Verilator, but needs less time to compile, which dominates here.
    run = run_icarus if shutil.which("iverilog") else run_verilator
    run(shell(name), "tests.support.cocotb_shell", {"SPURTLE_SHELL": name, "SPURTLE_ROUNDS": "8"})
