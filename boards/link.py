"""Conversion of UART bytes to commands and of answers to UART bytes, in the formats of `boards.protocol`."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from spurtle.gateware.fsm import FSMState

from .protocol import ANSWER, CHUNK_BYTES, COMMAND, CRC, CRC_BYTES, SYNC

__all__ = ["AnswerSender", "AnswerState", "CommandReceiver", "CommandState"]


class CommandState(FSMState):
    """States of `CommandReceiver`."""

    SYNC = 0
    FRAME = 1
    CHECK = 2
    OFFER = 3


class CommandReceiver(wiring.Component):
    """Assembler of commands from bytes. Bytes outside of a frame, and frames with a wrong CRC, are dropped silently.

    While a command is offered, received bytes are dropped: the host waits for the answer before it sends more. A frame
    with missing bytes takes them from the bytes that follow. As many zeros as a command frame has bytes end it.

    Timing: `o.valid` is asserted two cycles after the last byte.
    Reset: waits for SYNC.

    Members
    -------
    i : In(stream of 8)
        Always ready.
    o : Out(stream of COMMAND)
    """

    i: In(stream.Signature(8, always_ready=True))
    o: Out(stream.Signature(COMMAND.layout))

    def elaborate(self, platform):
        m = Module()

        m.submodules.crc = crc = CRC(data_width=8).create()
        octets = Signal(8 * (COMMAND.size + CRC_BYTES))
        count = Signal(range(COMMAND.size + CRC_BYTES))
        m.d.comb += [crc.data.eq(self.i.payload), self.o.payload.eq(octets)]

        with m.FSM(name="command"):
            with m.State(CommandState.SYNC):
                m.d.comb += crc.start.eq(1)
                m.d.sync += count.eq(COMMAND.size + CRC_BYTES - 1)
                with m.If(self.i.valid & (self.i.payload == SYNC)):
                    m.next = CommandState.FRAME

            with m.State(CommandState.FRAME):
                m.d.comb += crc.valid.eq(self.i.valid)
                with m.If(self.i.valid):
                    m.d.sync += [octets.eq(Cat(octets, self.i.payload)[8:]), count.eq(count - 1)]
                    with m.If(count == 0):
                        m.next = CommandState.CHECK

            with m.State(CommandState.CHECK):
                with m.If(crc.match_detected):
                    m.next = CommandState.OFFER
                with m.Else():
                    m.next = CommandState.SYNC

            with m.State(CommandState.OFFER):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.next = CommandState.SYNC

        return m


class AnswerState(FSMState):
    """States of `AnswerSender`."""

    SYNC = 0
    HEAD = 1
    PAYLOAD = 2
    CRC = 3


class AnswerSender(wiring.Component):
    """Sender that serializes answers to bytes.

    Timing: at most one byte in each cycle, and none in the cycle before the CRC.
    Reset: waits for an answer.

    Members
    -------
    i : In(stream of ANSWER)
        Accepted with the last byte of its frame.
    payload : In(stream of 8)
        `i.p.length` bytes for each answer.
    o : Out(stream of 8)
    """

    i: In(stream.Signature(ANSWER.layout))
    payload: In(stream.Signature(8))
    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()

        m.submodules.crc = crc = CRC(data_width=8).create()
        remaining = Signal(range(CHUNK_BYTES + 1))
        index = Signal(range(ANSWER.size))
        m.d.comb += crc.data.eq(self.o.payload)

        with m.FSM(name="answer"):
            with m.State(AnswerState.SYNC):
                m.d.comb += [crc.start.eq(1), self.o.valid.eq(self.i.valid), self.o.payload.eq(SYNC)]
                m.d.sync += [index.eq(0), remaining.eq(self.i.p.length)]
                with m.If(self.o.valid & self.o.ready):
                    m.next = AnswerState.HEAD

            with m.State(AnswerState.HEAD):
                m.d.comb += [
                    self.o.valid.eq(1),
                    self.o.payload.eq(self.i.p.as_value().word_select(index, 8)),
                    crc.valid.eq(self.o.ready),
                ]
                with m.If(self.o.ready):
                    m.d.sync += index.eq(index + 1)
                    with m.If(index == ANSWER.size - 1):
                        m.d.sync += index.eq(0)
                        m.next = AnswerState.PAYLOAD

            with m.State(AnswerState.PAYLOAD):
                with m.If(remaining == 0):
                    m.next = AnswerState.CRC
                with m.Else():
                    m.d.comb += [
                        self.o.valid.eq(self.payload.valid),
                        self.o.payload.eq(self.payload.payload),
                        self.payload.ready.eq(self.o.ready),
                        crc.valid.eq(self.o.valid & self.o.ready),
                    ]
                    with m.If(crc.valid):
                        m.d.sync += remaining.eq(remaining - 1)

            with m.State(AnswerState.CRC):
                m.d.comb += [self.o.valid.eq(1), self.o.payload.eq(Mux(index[0], crc.crc[:8], crc.crc[8:]))]
                with m.If(self.o.ready):
                    m.d.sync += index.eq(index + 1)
                    with m.If(index[0]):
                        m.d.comb += self.i.ready.eq(1)
                        m.next = AnswerState.SYNC

        return m
