"""Adapter from RVFI, the RISC-V Formal Interface, to the ports of a PE.

Ref: riscv-formal, docs/source/rvfi.rst; RISC-V Unprivileged ISA: RV32I, A, C, and 2.5.1 (return-address stack hints);
RISC-V Privileged ISA, 1.2 (privilege levels).
"""

from amaranth import *
from amaranth.lib import enum
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig
from ..gateware.component import ConfiguredComponent
from ..interface.operation import FactsLayout
from ..interface.signature import StructuralSignature
from ..interface.source import operation_ports

__all__ = ["RVFI", "PrivilegeMode", "RVFIAdapter"]


class PrivilegeMode(enum.IntEnum, shape=2):
    """Privilege mode, encoded as in RVFI."""

    USER = 0
    SUPERVISOR = 1
    MACHINE = 3


class RVFI(StructuralSignature):
    """Signals of RVFI that the adapter uses, for one retirement per cycle and XLEN = 32; seen from the core.

    Members
    -------
    valid : Out(1)
        An instruction retires or traps. The following members describe it.
    insn : Out(32)
        Instruction word as in memory; a compressed instruction is in the lower half.
    trap : Out(1)
        The instruction caused a synchronous exception.
    halt : Out(1)
        The instruction is the last one.
    intr : Out(1)
        The instruction is the first one of a trap handler, of an exception or of an interrupt.
    mode : Out(2)
        `PrivilegeMode` in which the instruction was executed.
    pc_rdata, pc_wdata : Out(32)
        Address of the instruction; address of the next instruction.
    mem_addr, mem_rmask, mem_wmask : Out(32), Out(4), Out(4)
        Bytes that the instruction read and wrote: bit n of a mask is the byte at `mem_addr` + n.
    """

    def __init__(self):
        super().__init__(
            {
                "valid": Out(1),
                "insn": Out(32),
                "trap": Out(1),
                "halt": Out(1),
                "intr": Out(1),
                "mode": Out(2),
                "pc_rdata": Out(32),
                "pc_wdata": Out(32),
                "mem_addr": Out(32),
                "mem_rmask": Out(4),
                "mem_wmask": Out(4),
            }
        )


class _Opcode(enum.IntEnum, shape=5):
    """Bits [6:2] of a 32-bit instruction."""

    LOAD = 0b00_000
    STORE = 0b01_000
    AMO = 0b01_011
    BRANCH = 0b11_000
    JALR = 0b11_001
    JAL = 0b11_011
    SYSTEM = 0b11_100


class _Funct5(enum.IntEnum, shape=5):
    """Bits [31:27] of an instruction of the A extension that is not a read-modify-write."""

    LR = 0b00010
    SC = 0b00011


_UNCOMPRESSED = 0b11
"""Bits [1:0] of a 32-bit instruction."""

_RETURNS = (0x3020_0073, 0x1020_0073)
"""Encodings of MRET and SRET."""


class RVFIAdapter(ConfiguredComponent):
    """Source of operations from the retirements of an in-order core.

    An operation begins, and passes the sampling point, in the cycle in which the previous one retires. It completes in
    the cycle in which it retires, so that TOTAL is the number of cycles between two retirements. It is issued in its
    first cycle, because an in-order core has no issue queue. Translations and cache events are not reported.

    An operation that is interrupted before it retires vanishes: the first instruction of the handler retires in its
    place. An operation vanishes as well if it retires in another mode than the one in which it began. An operation that
    traps completes with a synchronous exception, and the first instruction of the handler begins in that cycle.

    RVFI carries all facts about the operation when it retires. `finish` reports them one cycle later, so that the core
    can retire an instruction in every cycle.

    Parameters
    ----------
    config : SPUConfig
        Configuration with one lane and one slot that answers after one cycle.

    Members
    -------
    rvfi : In(RVFI)
    mode : In(2)
        `PrivilegeMode` of the operation that begins in this cycle.
    el : In(2)
        Exception level that represents this mode, as in `PEStateSignature`.
    run : In(1)
        Operations that begin in this cycle are members of the sample population.
    idle : Out(1)
        `run` is zero and no sampled operation is in flight. A stall of the core in this cycle is in no latency.
    sampling, in_flight, finish : Out
        Ports to the SPU.
    """

    def __init__(self, config: SPUConfig):
        super().__init__(config, {"rvfi": In(RVFI()), "mode": In(2), "el": In(2), **operation_ports(config)})

    def elaborate(self, platform):
        m = Module()

        rvfi, operation = self.rvfi, self.finish.operation
        in_flight = Signal()
        busy = Signal()
        m.d.comb += [
            self.sampling.valid.eq(rvfi.valid & ~rvfi.halt & self.run),
            in_flight.eq(self.sampling.sampled | busy),
            self.in_flight.issued.eq(self.sampling.sampled),
            self.in_flight.completed.eq(in_flight & rvfi.valid),
            self.in_flight.translating.eq(0),
            self.idle.eq(~self.run & ~in_flight & ~self.finish.valid),
        ]
        # `finish` follows `sampled` by at least one cycle, and an operation can retire in the cycle of its `sampled`.
        m.d.sync += [busy.eq(in_flight & ~rvfi.valid), self.finish.valid.eq(in_flight & rvfi.valid)]

        mode_at_start = Signal(2)
        el_at_start = Signal(2)
        trapped = Signal()
        with m.If(rvfi.valid):
            m.d.sync += [
                mode_at_start.eq(self.mode),
                el_at_start.eq(self.el),
                trapped.eq(rvfi.trap),
                # After an exception, the first operation of the handler began as any other. Any other handler has
                # interrupted an operation. The mode alone does not show that: an interrupt can be taken in the mode of
                # its handler.
                self.finish.vanished.eq((rvfi.mode != mode_at_start) | (rvfi.intr & ~trapped)),
            ]

        facts = Signal(FactsLayout)
        self._decode(m, facts)
        address = Signal(32)
        m.d.comb += address.eq(rvfi.mem_addr + _lowest_bit(rvfi.mem_rmask | rvfi.mem_wmask))
        # After a return, the operation that begins in this cycle is at the target, and `el` belongs to it. RISC-V has
        # no Security states, and RVFI has one address for each access.
        m.d.sync += [
            operation.facts.eq(facts),
            operation.pc.eq(rvfi.pc_rdata),
            operation.target.address.eq(rvfi.pc_wdata),
            operation.target.el.eq(Mux(rvfi.insn.matches(*_RETURNS), self.el, el_at_start)),
            operation.target.ns.eq(1),
            operation.va.eq(address),
            operation.pa.eq(address),
            operation.pa_ns.eq(1),
        ]

        return m

    def _decode(self, m, facts):
        rvfi = self.rvfi
        compressed = rvfi.insn[:2] != _UNCOMPRESSED
        with m.If(compressed):
            self._decode_compressed(m, facts)
        with m.Else():
            self._decode_uncompressed(m, facts)

        sequential = Signal(32)
        # Without a mask `mem_addr` is not valid: a Store-Conditional that fails accesses nothing.
        accesses = (facts.load | facts.store) & (rvfi.mem_rmask | rvfi.mem_wmask).any() & ~rvfi.trap
        # RVFI does not report whether a branch is taken. A branch to the next instruction counts as not taken.
        m.d.comb += [
            sequential.eq(rvfi.pc_rdata + Mux(compressed, 2, 4)),
            facts.taken.eq(~facts.conditional | (rvfi.pc_wdata != sequential)),
            # E[1] is also one for an operation that completes with a synchronous exception (D18.2.6).
            facts.retired.eq(1),
            facts.exception.eq(rvfi.trap),
            facts.va_valid.eq(accesses),
            facts.pa_valid.eq(accesses),
        ]

    def _decode_uncompressed(self, m, facts):
        insn = self.rvfi.insn
        destination, source = insn[7:12], insn[15:20]
        with m.Switch(insn[2:7]):
            with m.Case(_Opcode.LOAD):
                m.d.comb += facts.load.eq(1)
            with m.Case(_Opcode.STORE):
                m.d.comb += facts.store.eq(1)
            with m.Case(_Opcode.AMO):
                exclusive = insn[27:32].matches(_Funct5.LR, _Funct5.SC)
                m.d.comb += [
                    facts.exclusive.eq(exclusive),
                    facts.atomic.eq(~exclusive),
                    facts.acquire_release.eq(insn[25:27].any()),  # rl and aq
                    # A read-modify-write without a destination register returns no value and is not a load.
                    facts.load.eq(Mux(exclusive, insn[27:32] == _Funct5.LR, destination != 0)),
                    facts.store.eq(insn[27:32] != _Funct5.LR),
                ]
            with m.Case(_Opcode.BRANCH):
                m.d.comb += [facts.branch.eq(1), facts.conditional.eq(1)]
            with m.Case(_Opcode.JAL):
                m.d.comb += [facts.branch.eq(1), facts.link.eq(_is_link(destination))]
            with m.Case(_Opcode.JALR):
                m.d.comb += [
                    facts.branch.eq(1),
                    facts.indirect.eq(1),
                    facts.link.eq(_is_link(destination)),
                    facts.procedure_return.eq(~_is_link(destination) & _is_link(source)),
                ]
            with m.Case(_Opcode.SYSTEM):
                exception_return = insn.matches(*_RETURNS)
                m.d.comb += [facts.branch.eq(exception_return), facts.indirect.eq(exception_return)]

    def _decode_compressed(self, m, facts):
        insn = self.rvfi.insn
        source = insn[7:12]
        with m.Switch(Cat(insn[:2], insn[13:16])):
            with m.Case("010 00", "010 10"):  # C.LW, C.LWSP
                m.d.comb += facts.load.eq(1)
            with m.Case("110 00", "110 10"):  # C.SW, C.SWSP
                m.d.comb += facts.store.eq(1)
            with m.Case("11- 01"):  # C.BEQZ, C.BNEZ
                m.d.comb += [facts.branch.eq(1), facts.conditional.eq(1)]
            with m.Case("-01 01"):  # C.J, C.JAL
                m.d.comb += [facts.branch.eq(1), facts.link.eq(~insn[15])]
            with m.Case("100 10"):
                with m.If((insn[2:7] == 0) & (source != 0)):  # C.JR, C.JALR
                    m.d.comb += [
                        facts.branch.eq(1),
                        facts.indirect.eq(1),
                        facts.link.eq(insn[12]),
                        facts.procedure_return.eq(~insn[12] & _is_link(source)),
                    ]


def _is_link(register):
    """Return whether this is the link register of the ABI, x1, or the alternate one, x5."""
    return register.matches(1, 5)


def _lowest_bit(mask):
    """Return the index of the lowest bit of four that is one."""
    return Mux(mask[0], 0, Mux(mask[1], 1, Mux(mask[2], 2, 3)))
