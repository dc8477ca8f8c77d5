"""A cocotb test of the generated Verilog of a shell, with the AXI4 and APB4 models of cocotbext-axi.

tests/shell/test_shell.py runs it in a simulator. SPURTLE_SHELL, SPURTLE_ROUNDS and SPURTLE_SEED in the environment
select the shell, the number of rounds and the seed.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import cocotb
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import FallingEdge, Lock, RisingEdge
from cocotb.utils import get_sim_time
from cocotbext.axi import ApbBus, ApbMaster, AxiResp, AxiSlaveWrite, AxiWriteBus

from configurations import FEATURES
from spurtle.arch import (
    EC,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSICR_EL1,
    PMSIDR_EL1,
    PMSIRR_EL1,
    Register,
)
from spurtle.config import SPUConfig
from spurtle.export import verilog
from spurtle.interface.memory import BeatLayout
from spurtle.interface.sysreg import ACCESS_LATENCY, AccessOutcome
from spurtle.shell.shell import Shell
from spurtle_sim.cosim.pack import operation_bits, pe_members
from spurtle_sim.model.pe import PEState
from spurtle_sim.records.decode import decode_records
from tests.support.gateware import random_operation

__all__ = ["SHELLS", "ObservedShell", "Setting"]

PAGE = 4096
FULL = PMBSR_EL1.pack(S=1, EC=EC.OTHER, MSS=1)
SYNCHRONOUS = PMBSR_EL1.pack(S=1, EC=EC.STAGE_1, MSS=0b010000, EA=1)


@dataclass(frozen=True)
class Setting:
    """A shell to be tested."""

    config: SPUConfig
    shell: str

    @property
    def outstanding(self) -> int:
        """Number of outstanding records."""
        return self.config.outstanding


PACKED = replace(FEATURES["minimal_packed"], el3=True)
"""Records of several sizes, at any byte address, that cross pages."""

SHELLS = {
    "packed": Setting(PACKED, "axi4-apb"),
    "packed_four": Setting(replace(PACKED, outstanding=4), "axi4"),
    # Records of one size, of three Security states.
    "realm": Setting(replace(FEATURES["minimal_rme"], outstanding=4), "axi4"),
}


class ObservedShell(wiring.Component):
    """A shell with further ports for the beats that its SPU writes.

    Members
    -------
    observed_beat : Out(BeatLayout)
        The beat of the SPU.
    observed_transfer : Out(1)
        Strobe: the shell accepts the beat.
    """

    def __init__(self, setting: Setting):
        self._config = setting.config
        self._shell = Shell(self._config, setting.shell)
        super().__init__(
            {
                **self._shell.signature.members,
                "observed_beat": Out(BeatLayout(self._config)),
                "observed_transfer": Out(1),
            },
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.shell = shell = self._shell
        for name, member in shell.signature.members.items():
            outer, inner = getattr(self, name), getattr(shell, name)
            if member.is_signature:
                connect(m, flipped(outer), inner)
            else:
                m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)
        beat = shell._spu.write.beat
        m.d.comb += [
            self.observed_beat.eq(beat.payload),
            self.observed_transfer.eq(beat.valid & beat.ready),
        ]
        return m


class Memory(AxiSlaveWrite):
    """Memory on AXI4.

    A burst that touches a page in `bad` receives an error response, and none of its bytes are written.
    """

    def __init__(self, dut: Any, random: Random):
        self.random = random
        self.octets: dict[int, int] = {}
        self.bad: set[int] = set()
        super().__init__(AxiWriteBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, target=self)
        self._send, self.b_channel.send = self.b_channel.send, self.answer
        for channel in (self.aw_channel, self.w_channel, self.b_channel):
            channel.set_pause_generator(self.pauses())
        self._responses = Queue[tuple[Any, int]]()
        cocotb.start_soon(self._respond())

    def pauses(self) -> Iterator[bool]:
        """Yield whether to stall. The probability changes every 100 or 400 cycles, and is often zero."""
        while True:
            share = self.random.choice([0.0, 0.0, 0.5, 0.9, 1.0])
            yield from (self.random.random() < share for _ in range(400 if share == 1.0 else 100))

    async def write(self, address: int, octets: bytes) -> None:
        if address // PAGE in self.bad:
            raise OSError("no memory")
        self.octets |= {address + n: octet for n, octet in enumerate(octets)}

    async def answer(self, b: Any) -> None:
        """Schedule a response. Further bursts are received in the meantime."""
        if b.bresp != AxiResp.OKAY:
            b.bresp = self.random.choice([AxiResp.SLVERR, AxiResp.DECERR])
        latency = self.random.choice([0, 0, 10, 60])
        self._responses.put_nowait((b, self._cycle() + latency))

    async def _respond(self) -> None:
        while True:
            b, due = await self._responses.get()
            while self._cycle() < due:
                await RisingEdge(self.clock)
            await self._send(b)

    def _cycle(self) -> int:
        return int(get_sim_time("ns")) // 10


class CoreDriver:
    """A core that executes operations and finishes those that are sampled.

    It also checks the outputs of the shell in each cycle.
    """

    def __init__(self, dut: Any, setting: Setting, random: Random):
        self.dut, self.setting, self.random = dut, setting, random
        self.config = setting.config
        self.running = self.draining = False
        self.drained = False
        self.flights: list[tuple[int, int]] = []
        """The cycle in which each sampled operation finishes, and its slot."""
        self.now = 0
        self.states = [(0, 0), (1, 0), *([(1, 1)] if self.config.rme else [])]
        self.state = (1, 0)
        """NS and NSE of the owning Security state."""
        self.owner_change_rate = 0.0
        self.change_owner_at = -1
        """The cycle in which the owning Security state changes. It is often one in which a record is accepted."""
        self.records: list[list[Any]] = []
        """Beats of each record that the SPU has written."""
        self.open_bursts = 0
        self.max_open = 0
        self.bursts: list[tuple[int, int, int]] = []
        """Address, number of words, and AWNSE and AWPROT of each burst."""
        self._offered: dict[str, list[int]] = {}
        self._words = 0
        self._last = True

    def drive(self, **values: int) -> None:
        for name, value in values.items():
            getattr(self.dut, name).value = value

    def own(self, ns: int, nse: int) -> None:
        """Let EL1 of a Security state execute and own the Profiling Buffer."""
        self.state = ns, nse
        pe = PEState(el=1, ns=ns, nse=nse, mdcr_el3_nspb=1 | ns << 1, mdcr_el3_nspbe=nse)
        self.drive(**{f"pe__{name}": value for name, value in pe_members(self.config, pe).items()})

    async def run(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            due = [flight for flight in self.flights if flight[0] <= self.now]
            if due:
                self.flights.remove(due[0])
                operation = random_operation(self.random, self.config)
                # Only the record of a retired operation holds the Security state.
                operation = replace(operation, facts=replace(operation.facts, retired=1))
                self.drive(finish__operation=operation_bits(self.config, operation))
                if self.random.random() < self.owner_change_rate:
                    self.change_owner_at = self.now + self.random.randrange(16)
            if self.now == self.change_owner_at:
                self.own(*self.random.choice([state for state in self.states if state != self.state]))
            self.drive(finish__valid=bool(due), sampling__valid=self.running, drain__request=self.draining)
            await FallingEdge(self.dut.clk)
            self._observe()
            if self.dut.sampling__sampled.value:
                self.flights.append((self.now + self.random.randrange(2, 30), 0))
            self.now += 1

    def _observe(self) -> None:
        dut = self.dut
        if dut.observed_transfer.value:
            beat = BeatLayout(self.config).from_bits(int(dut.observed_beat.value))
            if self._last:
                self.records.append([])
            self.records[-1].append(beat)
            self._last = bool(beat.last)
        self.drained = bool(dut.drain__done.value)
        if self.drained:
            assert not self.open_bursts, (
                f"cycle {self.now}: PSB CSYNC is complete, but {self.open_bursts} bursts have no response"
            )
        self._check_channel_holds("aw", "awaddr", "awlen", "awprot")
        self._check_channel_holds("w", "wdata", "wstrb", "wlast")
        if self._words:
            assert dut.m_axi_wvalid.value, f"cycle {self.now}: a gap in a burst"
        if dut.m_axi_wvalid.value and dut.m_axi_wready.value:
            self._words = 0 if dut.m_axi_wlast.value else self._words + 1
        if dut.m_axi_awvalid.value and dut.m_axi_awready.value:
            address, length, prot = (int(getattr(dut, f"m_axi_aw{name}").value) for name in ("addr", "len", "prot"))
            nse = int(dut.m_axi_awnse.value) if self.config.rme else 0
            self.bursts.append((address, length + 1, prot | nse << 3))
            self.open_bursts += 1
        self.max_open = max(self.max_open, self.open_bursts)
        self.open_bursts -= bool(dut.m_axi_bvalid.value) and bool(dut.m_axi_bready.value)
        # A packed record can cross a page.
        assert self.open_bursts <= self.setting.outstanding * (2 if self.setting.outstanding > 1 else 1)

    def _check_channel_holds(self, channel: str, *payload: str) -> None:
        """Check that a channel that is not ready still has the same payload."""

        def value(name: str) -> int:
            return int(getattr(self.dut, f"m_axi_{name}").value)

        before = self._offered.pop(channel, None)
        if value(f"{channel}valid"):
            offered = [value(name) for name in payload]
            assert before in (None, offered), f"cycle {self.now}: the payload of {channel} has changed"
            if not value(f"{channel}ready"):
                self._offered[channel] = offered
        else:
            assert before is None, f"cycle {self.now}: {channel}valid was deasserted"


class Ports:
    """Register accesses on the port `sysreg` of the SPU."""

    def __init__(self, dut: Any):
        self._dut = dut
        self._lock = Lock()

    async def access(self, register: Register, value: int | None = None) -> int:
        async with self._lock:
            dut = self._dut
            await RisingEdge(dut.clk)
            encoding = register.encoding
            dut.sysreg__op1.value, dut.sysreg__crn.value = encoding >> 11, encoding >> 7 & 15
            dut.sysreg__crm.value, dut.sysreg__op2.value = encoding >> 3 & 15, encoding & 7
            dut.sysreg__valid.value, dut.sysreg__write.value = 1, value is not None
            dut.sysreg__wdata.value = value or 0
            await RisingEdge(dut.clk)
            dut.sysreg__valid.value = 0
            for _ in range(ACCESS_LATENCY - 1):
                await RisingEdge(dut.clk)
            await FallingEdge(dut.clk)
            assert int(dut.sysreg__outcome.value) == AccessOutcome.VALUE.value, register.name
            return int(dut.sysreg__rdata.value)


class Apb:
    """Register accesses on APB4."""

    def __init__(self, dut: Any):
        self._master = ApbMaster(ApbBus.from_prefix(dut, "s_apb"), dut.clk, dut.rst)

    async def access(self, register: Register, value: int | None = None) -> int:
        read, ok = await self.transfer(register.encoding << 3, value)
        assert ok, register.name
        return read

    async def transfer(self, address: int, value: int | None = None) -> tuple[int, bool]:
        """Read or write an address. Return the read data, and whether there was no error response."""
        if value is None:
            answer = await self._master.read(address, 8)
            return int.from_bytes(answer.data, "little"), answer.resp == AxiResp.OKAY
        answer = await self._master.write(address, value.to_bytes(8, "little"))
        return 0, answer.resp == AxiResp.OKAY


class Software:
    """Software that fills a buffer, and checks the result. Writes to some pages may fail."""

    def __init__(self, core: CoreDriver, memory: Memory, registers: Ports | Apb):
        self.core, self.memory, self.registers = core, memory, registers
        self.config, self.random, self.dut = core.config, core.random, core.dut
        self.coverage = Counter[str]()

    async def cycles(self, number: int) -> None:
        """Wait for a number of cycles."""
        for _ in range(number):
            await RisingEdge(self.dut.clk)

    async def select_often(self) -> None:
        """Write PMSICR_EL1 often, so that operations are sampled often."""
        while True:
            await self.registers.access(PMSICR_EL1, self.random.randrange(1, 40))
            await self.cycles(self.random.choice([1, 10, 40]))

    async def fill(self, *, faulty: bool) -> None:
        """Fill a buffer and check it. With `faulty`, writes to some of its pages fail."""
        random, core, memory, access = self.random, self.core, self.memory, self.registers.access
        align, size = self.config.layout.align, self.config.layout.max_size
        page = random.getrandbits(40)
        self.pointer = (page + 1) * PAGE - random.randrange(3 * size // align) * align
        self.limit = (page + random.choice([1, 2, 2])) * PAGE
        memory.bad = {page + random.choice([0, 1, 1, 1])} if faulty else set()
        memory.octets.clear()
        core.records.clear()
        core.bursts.clear()
        await access(PMBPTR_EL1, self.pointer)
        await access(PMBSR_EL1, 0)
        await access(PMBLIMITR_EL1, self.limit | PMBLIMITR_EL1.pack(E=1))
        await access(PMSCR_EL1, PMSCR_EL1.pack(E1SPE=1))
        core.running, core.owner_change_rate = True, 0.0 if faulty else 0.5
        for _ in range(random.randrange(10, 30)):
            await self.cycles(random.randrange(1, 100))
        core.running = False
        await self.cycles(5)
        while core.flights:
            await RisingEdge(self.dut.clk)
        await self.drain()
        await self.check(faulty)
        await access(PMSCR_EL1, 0)
        await access(PMBLIMITR_EL1, 0)

    async def drain(self) -> None:
        """Execute PSB CSYNC."""
        self.core.draining = True
        for _ in range(5000):
            await FallingEdge(self.dut.clk)
            if self.dut.drain__done.value:
                break
        else:
            raise AssertionError("PSB CSYNC does not complete")
        await RisingEdge(self.dut.clk)
        self.core.draining = False

    async def check(self, faulty: bool) -> None:
        """Check registers, memory and bursts."""
        core, bus = self.core, self.config.bus_bytes
        status = await self.registers.access(PMBSR_EL1) & ~PMBSR_EL1.fields["COLL"].mask
        pointer = await self.registers.access(PMBPTR_EL1)
        expected: dict[int, int] = {}
        optional: dict[int, int] = {}  # data after an error, of records that were outstanding
        bounds = [self.pointer]
        failed: tuple[int, int] | None = None  # addresses of the record and of the burst with the error
        for record in core.records:
            start = record[0].address + first_octet(record[0].strobe)
            end = record[-1].address + record[-1].strobe.bit_length()
            bounds += [start, end]
            self.coverage["across a page"] += record[0].address // PAGE != record[-1].address // PAGE
            for beat in record:
                if beat.address // PAGE in self.memory.bad:
                    failed = failed or (start, max(start, beat.address))
                    continue
                octets = {beat.address + n: beat.data >> 8 * n & 0xFF for n in range(bus) if beat.strobe >> n & 1}
                if failed:
                    optional |= octets
                else:
                    expected |= octets
        written = {at: octet for at, octet in self.memory.octets.items() if at not in optional}
        assert written == expected
        assert all(optional.get(at, octet) == octet for at, octet in self.memory.octets.items())
        if optional and core.setting.outstanding == 1:
            assert self.memory.octets == expected
        full = pointer > self.limit - self.config.max_record_bytes
        if failed is None:
            assert status == (FULL if full else 0), f"{status:#x}"
            self.coverage["full" if full else "drained"] += 1
        else:
            start, at = failed
            self.coverage["within a record" if at > start else "at its start"] += 1
            self.coverage["written after an error"] += len(self.memory.octets) > len(expected)
            assert status == SYNCHRONOUS | PMBSR_EL1.pack(DL=at > start), f"{status:#x}"
            assert pointer == at
        assert pointer in bounds or failed
        if not failed:
            assert core.bursts == [burst for record in core.records for burst in self.bursts(record)]

    def bursts(self, record: list[Any]) -> Iterator[tuple[int, int, int]]:
        """Yield the expected bursts of a record: in the Security state in which its operation was sampled."""
        start, end = first_octet(record[0].strobe), record[-1].strobe.bit_length()
        octets = b"".join(int(beat.data).to_bytes(self.config.bus_bytes, "little") for beat in record)
        (decoded,) = decode_records(octets[start : len(octets) - self.config.bus_bytes + end])
        assert decoded.complete and not decoded.problems and decoded.pc
        ns, nse = decoded.pc.ns, decoded.pc.nse
        self.coverage[{(0, 0): "Secure", (1, 0): "Non-secure", (1, 1): "Realm"}[ns, nse]] += 1
        words = len(record)
        below = min(words, (PAGE - record[0].address % PAGE) // self.config.bus_bytes)
        for first, length in ((0, below), (below, words - below)):
            if length:
                yield record[first].address, length, 1 | ns << 1 | nse << 3


def first_octet(strobe: int) -> int:
    """Return the index of the first byte of a strobe."""
    return (strobe & -strobe).bit_length() - 1


async def check_apb_errors(registers: Apb, config: Any) -> None:
    """Check the error responses of APB4: a write of a read-only register, and an address without a register."""
    assert await registers.transfer(PMSIDR_EL1.encoding << 3) == (config.pmsidr, True)
    assert await registers.transfer(PMSIDR_EL1.encoding << 3, 1) == (0, False)
    assert await registers.transfer(0) == (0, False)


@cocotb.test()
async def random_records(dut: Any) -> None:
    random = Random(os.environ["SPURTLE_SEED"])
    setting = SHELLS[os.environ["SPURTLE_SHELL"]]
    for port in verilog.ports(ObservedShell(setting)):
        if port.direction == "in":
            getattr(dut, port.name).value = int(port.name == "rst")
    for name in ("m_axi", "s_apb"):  # otherwise they log each transfer
        logging.getLogger(f"cocotb.{dut._name}.{name}").setLevel(logging.WARNING)
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    core = CoreDriver(dut, setting, random)
    core.own(1, 0)
    for _ in range(3):
        await RisingEdge(dut.clk)
    memory = Memory(dut, random)
    registers = Apb(dut) if setting.shell == "axi4-apb" else Ports(dut)
    dut.rst.value = 0
    cocotb.start_soon(core.run())
    software = Software(core, memory, registers)
    if isinstance(registers, Apb):
        await check_apb_errors(registers, setting.config)
    await registers.access(PMSIRR_EL1, PMSIRR_EL1.pack(INTERVAL=1))
    cocotb.start_soon(software.select_often())
    required = ["Secure", "Non-secure", "drained", "full"]
    required += ["at its start"]
    required += ["within a record", "across a page"] if setting.config.layout.packed else ["Realm"]

    def missing() -> list[str]:
        return [name for name in required if not software.coverage[name]]

    # Run further rounds until all required events have occurred.
    for number in range(100):
        if number >= int(os.environ["SPURTLE_ROUNDS"]) and not missing():
            break
        await software.fill(faulty=number % 2 == 1)
    assert missing() == []
    assert setting.outstanding == 1 or core.max_open > 1
    dut._log.info(f"{core.now} cycles, {dict(software.coverage)}, most open bursts {core.max_open}")
