"""Execution of commands: accesses to System registers, to registers of the board and to the buffer memory."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from spurtle.gateware.fsm import FSMState
from spurtle.interface.memory import DrainSignature
from spurtle.interface.sysreg import ACCESS_LATENCY, AccessOutcome, SystemRegisterSignature
from spurtle.support.arguments import check_minimum, check_range, check_type

from .protocol import (
    ANSWER,
    BOARD,
    CHUNK_BYTES,
    COMMAND,
    COUNT_BITS,
    MAGIC,
    REFUSED,
    WORD_BYTES,
    BoardRegister,
    CommandOperation,
)

__all__ = ["COUNTED", "BoardRegisters", "Server", "ServerState"]

COUNTED = tuple(BoardRegister(number) for number in range(BoardRegister.OPERATIONS, len(BoardRegister)))
"""Registers that count events, in order of their numbers."""


class BoardRegisters(wiring.Component):
    """Registers of the board: identity, control of the program, status and counters.

    Timing: `value` is valid in the same cycle as `number`; a write takes effect in the next cycle.
    Reset: the program is stopped, all counters are zero.

    Parameters
    ----------
    identity : int
        Number of the board, 0 to 255.

    Members
    -------
    number : In(range(len(BoardRegister)))
        Register that is read or written.
    value : Out(64)
    write : In(1)
    wdata : In(64)
    idle, irq : In(1)
        Bits of STATUS.
    button : In(1)
        May bounce: the first high level clears ARM.
    events : In
        One bit for each register of COUNTED, with its name in lower case: counts up while asserted.
    run, keep : Out(1)
        Bits of CONTROL.
    """

    def __init__(self, identity: int):
        check_type("identity", identity, int)
        check_range("identity", identity, 0, 0xFF)
        self._identity = identity
        super().__init__(
            {
                "number": In(range(len(BoardRegister))),
                "value": Out(8 * WORD_BYTES),
                "write": In(1),
                "wdata": In(8 * WORD_BYTES),
                "idle": In(1),
                "irq": In(1),
                "button": In(1),
                "events": In(data.StructLayout({register.name.lower(): 1 for register in COUNTED})),
                "run": Out(1),
                "keep": Out(1),
            }
        )

    @property
    def identity(self) -> int:
        """Number of the board."""
        return self._identity

    def elaborate(self, platform):
        m = Module()

        armed = Signal()
        control = Cat(self.run, self.keep, armed)  # order of `protocol.ControlBits`
        with m.If(self.write & (self.number == BoardRegister.CONTROL)):
            m.d.sync += control.eq(self.wdata)
        with m.Elif(self.button & armed):
            m.d.sync += [self.run.eq(1), armed.eq(0)]

        values = {
            BoardRegister.IDENTITY: Const(MAGIC | self._identity, 8 * WORD_BYTES),
            BoardRegister.CONTROL: control,
            BoardRegister.STATUS: Cat(self.idle, self.irq),  # order of `protocol.Status`
        }
        for register in COUNTED:
            values[register] = count = Signal(COUNT_BITS, name=register.name.lower())
            m.d.sync += count.eq(count + self.events[register.name.lower()])
        with m.Switch(self.number):
            for register, value in values.items():
                with m.Case(register):
                    m.d.comb += self.value.eq(value)

        return m


class ServerState(FSMState):
    """States of `Server`."""

    COMMAND = 0
    ANSWER = 1
    FETCH = 2
    ACCESS = 3
    DRAIN = 4
    ACCESSED = 5


class Server(wiring.Component):
    """Server of the host, which executes one command at a time.

    Timing: an access to a System register takes `ACCESS_LATENCY` + 2 cycles, an access to a register of the board one
    cycle, and DRAIN as long as PSB CSYNC. A byte of memory is offered two cycles after the previous byte was accepted.
    Reset: no command is in progress. A first WRITE with tag 0 would not be executed, because the tag of the previous
    command is 0; a host therefore begins with a READ.

    Parameters
    ----------
    memory_bytes : int
        Size of the buffer memory.

    Members
    -------
    command : In(stream of COMMAND)
        Accepted with its last answer.
    answer : Out(stream of ANSWER)
    payload : Out(stream of 8)
    sysreg : Out(SystemRegisterSignature)
    drain : Out(DrainSignature)
    number, value, write, wdata
        Ports of `BoardRegisters`.
    address : Out(range(memory_bytes))
    octet : In(8)
        Byte at `address` of the previous cycle.
    """

    def __init__(self, memory_bytes: int):
        check_minimum("memory_bytes", memory_bytes, 1)
        self._memory_bytes = memory_bytes
        super().__init__(
            {
                "command": In(stream.Signature(COMMAND.layout)),
                "answer": Out(stream.Signature(ANSWER.layout)),
                "payload": Out(stream.Signature(8)),
                "sysreg": Out(SystemRegisterSignature()),
                "drain": Out(DrainSignature()),
                "number": Out(range(len(BoardRegister))),
                "value": In(8 * WORD_BYTES),
                "write": Out(1),
                "wdata": Out(8 * WORD_BYTES),
                "address": Out(range(memory_bytes)),
                "octet": In(8),
            }
        )

    @property
    def memory_bytes(self) -> int:
        """Size of the buffer memory, in bytes."""
        return self._memory_bytes

    def elaborate(self, platform):
        m = Module()

        command = self.command.p
        m.d.comb += Cat(getattr(self.sysreg, name) for name in ("op2", "crm", "crn", "op1")).eq(command.address)
        of_board = command.address[BOARD.bit_length() - 1]
        number = command.address[: BOARD.bit_length() - 1]
        m.d.comb += [
            self.sysreg.write.eq(command.operation == CommandOperation.WRITE),
            self.sysreg.wdata.eq(command.data),
            self.number.eq(number),
            self.wdata.eq(command.data),
        ]

        last_tag = Signal.like(command.tag)
        outcome = Signal(8)
        word = Signal(8 * WORD_BYTES)
        remaining = Signal(16)  # bytes of memory to be sent: the low 16 bits of `data`
        settled = Signal()  # `octet` is the byte at `address`; the memory takes one cycle
        fetching = Signal()
        m.d.comb += [
            self.answer.p.tag.eq(command.tag),
            self.answer.p.outcome.eq(outcome),
            self.answer.p.address.eq(command.address),
            self.answer.p.length.eq(WORD_BYTES),
            self.payload.payload.eq(Mux(fetching, self.octet, word)),
            self.payload.valid.eq(settled),
        ]
        accepted = Signal()
        m.d.comb += accepted.eq(self.payload.valid & self.payload.ready)
        m.d.sync += settled.eq(~accepted)
        with m.If(accepted):
            m.d.sync += [word.eq(word >> 8), self.address.eq(self.address + 1), remaining.eq(remaining - 1)]

        known = Signal()
        m.d.comb += known.eq(
            (command.operation <= CommandOperation.WRITE) & (~of_board | (number < len(BoardRegister)))
        )
        repeated = Signal()
        m.d.comb += repeated.eq((command.operation == CommandOperation.WRITE) & (command.tag == last_tag))

        with m.FSM(name="server"):
            with m.State(ServerState.COMMAND):
                m.d.sync += [self.address.eq(command.address), remaining.eq(command.data)]
                with m.If(self.command.valid):
                    m.d.sync += last_tag.eq(command.tag)
                    self._start(m, of_board, number, known, repeated, outcome, word)
            self._access(m, outcome, word)
            self._answer(m, fetching, remaining)

        return m

    def _start(self, m, of_board, number, known, repeated, outcome, word):
        """Start the execution of a command. Registers of the board are accessed in this cycle."""
        command = self.command.p
        with m.If(repeated):
            m.next = ServerState.ANSWER
        with m.Elif(command.operation == CommandOperation.FETCH):
            m.d.sync += outcome.eq(AccessOutcome.VALUE)
            m.next = ServerState.FETCH
        with m.Elif(~known):
            m.d.sync += outcome.eq(REFUSED)
            m.next = ServerState.ANSWER
        with m.Elif(~of_board):
            m.next = ServerState.ACCESS
        with m.Else():
            m.d.comb += self.write.eq(command.operation == CommandOperation.WRITE)
            m.d.sync += [outcome.eq(AccessOutcome.VALUE), word.eq(self.value)]
            m.next = ServerState.ANSWER
            with m.If(number == BoardRegister.DRAIN):
                m.next = ServerState.DRAIN

    def _access(self, m, outcome, word):
        """Add the states of an access to a System register, and of PSB CSYNC."""
        with m.State(ServerState.ACCESS):
            m.d.comb += self.sysreg.valid.eq(1)
            m.next = ServerState.ACCESSED

        waiting = Signal(ACCESS_LATENCY)  # one-hot: cycles since the access
        m.d.sync += waiting.eq(Cat(self.sysreg.valid, waiting))
        with m.State(ServerState.ACCESSED):
            m.d.sync += [outcome.eq(self.sysreg.outcome), word.eq(self.sysreg.rdata)]
            with m.If(waiting[-1]):
                m.next = ServerState.ANSWER

        with m.State(ServerState.DRAIN):
            m.d.comb += self.drain.request.eq(1)
            with m.If(self.drain.done):
                m.next = ServerState.ANSWER

    def _answer(self, m, fetching, remaining):
        """Add the states in which the command is answered: with a word, and with bytes of memory."""
        with m.State(ServerState.ANSWER):
            m.d.comb += self.answer.valid.eq(1)
            with m.If(self.answer.ready):
                m.d.comb += self.command.ready.eq(1)
                m.next = ServerState.COMMAND

        with m.State(ServerState.FETCH):
            # The fields of the answer are sent before the first byte of the payload changes `address` and `remaining`.
            m.d.comb += [
                fetching.eq(1),
                self.answer.valid.eq(1),
                self.answer.p.address.eq(self.address),
                self.answer.p.length.eq(Mux(remaining > CHUNK_BYTES, CHUNK_BYTES, remaining)),
            ]
            with m.If(self.answer.ready & (remaining == 0)):
                m.d.comb += self.command.ready.eq(1)
                m.next = ServerState.COMMAND
