# amaranth: UnusedElaboratable=no

"""Link between a board and its host: UART, frames and commands. `test_complete_board.py` tests complete boards."""

import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from amaranth.lib import wiring
from amaranth.sim import Simulator
from hypothesis import given
from hypothesis import strategies as st

from boards.demonstration import PulseStretcher
from boards.host.link import Answer, Deframer, Link, LinkError, crc, open_port
from boards.link import AnswerSender, CommandReceiver
from boards.memory import BufferMemory
from boards.protocol import (
    ANSWER,
    BOARD,
    CHUNK_BYTES,
    COMMAND,
    CRC,
    CRC_BYTES,
    MAGIC,
    REFUSED,
    SYNC,
    BoardRegister,
    CommandOperation,
    Frame,
)
from boards.uart import BITS_PER_BYTE, UARTReceiver, UARTTransmitter
from spurtle.arch import PAGE_BYTES
from spurtle.config import CONFIGS
from spurtle.support.errors import UserError
from tests.support.paths import ROOT
from tests.support.seeds import SEED

CONFIG = CONFIGS["minimal"]


def run(
    dut: wiring.Component, inputs: Sequence[Any], steps: Sequence[tuple[int, ...]], *outputs: Any
) -> list[tuple[int, ...]]:
    """Simulate one cycle for each of `steps`, the values of `inputs`, and return the values of `outputs` in each."""
    rows: list[tuple[int, ...]] = []

    async def play(ctx: Any) -> None:
        for step in steps:
            for signal, value in zip(inputs, step, strict=True):
                ctx.set(signal, value)
            _, _, *values = await ctx.tick().sample(*outputs)
            rows.append(tuple(values))

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(play)
    simulator.run()
    return rows


def levels_of(octets: Sequence[int], divisor: int) -> list[int]:
    """Return the level of the line in each cycle while bytes are sent without a gap."""
    return [
        level for octet in octets for level in (0, *(octet >> bit & 1 for bit in range(8)), 1) for _ in range(divisor)
    ]


def framed(frame: Frame, payload: bytes = b"", **fields: int) -> bytes:
    body = frame.pack(**fields) + payload
    return bytes([SYNC]) + body + crc(body).to_bytes(CRC_BYTES, "big")


def test_host_and_board_have_the_same_crc() -> None:
    data = random.Random(SEED).randbytes(50)
    assert CRC(data_width=8).compute(data) == crc(data)


def test_documented_protocol_matches_the_code() -> None:
    page = (ROOT / "docs" / "reference" / "protocol.md").read_text()
    tables = [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
        for part in re.split(r"\n\n", page)
    ]
    commands, answers, registers = (rows[2:] for rows in tables if rows)
    for rows, frame in ((commands, COMMAND), (answers, ANSWER)):
        sizes = {name: int(size) for name, size, _ in rows if size}
        assert sizes == {"SYNC": 1, **frame.fields, "CRC": CRC_BYTES}
        assert rows[0][2] == f"{SYNC:#X}".replace("X", "x")
    assert re.findall(r"(\d+) ([A-Z]+)", commands[2][2]) == [
        (str(int(number)), number.name) for number in CommandOperation
    ]
    assert f"0x{REFUSED:X} unknown to the board" in answers[2][2]
    assert f"at most {CHUNK_BYTES} of memory" in answers[4][2]
    assert f"in pieces of {CHUNK_BYTES} bytes" in page
    assert f"bit {BOARD.bit_length() - 1} set" in page
    assert MAGIC.to_bytes(8, "little").strip(b"\0") == b"spurtle"
    numbers = [int(number) for row in registers[:-1] for number in row[:1]]
    assert numbers == [int(number) for number in BoardRegister if number < BoardRegister.POP]
    assert [row[1] for row in registers[:-1]] == [number.name for number in BoardRegister if number < BoardRegister.POP]
    counted = [number for number in BoardRegister if number >= BoardRegister.POP]
    assert registers[-1][:2] == [
        f"{int(counted[0])} to {int(counted[-1])}",
        ", ".join(number.name for number in counted),
    ]


# UART.


@pytest.mark.parametrize("divisor", [1, 2, 5])
def test_uart_sends_bytes_without_a_gap(divisor: int) -> None:
    dut = UARTTransmitter(divisor)
    content = [0x00, 0xFF, 0x55, 0xA3]
    idle = 7
    # An idle transmitter accepts a byte immediately; after that it accepts one at the end of each byte.
    steps = [(0, 0)] * idle + [(1, content[0])]
    for octet in content[1:]:
        steps += [(1, octet)] * (BITS_PER_BYTE * divisor)
    steps += [(0, 0)] * 2 * BITS_PER_BYTE * divisor
    line = [tx for (tx,) in run(dut, (dut.i.valid, dut.i.payload), steps, dut.tx)]
    expected = levels_of(content, divisor)
    assert line[: idle + 1] == [1] * (idle + 1)
    assert line[idle + 1 :][: len(expected)] == expected
    assert set(line[idle + 1 + len(expected) :]) == {1}


@pytest.mark.parametrize("divisor", [2, 3, 12])
def test_uart_receives(divisor: int) -> None:
    dut = UARTReceiver(divisor)
    content = [0x00, 0xFF, 0x55, 0xA3, SYNC]
    line = [1] * 5 + levels_of(content[:3], divisor) + [1] * 7 + levels_of(content[3:], divisor) + [1] * divisor
    rows = run(dut, (dut.rx,), [(level,) for level in line], dut.o.valid, dut.o.payload)
    assert [payload for valid, payload in rows if valid] == content


@pytest.mark.parametrize("percent", [-4, 4])
def test_uart_receives_from_another_clock(percent: int) -> None:
    divisor = 25
    dut = UARTReceiver(divisor)
    content = [0x00, 0xFF, 0x55, 0xA3]
    ideal = [1] * 30 + levels_of(content, divisor) + [1] * 30
    line = [ideal[min(cycle * 100 // (100 + percent), len(ideal) - 1)] for cycle in range(len(ideal) * 105 // 100)]
    rows = run(dut, (dut.rx,), [(level,) for level in line], dut.o.valid, dut.o.payload)
    assert [payload for valid, payload in rows if valid] == content


def test_uart_rejects_a_glitch_and_a_break() -> None:
    dut = UARTReceiver(8)
    line = [1] * 8 + [0] * 3 + [1] * 100 + [0] * 8 * 17 + [1] * 100 + levels_of([0x5A], 8) + [1] * 8
    rows = run(dut, (dut.rx,), [(level,) for level in line], dut.o.valid, dut.o.payload)
    assert [payload for valid, payload in rows if valid] == [0x5A]


def test_invalid_divisor_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^divisor must be at least 1, not 0$"):
        UARTTransmitter(0)
    with pytest.raises(ValueError, match=r"^divisor must be at least 2, not 1$"):
        UARTReceiver(1)


# Frames.


def received(octets: bytes) -> list[tuple[int, ...]]:
    """Return the commands that `CommandReceiver` finds in bytes with two cycles between them."""
    dut = CommandReceiver()
    steps = [step for octet in octets for step in ((1, octet, 1), (0, 0, 1), (0, 0, 1))] + [(0, 0, 1)] * 4
    fields = [getattr(dut.o.p, name) for name in COMMAND.fields]
    rows = run(dut, (dut.i.valid, dut.i.payload, dut.o.ready), steps, dut.o.valid, *fields)
    return [tuple(values) for valid, *values in rows if valid]


FIRST = {"tag": 7, "operation": CommandOperation.WRITE, "address": 0x24D5, "data": 0x0123_4567_89AB_CDEF}
SECOND = {"tag": SYNC, "operation": CommandOperation.READ, "address": SYNC, "data": 0}


def test_commands_are_received() -> None:
    stream = b"\x00\x12" + framed(COMMAND, **FIRST) + framed(COMMAND, **SECOND)
    assert received(stream) == [tuple(FIRST.values()), tuple(SECOND.values())]


@pytest.mark.parametrize("bit", range(8, 8 * (1 + COMMAND.size + CRC_BYTES), 7))
def test_command_with_a_wrong_bit_is_dropped(bit: int) -> None:
    frame = bytearray(framed(COMMAND, **FIRST))
    frame[bit // 8] ^= 1 << bit % 8
    assert received(bytes(frame) + framed(COMMAND, **SECOND)) == [tuple(SECOND.values())]


@pytest.mark.parametrize("count", range(1, 1 + COMMAND.size + CRC_BYTES))
def test_zeros_end_an_incomplete_command(count: int) -> None:
    frame = framed(COMMAND, **FIRST)
    assert received(frame[:count] + bytes(len(frame)) + framed(COMMAND, **SECOND)) == [tuple(SECOND.values())]


@pytest.mark.parametrize("length", [0, 1, 8])
def test_answer_is_sent_as_a_frame(length: int) -> None:
    dut = AnswerSender()
    payload = random.Random(f"{SEED} {length}").randbytes(length)
    head = {"tag": 3, "outcome": 1, "address": 0x1234, "length": length}
    rng = random.Random(SEED)
    sent = bytearray()

    async def play(ctx: Any) -> None:
        for name, value in head.items():
            ctx.set(getattr(dut.i.p, name), value)
        ctx.set(dut.i.valid, 1)
        answer_accepted = False
        index = 0
        while not answer_accepted:
            ctx.set(dut.o.ready, rng.randrange(2))
            ctx.set(dut.payload.valid, offered := rng.randrange(2) if index < length else 0)
            ctx.set(dut.payload.payload, payload[index] if offered else 0xEE)
            _, _, valid, octet, ready, payload_ready, answer_accepted = await ctx.tick().sample(
                dut.o.valid, dut.o.payload, dut.o.ready, dut.payload.ready, dut.i.ready
            )
            if valid and ready:
                sent.append(octet)
            index += offered and payload_ready

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(play)
    simulator.run()
    assert bytes(sent) == framed(ANSWER, payload, **head)
    assert list(Deframer().feed(bytes(sent))) == [Answer(3, 1, 0x1234, payload)]


ANSWERS = st.builds(
    Answer,
    tag=st.integers(0, 255),
    outcome=st.integers(0, 255),
    address=st.integers(0, 65535),
    payload=st.binary(max_size=CHUNK_BYTES) | st.lists(st.just(SYNC), max_size=20).map(bytes),
)


def answer_frame(answer: Answer) -> bytes:
    return framed(
        ANSWER,
        answer.payload,
        tag=answer.tag,
        outcome=answer.outcome,
        address=answer.address,
        length=len(answer.payload),
    )


@given(st.lists(ANSWERS, min_size=1, max_size=4), st.data())
def test_only_the_damaged_frame_is_lost(answers: list[Answer], data: st.DataObject) -> None:
    frames = [answer_frame(answer) for answer in answers]
    damaged = data.draw(st.integers(0, len(frames) - 1))
    frame = bytearray(frames[damaged])
    if data.draw(st.booleans()):
        offset = data.draw(st.integers(0, len(frame) - 1))
        frame[offset] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del frame[data.draw(st.integers(0, len(frame) - 1))]
    frames[damaged] = bytes(frame)
    stream = b"".join(frames)
    deframer = Deframer()
    cut = data.draw(st.integers(0, len(stream)))
    arrived = [*deframer.feed(stream[:cut]), *deframer.feed(stream[cut:]), *deframer.flush()]
    assert arrived == answers[:damaged] + answers[damaged + 1 :]
    assert deframer.skipped == len(frame)


# The host, with missing and wrong answers.


class FakePort:
    """Port of a board that answers each command with the bytes that `answer` returns."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self._pending = b""
        self.commands: list[dict[str, int]] = []

    def write(self, data: bytes, /) -> int:
        if any(data):  # `Link` also sends zeros, which end an incomplete command
            self.commands.append(COMMAND.unpack(data[1:-CRC_BYTES]))
            self._pending += self._answer(len(self.commands), self.commands[-1])
        return len(data)

    @property
    def in_waiting(self) -> int:
        return len(self._pending)

    def read(self, size: int = 1) -> bytes:
        octets, self._pending = self._pending[:size], self._pending[size:]
        return octets


def word(command: dict[str, int], value: int = 0, outcome: int = 0) -> bytes:
    return framed(
        ANSWER,
        value.to_bytes(8, "little"),
        tag=command["tag"],
        outcome=outcome,
        address=command["address"],
        length=8,
    )


def identity(answer: Any) -> Any:
    """Return `answer` with an exception: the first command, which reads IDENTITY, is answered correctly."""
    return lambda count, command: word(command, MAGIC | 9) if count == 1 else answer(count, command)


def test_command_without_an_answer_is_sent_again_with_its_tag() -> None:
    port = FakePort(identity(lambda count, command: word(command, 77) if count == 4 else b""))
    link = Link(port, timeout=0.01)
    assert link.board == 9
    assert link.read(BoardRegister.POP) == 77
    assert link.resent == 2
    assert port.commands[1:] == [port.commands[1]] * 3


def test_answer_to_an_earlier_command_is_ignored() -> None:
    port = FakePort(identity(lambda _, command: word(command | {"tag": command["tag"] ^ 1}, 1) + word(command, 2)))
    assert Link(port, timeout=0.01).read(BoardRegister.POP) == 2


def test_silent_board_is_reported() -> None:
    with pytest.raises(LinkError, match=r"^the board does not answer: READ of IDENTITY was sent 8 times$"):
        Link(FakePort(lambda *_: b""), timeout=0.01)


def test_other_device_is_refused() -> None:
    message = r"^the device is not a board of Spurtle: its IDENTITY is 0x0000000000001234$"
    with pytest.raises(LinkError, match=message):
        Link(FakePort(lambda _, command: word(command, 0x1234)), timeout=0.01)


def test_lost_bytes_of_memory_are_counted() -> None:
    """The second of three chunks is always incomplete."""

    def answer(_: int, command: dict[str, int]) -> bytes:
        out = b""
        for address in range(command["address"], command["address"] + command["data"], CHUNK_BYTES):
            size = min(CHUNK_BYTES, command["address"] + command["data"] - address)
            frame = framed(ANSWER, b"x" * size, tag=command["tag"], outcome=0, address=address, length=size)
            out += frame[: 40 if address == CHUNK_BYTES else None]
        return out

    port = FakePort(identity(answer))
    link = Link(port, timeout=0.01)
    assert link.fetch(0, 2 * CHUNK_BYTES + 9) == b"x" * CHUNK_BYTES + bytes(CHUNK_BYTES) + b"x" * 9
    assert (link.lost, link.damaged) == (CHUNK_BYTES, 8)
    assert link.fetch(7, 0) == b""
    assert [command["data"] for command in port.commands[1:]] == [2 * CHUNK_BYTES + 9, *[CHUNK_BYTES] * 7]


def test_fetch_from_a_silent_board_is_reported() -> None:
    port = FakePort(identity(lambda *_: b""))
    with pytest.raises(LinkError, match=r"^the board does not answer: FETCH was sent 8 times$"):
        Link(port, timeout=0.01).fetch(0, 2048)


@pytest.mark.parametrize(("name", "baud"), [("/nowhere/tty", 1_000_000), ("/dev/null", 1 << 40)])
def test_unusable_port_is_refused(name: str, baud: int) -> None:
    with pytest.raises(UserError, match=rf"^cannot open the serial port '{name}': "):
        open_port(name, baud)


def test_answer_to_another_host_is_ignored() -> None:
    other = framed(ANSWER, b"x" * CHUNK_BYTES, tag=1, outcome=0, address=0, length=CHUNK_BYTES)
    port = FakePort(lambda _, command: other + word(command, MAGIC | 9))
    assert Link(port, timeout=0.01).board == 9


# Other parts of a board.


def test_halves_of_the_buffer_are_the_ends_of_pages() -> None:
    half_bytes = 64
    dut = BufferMemory(CONFIG, half_bytes)
    beats = {
        half * PAGE_BYTES + PAGE_BYTES - half_bytes + 8 * word: 16 * half + word for half in (0, 1) for word in range(8)
    }
    beat = dut.write.beat
    octets: dict[int, int] = {}

    async def play(ctx: Any) -> None:
        ctx.set(beat.valid, 1)
        for address, content in beats.items():
            ctx.set(beat.p.address, 0xFFFF_0000_1000_0000 + address)
            ctx.set(beat.p.data, int.from_bytes(bytes([content] * 8), "little"))
            ctx.set(beat.p.strobe, 0xFF)
            ctx.set(beat.p.last, 1)
            assert ctx.get(beat.ready)
            await ctx.tick()
            assert ctx.get(dut.write.done)
        ctx.set(beat.p.strobe, 1 << 3)
        ctx.set(beat.p.data, 0xEE << 24)
        ctx.set(beat.p.last, 0)
        await ctx.tick()
        assert not ctx.get(dut.write.done)
        ctx.set(beat.valid, 0)
        for address in range(2 * half_bytes):
            ctx.set(dut.address, address)
            await ctx.tick()
            octets[address] = ctx.get(dut.octet)

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(play)
    simulator.run()
    expected = [content for content in beats.values() for _ in range(8)]
    expected[15 * 8 + 3] = 0xEE  # the only byte with a strobe
    assert list(octets.values()) == expected


def test_half_larger_than_a_page_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^half_bytes must be at most 4096, not 8192$"):
        BufferMemory(CONFIG, 8192)


def test_pulse_is_stretched_from_the_last_strobe() -> None:
    dut = PulseStretcher(4)
    strobes = [0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    levels = [level for (level,) in run(dut, (dut.strobe,), [(strobe,) for strobe in strobes], dut.level)]
    assert levels == [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
