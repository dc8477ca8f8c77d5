# amaranth: UnusedElaboratable=no

"""Soft core with an SPU, compared with a trace of the retired instructions; and the RVFI adapter alone."""

import ctypes
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import capstone
import numpy as np
import pytest
import unicorn
from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.sim import Simulator
from unicorn import riscv_const

from boards.riscv import BASE, SIZE, load
from boards.simulate import WAIVERS
from boards.softcore import SoftCore, picorv32
from configurations import FEATURES
from spurtle import arch
from spurtle.config import CONFIGS, LFSR_RESET
from spurtle.export import verilog
from spurtle.gateware.spu import SPU
from spurtle.interface.memory import DrainSignature
from spurtle.interface.sysreg import ACCESS_LATENCY, SystemRegisterSignature
from spurtle.shell.rvfi import RVFI, RVFIAdapter
from spurtle_sim.cosim.compiled import load_model
from spurtle_sim.model import sampling
from spurtle_sim.model.operation import Facts, Location, Operation, Sample, Start
from spurtle_sim.model.records import encode
from spurtle_sim.native.header import constants
from spurtle_sim.records.decode import decode_records
from tests.support.seeds import SEED

CONFIG = CONFIGS["minimal"]
CONTEXT = 1234
BUFFER = 0xFFFF_0000_1000_0000
HALF_BYTES = 4096
"""Size of the part of the buffer that the SPU fills before each interrupt."""

RECORDS = 32 * HALF_BYTES // CONFIG.max_record_bytes
RETIREMENT = np.dtype(
    [
        *((name, "<u8") for name in ("cycle", "time")),
        *((name, "<u4") for name in ("insn", "pc", "next", "address", "read", "written", "trap", "member")),
    ]
)


class SoftCoreRig(wiring.Component):
    """SPU with the soft core, memory that accepts each beat immediately, and ports for the software of the PE."""

    run: In(1)
    sysreg: In(SystemRegisterSignature())
    drain: In(DrainSignature())
    pmbirq: Out(1)
    idle: Out(1)
    time_: Out(64)
    member: Out(1)
    rvfi: Out(RVFI())
    beat: Out(1)
    address: Out(64)
    data: Out(64)

    def elaborate(self, platform):
        m = Module()

        m.submodules.spu = spu = SPU(CONFIG)
        m.submodules.core = core = SoftCore(CONFIG, load())
        for name in ("sampling", "in_flight", "finish"):
            connect(m, getattr(core, name), getattr(spu, name))
        connect(m, flipped(self.sysreg), spu.sysreg)
        connect(m, flipped(self.drain), spu.drain)
        connect(m, core.rvfi, flipped(self.rvfi))
        run = Signal()
        m.d.comb += [
            run.eq(self.run & ~spu.pmbirq),
            core.run.eq(run),
            self.idle.eq(core.idle),
            self.pmbirq.eq(spu.pmbirq),
            self.member.eq(core.sampling.valid),
            spu.pe.el.eq(Mux(run | ~core.idle, 0, 1)),
            spu.pe.ns.eq(1),
            spu.pe.contextidr_el1.eq(CONTEXT),
            spu.pe.count_enabled.eq(1),
            spu.pe.physical_count.eq(self.time_),
            spu.write.beat.ready.eq(1),
            self.beat.eq(spu.write.beat.valid),
            self.address.eq(spu.write.beat.p.address),
            self.data.eq(spu.write.beat.p.data),
        ]
        m.d.sync += [
            self.time_.eq(self.time_ + core.tick),
            spu.write.done.eq(spu.write.beat.valid & spu.write.beat.p.last),
        ]

        return m


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    """Compile the rig."""
    core = picorv32()
    design = verilog.generate(SoftCoreRig(), "rig", library=core)
    driver = Path(__file__).with_name("softcore.cpp")
    options = ("--top-module", design.module, *WAIVERS)
    declarations = [constants("", "unsigned", {"ACCESS_LATENCY": ACCESS_LATENCY})]
    return load_model(design.module, design.text + core, driver, declarations, options)


@dataclass(frozen=True)
class ProfileSession:
    """Records of a session, with the trace of the instructions retired since reset: rows of `RETIREMENT`."""

    records: list[bytes]
    trace: np.ndarray
    interrupts: int
    late: int  # stops that waited for a sampled operation
    strays: int  # bytes written outside of the buffer


class RandomDriver:
    """Driver at EL1, which also stops the program at random times."""

    def __init__(self, library: ctypes.CDLL):
        self._library = library
        for name in ("new", "trace", "buffer"):
            getattr(library, f"rig_{name}").restype = ctypes.c_void_p
        for name in ("access", "strays", "retirements"):
            getattr(library, f"rig_{name}").restype = ctypes.c_uint64
        size = ctypes.c_uint64(HALF_BYTES)
        self._rig = ctypes.c_void_p(library.rig_new(ctypes.c_uint64(BUFFER), size))

    def _access(self, register: arch.Register, value: int | None = None) -> int:
        encoding = (register.op1, register.crn, register.crm, register.op2)
        return self._library.rig_access(self._rig, *encoding, int(value is not None), ctypes.c_uint64(value or 0))

    def profile(self, count: int, rnd: int) -> ProfileSession:
        limit = BUFFER + HALF_BYTES
        self._access(arch.PMBPTR_EL1, BUFFER)
        self._access(arch.PMBLIMITR_EL1, limit | arch.PMBLIMITR_EL1.pack(E=1))
        self._access(arch.PMSIRR_EL1, arch.PMSIRR_EL1.pack(INTERVAL=1, RND=rnd))
        self._access(arch.PMSCR_EL1, arch.PMSCR_EL1.pack(E0SPE=1, CX=1, PA=1, TS=1))
        self._library.rig_wait(self._rig, ctypes.c_uint64(4))

        choose = random.Random(f"{SEED} {rnd}")
        records: list[bytes] = []
        interrupts = late = 0
        while len(records) < count:
            # So frequent that about thirty stops wait for a sampled operation, which is in flight for few cycles.
            wait = self._library.rig_play(self._rig, ctypes.c_uint64(choose.randrange(1, 500)))
            assert wait >= 0
            late += wait > 0
            self._library.rig_wait(self._rig, ctypes.c_uint64(choose.randrange(40)))
            if self._library.rig_interrupt(self._rig):
                interrupts += 1
                written = ctypes.string_at(self._library.rig_buffer(self._rig), self._access(arch.PMBPTR_EL1) - BUFFER)
                records += [written[offset : offset + 64] for offset in range(0, len(written), 64)]
                self._access(arch.PMBPTR_EL1, BUFFER)
                self._access(arch.PMBSR_EL1, 0)
                self._library.rig_wait(self._rig, ctypes.c_uint64(4))
        size = self._library.rig_retirements(self._rig) * RETIREMENT.itemsize
        trace = np.frombuffer(ctypes.string_at(self._library.rig_trace(self._rig), size), RETIREMENT)
        strays = self._library.rig_strays(self._rig)
        self._library.rig_delete(self._rig)
        return ProfileSession(records, trace, interrupts, late, strays)


@pytest.fixture(scope="module")
def session(library: ctypes.CDLL) -> ProfileSession:
    return RandomDriver(library).profile(RECORDS, rnd=1)


@pytest.fixture(scope="module")
def accesses(session: ProfileSession) -> dict[int, int]:
    """Run the program on Unicorn, and return the address of each load and store by the number of its instruction.

    Unicorn executes the same instructions as the core.
    """
    program = load()
    uc = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
    uc.mem_map(BASE, SIZE)
    uc.mem_write(BASE, program.memory)
    pcs: list[int] = []
    found: dict[int, int] = {}
    uc.hook_add(unicorn.UC_HOOK_CODE, lambda uc, pc, size, data: pcs.append(pc))
    uc.hook_add(
        unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE,
        lambda uc, kind, address, size, value, data: found.__setitem__(len(pcs) - 1, address),
    )
    uc.emu_start(BASE, 0, count=len(session.trace))
    assert uc.reg_read(riscv_const.UC_RISCV_REG_PC) == session.trace["next"][-1]
    assert pcs == session.trace["pc"].tolist()
    return found


def selected(trace: np.ndarray, rnd: int) -> list[int]:
    """Return the indices in the trace of the operations that the reference model selects."""
    state, count, chosen = LFSR_RESET, 0, []
    for index, member in enumerate(trace["member"].tolist()):
        if member:
            count, _, is_selected, drawn = sampling.advance(
                count, 0, interval=1, rnd=rnd, random=sampling.random_byte(state), ernd=False
            )
            if drawn:
                state = sampling.draw(state)
            if is_selected:
                chosen.append(index + 1)
    return chosen


_CAPSTONE = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV32)
_CONDITIONAL = {"beq", "bne", "blt", "bge", "bltu", "bgeu", "beqz", "bnez", "blez", "bgez", "bltz", "bgtz"}


def facts(row: Any) -> Facts:
    """Return the facts of an instruction, from its disassembly."""
    mnemonic = next(_CAPSTONE.disasm(int(row["insn"]).to_bytes(4, "little"), 0)).mnemonic
    load, store = mnemonic in {"lw", "lbu", "lb", "lh", "lhu"}, mnemonic in {"sw", "sb", "sh"}
    conditional = mnemonic in _CONDITIONAL
    indirect = mnemonic in {"ret", "jr", "jalr"}
    return Facts(
        load=int(load),
        store=int(store),
        branch=int(conditional or indirect or mnemonic in {"j", "jal"}),
        conditional=int(conditional),
        taken=int(not conditional or row["next"] != row["pc"] + 4),
        indirect=int(indirect),
        link=int(mnemonic in {"jal", "jalr"}),
        procedure_return=int(mnemonic == "ret"),
        retired=1,
        va_valid=int(load or store),
        pa_valid=int(load or store),
    )


@pytest.mark.full
def test_records_equal_the_selected_operations(session: ProfileSession, accesses: dict[int, int]):
    trace = session.trace
    assert session.interrupts == 32 and session.strays == 0
    chosen = selected(trace, rnd=1)
    assert len(session.records) == len(chosen) == RECORDS
    for record, index in zip(session.records, chosen, strict=True):
        row, before = trace[index], trace[index - 1]
        address = accesses.get(index, 0)
        sample = Sample(
            start=Start(el=0, ns=1, contextidr_el1=CONTEXT, timestamp=int(before["time"]), collect_pa=True),
            operation=Operation(
                facts=facts(row),
                pc=int(row["pc"]),
                target=Location(int(row["next"]), 0, 1),
                va=address,
                pa=address,
                pa_ns=1,
            ),
            total=int(row["cycle"] - before["cycle"]),
            issue=1,
        )
        assert record == encode(CONFIG, sample), index


@pytest.mark.full
def test_program_has_each_kind_of_operation(session: ProfileSession):
    kinds = Counter(
        (operation.kind, str(operation.attributes)) for record in decode_records(b"".join(session.records))
        if (operation := record.operation)
    )  # fmt: skip
    assert {kind for kind, _ in kinds} == {"load", "store", "branch", "other"}
    assert len({attributes for kind, attributes in kinds if kind == "branch"}) >= 3, kinds


@pytest.mark.full
def test_share_of_samples_equals_share_of_operations(session: ProfileSession):
    """Compare the shares of each function.

    A sample is a random one of about 256 operations. The standard deviation of the number of samples in a function is
    at most sqrt(n p (1 - p)), that of independent samples. A deviation of 4.5 times that occurs in any of the
    eleven functions once in 13,000 runs.
    """
    functions = load().functions
    records = decode_records(b"".join(session.records))
    sampled = Counter(_function(functions, record.pc.address) for record in records if record.pc)
    last = selected(session.trace, rnd=1)[RECORDS - 1]
    executed = Counter(_function(functions, pc) for pc in session.trace["pc"][:last].tolist())
    assert len(executed) == len(functions) and sampled.total() == RECORDS
    for name, count in executed.items():
        share = count / executed.total()
        deviation = math.sqrt(RECORDS * share * (1 - share))
        assert abs(sampled[name] - RECORDS * share) <= 4.5 * max(deviation, 1), name


def _function(functions: dict[str, range], pc: int) -> str:
    return next(name for name, addresses in functions.items() if pc in addresses)


@pytest.mark.full
def test_timer_stops_with_the_program(session: ProfileSession):
    """While the program runs, cycles and ticks are equal; in a stop there are fewer ticks than cycles."""
    trace = session.trace
    cycles, ticks = np.diff(trace["cycle"].astype(int)), np.diff(trace["time"].astype(int))
    stopped = cycles != ticks
    # No stop interrupts a sampled operation, although some stops were requested during one.
    assert not stopped[np.array(selected(trace, rnd=1)) - 1].any()
    assert session.late > 5
    assert (ticks <= cycles).all()
    assert session.interrupts < stopped.sum() < len(trace) / 20
    # An instruction that starts while the program is stopped is not a member of the sample population.
    assert not trace["member"][1:][ticks == 0].any()


def test_memory_contains_the_program():
    program = load()
    assert len(program.memory) == SIZE
    process = program.process(7)
    (mapping,) = process.mappings
    content = program.path.read_bytes()[mapping.offset :]
    addresses = program.functions["crc"]
    assert (
        program.memory[addresses.start - BASE : addresses.stop - BASE]
        == (content[addresses.start - mapping.start : addresses.stop - mapping.start])
    )
    assert {"insertion_sort", "crc", "multiply", "find", "main"} <= set(program.functions)


def retire(
    stream: Sequence[dict[str, int] | None], sampled: Sequence[int], run: Sequence[int] = ()
) -> tuple[list[int], list[tuple[int, dict[str, int]]], list[int]]:
    """Simulate the adapter from reset on.

    Parameters
    ----------
    stream : sequence of dict or None
        Retired instruction in each cycle.
    sampled : sequence of int
        Cycles in which the SPU answers that it samples.
    run : sequence of int
        `run` in each cycle; default: always 1.

    Returns
    -------
    tuple of list
        Whether a member of the sample population passes in each cycle; the cycle and the content of each finish, in
        which `total` counts the cycles from the sampling point to the completion; and `idle` in each cycle.
    """
    dut = RVFIAdapter(CONFIG)
    valid: list[int] = []
    idle: list[int] = []
    finishes: list[tuple[int, dict[str, int]]] = []

    async def play(ctx: Any) -> None:
        passed = 0
        total = 0
        for cycle, row in enumerate(stream):
            ctx.set(dut.rvfi.valid, int(row is not None))
            for name in ("insn", "trap", "halt", "pc_rdata", "pc_wdata", "mem_addr", "mem_rmask", "mem_wmask"):
                ctx.set(getattr(dut.rvfi, name), (row or {}).get(name, 0))
            ctx.set(dut.run, run[cycle] if run else 1)
            ctx.set(dut.sampling.sampled, int(cycle in sampled))
            if cycle in sampled:
                passed = cycle - 1
                assert ctx.get(dut.in_flight.issued)
            if ctx.get(dut.in_flight.completed):
                total = cycle - passed
            valid.append(ctx.get(dut.sampling.valid))
            idle.append(ctx.get(dut.idle))
            if ctx.get(dut.finish.valid):
                operation = ctx.get(dut.finish.operation)
                content = {name: int(getattr(operation.facts, name)) for name in Facts.__slots__}
                content |= {"pc": operation.pc, "target": operation.target.address, "va": operation.va, "total": total}
                finishes.append((cycle, content))
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(play)
    simulator.run()
    return valid, finishes, idle


NOP = 0x0000_0013


def at(pc: int, insn: int = NOP, **others: int) -> dict[str, int]:
    return {"insn": insn, "pc_rdata": pc, "pc_wdata": pc + 4, **others}


def test_core_may_retire_in_every_cycle():
    stream = [at(4 * cycle) for cycle in range(12)]
    valid, finishes, _ = retire(stream, sampled=[2, 4, 9])
    assert valid == [1] * 12
    # The operation that passes in cycle 1 retires in cycle 2.
    assert [(cycle, content["pc"], content["total"]) for cycle, content in finishes] == [
        (3, 8, 1),
        (5, 16, 1),
        (10, 36, 1),
    ]


def test_latency_includes_stalls():
    stream = [at(0), None, None, at(4), None, at(8), None, None, None, None, at(12), None]
    valid, finishes, _ = retire(stream, sampled=[1, 6])
    assert valid == [int(row is not None) for row in stream]
    assert [(cycle, content["pc"], content["total"]) for cycle, content in finishes] == [(4, 4, 3), (11, 12, 5)]


def test_sampled_operation_finishes_after_the_program_is_stopped():
    stream = [at(0), None, at(4), None, None, at(8), at(12), None]
    valid, finishes, idle = retire(stream, sampled=[3], run=[1, 1, 1, 0, 0, 0, 0, 0])
    assert valid == [1, 0, 1, 0, 0, 0, 0, 0]
    assert [(cycle, content["pc"]) for cycle, content in finishes] == [(6, 8)]
    assert idle == [0, 0, 0, 0, 0, 0, 0, 1]


def test_no_operation_starts_after_the_core_has_halted():
    valid, finishes, _ = retire([at(0), at(4, trap=1, halt=1), at(4, trap=1, halt=1), None], sampled=[1])
    assert valid == [1, 0, 0, 0]
    ((_, content),) = finishes
    assert (content["exception"], content["retired"]) == (1, 1)


LOADS = dict.fromkeys(("load", "va_valid", "pa_valid"), 1)
STORES = dict.fromkeys(("store", "va_valid", "pa_valid"), 1)
BRANCHES = {"branch": 1}
ENCODINGS = {
    "add x1, x2, x3": (0x0031_00B3, {}, {}),
    "lbu x1, 3(x2)": (0x0031_4083, {"mem_addr": 0x100, "mem_rmask": 0b1000}, {**LOADS, "va": 0x103}),
    "lw x1, 0(x2), which traps": (0x0001_2083, {"trap": 1}, {"load": 1, "exception": 1}),
    "sh x1, 2(x2)": (0x0011_1123, {"mem_addr": 0x100, "mem_wmask": 0b1100}, {**STORES, "va": 0x102}),
    "sw x1, 0(x2)": (0x0011_2023, {"mem_addr": 0x101, "mem_wmask": 0b1111}, {**STORES, "va": 0x101}),
    "beq, taken": (0x0020_8463, {"pc_wdata": 0x48}, {**BRANCHES, "conditional": 1, "target": 0x48}),
    "beq, not taken": (0x0020_8463, {}, {**BRANCHES, "conditional": 1, "taken": 0, "target": 0x44}),
    "jal x0": (0x0080_006F, {"pc_wdata": 0x48}, {**BRANCHES, "target": 0x48}),
    "jal x1": (0x0080_00EF, {}, {**BRANCHES, "link": 1}),
    "jal x5": (0x0080_02EF, {}, {**BRANCHES, "link": 1}),
    "jalr x0, x1": (0x0000_8067, {}, {**BRANCHES, "indirect": 1, "procedure_return": 1}),
    "jalr x1, x1": (0x0000_80E7, {}, {**BRANCHES, "indirect": 1, "link": 1}),
    "jalr x0, x10": (0x0005_0067, {}, {**BRANCHES, "indirect": 1}),
    "mret": (0x3020_0073, {}, {**BRANCHES, "indirect": 1}),
    "ecall": (0x0000_0073, {"trap": 1}, {"exception": 1}),
    "csrrw": (0x3020_1073, {}, {}),
    "lr.w": (0x1001_20AF, {"mem_rmask": 15}, {**LOADS, "exclusive": 1}),
    "sc.w.rl": (0x1A11_20AF, {"mem_wmask": 15}, {**STORES, "exclusive": 1, "acquire_release": 1}),
    "sc.w, which fails": (0x1811_20AF, {"mem_addr": 0x100}, {"store": 1, "exclusive": 1}),
    "amoadd.w.aq": (0x0411_20AF, {"mem_rmask": 15}, {**LOADS, "store": 1, "atomic": 1, "acquire_release": 1}),
    "amoadd.w x0": (0x0011_202F, {"mem_rmask": 15}, {**STORES, "atomic": 1}),
    "c.lw": (0x4108, {"mem_rmask": 15}, LOADS),
    "c.lwsp": (0x4502, {"mem_rmask": 15}, LOADS),
    "c.sw": (0xC108, {"mem_wmask": 15}, STORES),
    "c.swsp": (0xC02A, {"mem_wmask": 15}, STORES),
    "c.beqz, not taken": (0xC101, {"pc_wdata": 0x42}, {**BRANCHES, "conditional": 1, "taken": 0, "target": 0x42}),
    "c.bnez, taken": (0xE101, {"pc_wdata": 0x44}, {**BRANCHES, "conditional": 1, "target": 0x44}),
    "c.j": (0xA001, {}, BRANCHES),
    "c.jal": (0x2001, {}, {**BRANCHES, "link": 1}),
    "c.jr x1": (0x8082, {}, {**BRANCHES, "indirect": 1, "procedure_return": 1}),
    "c.jalr x10": (0x9502, {}, {**BRANCHES, "indirect": 1, "link": 1}),
    "c.mv": (0x852E, {}, {}),
    "c.ebreak": (0x9002, {"trap": 1}, {"exception": 1}),
}


def test_facts_of_each_instruction():
    defaults = {**dict.fromkeys(Facts.__slots__, 0), "taken": 1, "retired": 1}
    for name, (insn, others, expected) in ENCODINGS.items():
        _, ((_, content),), _ = retire([at(0x3C), at(0x40, insn, **others), None], sampled=[1])
        complete = {**defaults, **expected}
        assert {key: content[key] for key in complete} == complete, name


def test_unsupported_configurations_are_refused():
    with pytest.raises(ValueError, match="must be 1, not 8, 4 and 4"):
        RVFIAdapter(CONFIGS["v1p4"])
    with pytest.raises(ValueError, match="altclk must be 0, not 15"):
        RVFIAdapter(FEATURES["minimal_altclk"])
