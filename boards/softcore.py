"""Operation source with a soft core: PicoRV32 with a program in block RAM, observed through RVFI."""

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
    """Return the Verilog of module `picorv32` with its RVFI ports."""
    return "`define RISCV_FORMAL\n" + Path(pythondata_cpu_picorv32.data_file("picorv32.v")).read_text()


class SoftCore(ConfiguredComponent):
    """PicoRV32 that runs a program in an endless loop.

    The core has no interrupts and runs in machine mode only.

    When `run` is deasserted, the core continues until a sampled instruction in flight has finished. The memory then
    stops answering, and the core stalls at its next access. Instructions that start while `run` is low are not members
    of the sample population: those until the sampled instruction has finished, one or two more, and the stalled one.

    If there is a platform, the Verilog of the core is added to its files. Otherwise the caller adds the module
    `picorv32`.

    Timing: an instruction takes at least three cycles, an access to memory two.
    Reset: the program restarts, and the memory keeps its content. The first instruction is not a member of the sample
    population, because no instruction has retired before it.

    Parameters
    ----------
    config : SPUConfig
        Configuration with one lane, one slot and an answer latency of one cycle.
    program : SoftCoreProgram

    Members
    -------
    run : In(1)
        The program may advance in this cycle.
    idle : Out(1)
        The program is stopped, and no sampled operation is in flight.
    tick : Out(1)
        Asserted in each cycle of the program, in which its timer counts.
    sampling, in_flight, finish : Out
        Ports of the SPU.
    rvfi : Out(RVFI)
        Retired instructions, for a trace.
    """

    def __init__(self, config: SPUConfig, program: SoftCoreProgram):
        ports = operation_ports(config)
        check_type("program", program, SoftCoreProgram)
        self._program = program
        super().__init__(config, {**ports, "tick": Out(1), "rvfi": Out(RVFI())})

    @property
    def program(self) -> SoftCoreProgram:
        """Program of the core."""
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
        """Instantiate the core with its memory, and return its RVFI."""
        words = [int.from_bytes(self._program.memory[offset : offset + 4], "little") for offset in range(0, SIZE, 4)]
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

        # The core needs one cycle of reset after configuration, and not every board has a reset input.
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
        # For a load, PicoRV32 reports the address of the word. The byte offset is that of base register plus immediate.
        with m.If(rvfi.mem_rmask.any()):
            m.d.comb += rvfi.mem_addr[:2].eq(operand[:2] + rvfi.insn[20:22])
        return rvfi
