"""A soft core with a program in block RAM, as a source of operations: PicoRV32, watched through RVFI."""

from pathlib import Path

import pythondata_cpu_picorv32
from amaranth import *
from amaranth.lib import memory
from amaranth.lib.wiring import Out, connect, flipped
from amaranth.utils import exact_log2

from spurtle.config import SPUConfig
from spurtle.gateware.component import ConfiguredComponent
from spurtle.interface.source import operation_ports
from spurtle.shell.rvfi import RVFI, PrivilegeMode, RVFIAdapter
from spurtle.support.arguments import check_type

from .riscv import BASE, SIZE, SoftCoreProgram

__all__ = ["SoftCore", "picorv32"]


def picorv32() -> str:
    """The Verilog of module `picorv32`, with its RVFI."""
    return "`define RISCV_FORMAL\n" + Path(pythondata_cpu_picorv32.data_file("picorv32.v")).read_text()


class SoftCore(ConfiguredComponent):
    """Runs a program for ever. An instruction takes three cycles or more; a word of memory takes two. There are neither
    interrupts nor another mode than machine mode.

    When `run` falls, instructions go on until the sampled one that is in flight has finished; then the memory answers
    no more, and the core stands still as soon as it needs that. What begins while `run` is low is not a member of the
    sample population: these are the rest of the instructions until then, one or two more, and at last the one that
    waits. Reset: the program starts again; its memory keeps what it has written. The first instruction is no member,
    as none has retired before it.

    A platform gets the core's Verilog; without one, the module `picorv32` is to be added.

    Parameters
    ----------
    config : SPUConfig
        Of an SPU with one lane and one slot that answers after one cycle.
    program : Program

    Members
    -------
    run : In(1)
        The program may go on in this cycle.
    idle : Out(1)
        The program stands still and no sampled operation is in flight.
    tick : Out(1)
        A cycle of the program: its timer counts.
    sampling, in_flight, finish : Out
        To the SPU.
    rvfi : Out(RVFI)
        What retires, for a trace.
    """

    def __init__(self, config: SPUConfig, program: SoftCoreProgram):
        ports = operation_ports(config)
        check_type("program", program, SoftCoreProgram)
        self._program = program
        super().__init__(config, {**ports, "tick": Out(1), "rvfi": Out(RVFI())})

    @property
    def program(self) -> SoftCoreProgram:
        """The program that it runs."""
        return self._program

    def elaborate(self, platform):
        m = Module()

        if platform is not None:
            platform.add_file("picorv32.v", picorv32())

        m.submodules.adapter = adapter = RVFIAdapter(self._config)
        m.d.comb += [
            adapter.run.eq(self.run),
            adapter.mode.eq(PrivilegeMode.MACHINE),
            adapter.el.eq(0),
            self.idle.eq(adapter.idle),
            self.tick.eq(~self.idle),
        ]
        for name in ("sampling", "in_flight", "finish"):
            connect(m, getattr(adapter, name), flipped(getattr(self, name)))

        rvfi = self._run(m)
        connect(m, rvfi, adapter.rvfi)
        connect(m, rvfi, flipped(self.rvfi))

        return m

    def _run(self, m):
        """Run the core with its memory, and return its RVFI."""
        words = [int.from_bytes(self._program.memory[place : place + 4], "little") for place in range(0, SIZE, 4)]
        m.submodules.memory = ram = memory.Memory(shape=32, depth=len(words), init=words)
        store = ram.write_port(granularity=8)
        load = ram.read_port()
        valid = Signal()
        ready = Signal()
        address = Signal(32)
        strobe = Signal(4)
        word = slice(2, exact_log2(SIZE))
        m.d.comb += [
            store.addr.eq(address[word]),
            store.en.eq(strobe & ready.replicate(4)),
            load.addr.eq(address[word]),
        ]
        m.d.sync += ready.eq(valid & ~ready & ~self.idle)

        # Not every board has a reset: what counts is the first cycle.
        running = Signal()
        m.d.sync += running.eq(1)
        rvfi = RVFI().create()
        accessed = Signal(32)
        operand = Signal(32)
        m.submodules.core = Instance(
            "picorv32",
            p_ENABLE_COUNTERS=0,
            p_ENABLE_COUNTERS64=0,
            p_PROGADDR_RESET=C(BASE, 32),
            i_clk=ClockSignal(),
            i_resetn=running,
            o_mem_valid=valid,
            i_mem_ready=ready,
            o_mem_addr=address,
            o_mem_wdata=store.data,
            o_mem_wstrb=strobe,
            i_mem_rdata=load.data,
            i_pcpi_wr=C(0, 1),
            i_pcpi_rd=C(0, 32),
            i_pcpi_wait=C(0, 1),
            i_pcpi_ready=C(0, 1),
            i_irq=C(0, 32),
            o_rvfi_rs1_rdata=operand,
            o_rvfi_mem_addr=accessed,
            **{f"o_rvfi_{name}": getattr(rvfi, name) for name in RVFI().members if name != "mem_addr"},
        )
        m.d.comb += rvfi.mem_addr.eq(accessed)
        # It reads whole words, and says so: the place in the word is that of base register plus immediate.
        with m.If(rvfi.mem_rmask.any()):
            m.d.comb += rvfi.mem_addr[:2].eq(operand[:2] + rvfi.insn[20:22])
        return rvfi
