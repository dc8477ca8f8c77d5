"""Complete design of a board without its pins: an operation source, the SPU, its buffer, and the link to the host."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from spurtle.arch import PMSCR_EL2
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.spu import SPU
from spurtle.support.arguments import check_minimum, check_type
from spurtle_sim.perf.process import PID

from .board import Board
from .link import AnswerSender, CommandReceiver
from .memory import BufferMemory
from .server import BoardRegisters, Server
from .source import operation_source
from .uart import UARTReceiver, UARTTransmitter

__all__ = ["Demonstration", "PulseStretcher"]

_LED_SECONDS = 0.1
"""Duration for which the collision LED is lit: long enough to be seen."""

_OWNED_BY_EL1 = 0b11
"""MDCR_EL2.E2PB and MDCR_EL3.NSPB: Non-secure EL1 owns the Profiling Buffer, and its accesses do not trap."""


class PulseStretcher(wiring.Component):
    """Component that extends a strobe to `cycles` cycles, so that it is visible on an LED.

    Reset: `level` is low.

    Parameters
    ----------
    cycles : int
        At least 1.

    Members
    -------
    strobe : In(1)
    level : Out(1)
        Asserted for `cycles` cycles after the last `strobe`.
    """

    strobe: In(1)
    level: Out(1)

    def __init__(self, cycles: int):
        check_minimum("cycles", cycles, 1)
        self._cycles = cycles
        super().__init__()

    @property
    def cycles(self) -> int:
        """Cycles for which `level` is asserted."""
        return self._cycles

    def elaborate(self, platform):
        m = Module()

        remaining = Signal(range(self._cycles + 1))
        m.d.comb += self.level.eq(remaining != 0)
        with m.If(self.strobe):
            m.d.sync += remaining.eq(self._cycles)
        with m.Elif(self.level):
            m.d.sync += remaining.eq(remaining - 1)

        return m


class Demonstration(wiring.Component):
    """Demonstration: a program that the SPU samples under the control of a host.

    The host programs the SPU, starts the program and reads the buffer. The program runs at EL0 in Non-secure state.
    While it is stopped, the host acts as the driver: the PE is at EL2 for an access to a register of EL2, and at EL1
    otherwise.

    Parameters
    ----------
    board : Board
    divisor : int or None
        Clock cycles of a bit on the line; None selects the divisor of the board.

    Members
    -------
    rx : In(1)
        Synchronous to the clock of this component.
    tx : Out(1)
    button : In(1)
        Starts the program if the host has armed it.
    running : Out(1)
        The program runs, or a sampled operation is in flight.
    full : Out(1)
        PMBIRQ is asserted.
    sending : Out(1)
        An answer is being sent.
    collision : Out(1)
        Asserted for a tenth of a second after the last PMU event SAMPLE_COLLISION.
    """

    rx: In(1, init=1)
    tx: Out(1, init=1)
    button: In(1)
    running: Out(1)
    full: Out(1)
    sending: Out(1)
    collision: Out(1)

    def __init__(self, board: Board, divisor: int | None = None):
        check_type("board", board, Board)
        if divisor is not None:
            check_minimum("divisor", divisor, 2)
        self._board = board
        self._config = CONFIGS[board.config]
        self._divisor = divisor or board.clock_hz // board.baud
        super().__init__()

    @property
    def board(self) -> Board:
        """The board."""
        return self._board

    @property
    def config(self) -> SPUConfig:
        """The configuration of its SPU."""
        return self._config

    @property
    def divisor(self) -> int:
        """Clock cycles of a bit on the line."""
        return self._divisor

    def elaborate(self, platform):
        m = Module()

        m.submodules.spu = spu = SPU(self._config)
        m.submodules.program = program = operation_source(self._board)
        m.submodules.memory = memory = BufferMemory(self._config, self._board.half_bytes)
        m.submodules.registers = registers = BoardRegisters(self._board.number)
        m.submodules.server = server = Server(2 * self._board.half_bytes)
        connect(m, program.sampling, spu.sampling)
        connect(m, program.in_flight, spu.in_flight)
        connect(m, program.finish, spu.finish)
        connect(m, spu.write, memory.write)
        connect(m, server.sysreg, spu.sysreg)
        connect(m, server.drain, spu.drain)
        self._link(m, server)

        m.d.comb += [
            memory.address.eq(server.address),
            server.octet.eq(memory.octet),
            registers.number.eq(server.number),
            server.value.eq(registers.value),
            registers.write.eq(server.write),
            registers.wdata.eq(server.wdata),
            registers.idle.eq(program.idle),
            registers.irq.eq(spu.pmbirq),
            registers.button.eq(self.button),
            registers.events.operations.eq(program.sampling.valid),
            *(
                registers.events[event].eq(getattr(spu.pmu, f"sample_{event}"))
                for event in ("pop", "feed", "filtrate", "collision")
            ),
            program.run.eq(registers.run & (registers.keep | ~spu.pmbirq)),
        ]
        self._drive_state(m, spu.pe, program, server.sysreg)

        m.submodules.collision_led = collision = PulseStretcher(round(self._board.clock_hz * _LED_SECONDS))
        m.d.comb += [
            collision.strobe.eq(spu.pmu.sample_collision),
            self.running.eq(~program.idle),
            self.full.eq(spu.pmbirq),
            self.sending.eq(server.answer.valid),
            self.collision.eq(collision.level),
        ]

        return m

    def _link(self, m, server):
        m.submodules.receiver = receiver = UARTReceiver(self._divisor)
        m.submodules.commands = commands = CommandReceiver()
        m.submodules.answers = answers = AnswerSender()
        m.submodules.transmitter = transmitter = UARTTransmitter(self._divisor)
        connect(m, receiver.o, commands.i)
        connect(m, commands.o, server.command)
        connect(m, server.answer, answers.i)
        connect(m, server.payload, answers.payload)
        connect(m, answers.o, transmitter.i)
        m.d.comb += [receiver.rx.eq(self.rx), self.tx.eq(transmitter.tx)]

    def _drive_state(self, m, pe, program, sysreg):
        # EL1 has no access to the registers of EL2.
        driver_el = Mux(sysreg.op1 == PMSCR_EL2.op1, 2, 1)
        m.d.comb += [
            pe.el.eq(Mux(program.idle, driver_el, 0)),
            pe.ns.eq(1),
            pe.contextidr_el1.eq(PID),
            pe.count_enabled.eq(1),
            *([pe.mdcr_el2_e2pb.eq(_OWNED_BY_EL1)] if self._config.el2 else []),
            *([pe.mdcr_el3_nspb.eq(_OWNED_BY_EL1)] if self._config.el3 else []),
        ]
        with m.If(program.tick):
            m.d.sync += pe.physical_count.eq(pe.physical_count + 1)
