# amaranth: UnusedElaboratable=no

"""The boards' demonstration in the simulator, from reset to the bits on the line, and its parts."""

from collections.abc import Sequence
from typing import Any

import pytest
from amaranth.lib import wiring
from amaranth.sim import Simulator

from boards.core import LoopCore
from boards.driver import Driver
from boards.loop import ITERATIONS, LOOP, STRIDE
from boards.top import CONTEXT, Demonstration, Stretch
from boards.uart import BITS_PER_BYTE, RecordBytes, UARTTransmitter
from spurtle.arch import REGISTERS
from spurtle.config import CONFIGS
from spurtle_sim import decode
from spurtle_sim.reference.records import Sample, Start, encode, is_branch, is_memory

CONFIG = CONFIGS["minimal"]
START_UP = 6
"""Cycles from reset to the first operation: one for each register that the driver writes, and one until the last of
them has taken effect.
"""


def run(
    dut: wiring.Component, inputs: Sequence[Any], steps: Sequence[tuple[int, ...]], *outputs: Any
) -> list[tuple[int, ...]]:
    """From reset, one cycle for each of `steps`, which are the values of `inputs`: what `outputs` were in each."""
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


def received(line: Sequence[int], divisor: int) -> list[tuple[int, int]]:
    """What a UART receiver makes of the level of the line in each cycle: where each byte starts, and the byte."""
    octets: list[tuple[int, int]] = []
    now = 0
    while 0 in line[now:]:
        start = line.index(0, now)
        now = start + BITS_PER_BYTE * divisor
        frame = [line[bit : bit + divisor] for bit in range(start, now, divisor)]
        if now > len(line):
            break
        assert all(len(set(bit)) == 1 for bit in frame), "a level stands for a whole bit"
        assert frame[-1][0] == 1, "a stop bit"
        octets.append((start, sum(bit[0] << number for number, bit in enumerate(frame[1:-1]))))
    return octets


def rises(levels: Sequence[int]) -> list[int]:
    return [cycle for cycle in range(1, len(levels)) if levels[cycle] and not levels[cycle - 1]]


# The whole demonstration.


@pytest.mark.parametrize(("divisor", "cycles", "collides"), [(1, 4500, True), (2, 8000, False)])
def test_records_on_the_line_are_those_of_the_loop(divisor: int, cycles: int, collides: bool) -> None:
    buffer_records = 2
    dut = Demonstration(CONFIG, clock_hz=1000 * divisor, baud=1000, buffer_records=buffer_records)
    outputs = (dut.tx, dut.alive, dut.sending, dut.interrupt, dut.collision)
    line, alive, sending, interrupt, collision = zip(*run(dut, (), [()] * cycles, *outputs), strict=True)
    octets = received(line, divisor)
    data = bytes(octet for _, octet in octets)
    size = CONFIG.max_record_bytes
    records = [record for record in decode.records(data) if record.complete]
    assert len(records) == len(data) // size >= 2 * buffer_records - 1

    # The selections are one operation more than a multiple of 256 apart. An interrupt lets one pass uncounted.
    distance = 256 * dut.interval + 1
    selections = 0
    for number, record in enumerate(records):
        assert not record.problems
        interrupts = number // buffer_records
        assert record.pc is not None
        for _ in range(3):  # A few selections in a row may have collided, or were in flight when the buffer filled.
            selections += 1
            passed = selections * distance - 1 + interrupts
            step = LOOP[passed % len(LOOP)]
            if step.operation.pc == record.pc.address:
                break
        assert step.operation.pc == record.pc.address
        assert record.timestamp is not None
        if not interrupts:
            assert record.timestamp == START_UP + passed, "an operation a cycle"
        expected = Sample(
            start=Start(el=0, ns=1, contextidr_el1=CONTEXT, timestamp=record.timestamp, collect_pa=True),
            operation=step.in_iteration(passed // len(LOOP)),
            total=step.total,
            issue=step.issue,
            translation=step.translation,
        )
        assert data[number * size : (number + 1) * size] == encode(CONFIG, expected)

    begun = [start for start, _ in octets[::size]]
    assert len(rises(sending)) == len(begun)
    # At once, or when the record before has left the line.
    free = [0, *(start + 10 * divisor for start, _ in octets[size - 1 :: size])]
    assert all(
        rise < start <= max(rise + 1, end) for rise, start, end in zip(rises(sending), begun, free, strict=False)
    )
    ended = [start for start, _ in octets[buffer_records * size - 1 :: buffer_records * size]]
    assert len(rises(interrupt)) == len(ended)
    assert all(
        end < rise < end + 2 * BITS_PER_BYTE * divisor for rise, end in zip(rises(interrupt), ended, strict=True)
    )
    assert bool(rises(collision)) == collides
    assert len(rises(alive)) > 2


def test_baud_has_to_divide_the_clock() -> None:
    with pytest.raises(ValueError, match=r"^baud must divide clock_hz = 12000000, not 115200$"):
        Demonstration(CONFIG, clock_hz=12_000_000, baud=115_200)


# Its parts.


@pytest.mark.parametrize("index", range(len(LOOP)))
def test_core_follows_a_sampled_operation_to_its_end(index: int) -> None:
    dut = LoopCore(CONFIG)
    step = LOOP[index]
    # The program stops right behind the operation that is sampled.
    steps = [(1, 0)] * (index + 1) + [(0, 1)] + [(0, 0)] * step.total
    outputs = (dut.sampling.valid, dut.in_flight.issued, dut.in_flight.translating, dut.finish.valid, dut.idle)
    rows = run(dut, (dut.run, dut.sampling.sampled), steps, *outputs)
    valid, issued, translating, finished, idle = (
        [cycle - index for cycle, row in enumerate(rows) if row[column]] for column in range(len(outputs))
    )
    assert valid == list(range(-index, 1))
    assert issued == [step.issue]
    assert translating == list(range(step.issue + 1, step.issue + 1 + step.translation))
    assert finished == [step.total]
    assert idle == [step.total + 1]


def test_core_has_one_lane_and_one_slot() -> None:
    with pytest.raises(ValueError, match=r"^ops_per_cycle and slots must be 1, not 8 and 4$"):
        LoopCore(CONFIGS["v1p4"])


def test_driver_programs_and_serves() -> None:
    dut = Driver(CONFIG, interval=30, buffer_records=64)
    sysreg = dut.sysreg
    #                  pmbirq, idle, drain.done
    steps = [(0, 0, 0)] * 8 + [(1, 0, 0)] * 3 + [(1, 1, 0)] * 3 + [(1, 1, 1)] + [(1, 1, 0)] * 3 + [(0, 0, 0)] * 2
    rows = run(
        dut,
        (dut.pmbirq, dut.idle, dut.drain.done),
        steps,
        *(dut.run, dut.drain.request, sysreg.valid, sysreg.write, sysreg.op1, sysreg.crn),
        *(sysreg.crm, sysreg.op2, sysreg.wdata),
    )

    def write(name: str, value: int) -> tuple[int, ...]:
        register = next(register for register in REGISTERS if register.name == name)
        return 0, 0, 1, 1, register.op1, register.crn, register.crm, register.op2, value

    runs, stops, drains = (1, *[0] * 8), (0,) * 9, (0, 1, *[0] * 7)
    assert rows == [
        write("PMBPTR_EL1", 0xFFFF_0000_1000_0000),
        write("PMBLIMITR_EL1", 0xFFFF_0000_1000_1001),
        write("PMSIRR_EL1", 30 << 8),
        write("PMSICR_EL1", 0),
        write("PMSCR_EL1", 0b111001),
        stops,
        *[runs] * 3,  # The interrupt is in the last of them.
        *[stops] * 3,  # The core becomes idle in the last of them.
        *[drains] * 3,
        write("PMBPTR_EL1", 0xFFFF_0000_1000_0000),
        write("PMBSR_EL1", 0),
        stops,
        *[runs] * 2,
    ]


def test_bytes_of_a_record_and_its_end() -> None:
    dut = RecordBytes(CONFIG)
    beat = dut.i.beat
    beats = [(bytes(range(first, first + CONFIG.bus_bytes)), last) for first, last in ((1, 0), (101, 1), (201, 1))]
    ready = [1, 0, 0, 1, 1]
    steps: list[tuple[int, ...]] = []
    ends: list[int] = []
    for data, last in beats:
        taken = 0
        while taken < CONFIG.bus_bytes:
            steps.append((1, int.from_bytes(data, "little"), last, ready[len(steps) % len(ready)]))
            taken += steps[-1][-1]
        ends.append(len(steps) - 1)
    steps += [(0, 0, 0, 1)] * 3
    steps = [(valid, data, (1 << CONFIG.bus_bytes) - 1, last, ready) for valid, data, last, ready in steps]
    inputs = (beat.valid, beat.p.data, beat.p.strobe, beat.p.last, dut.o.ready)
    rows = run(dut, inputs, steps, dut.o.valid, dut.o.payload, beat.ready, dut.i.done)
    accepted = [number for number, step in enumerate(steps) if step[-1] and rows[number][0]]
    assert bytes(rows[number][1] for number in accepted) == b"".join(data for data, _ in beats)
    assert [number for number, row in enumerate(rows) if row[2] and steps[number][0]] == ends
    assert [number for number, row in enumerate(rows) if row[3]] == [ends[1] + 1, ends[2] + 1]


def test_bytes_that_a_beat_does_not_write_are_not_sent() -> None:
    dut = RecordBytes(CONFIG)
    beat = dut.i.beat
    data, strobe = bytes(range(1, CONFIG.bus_bytes + 1)), 0b0110
    step = (1, int.from_bytes(data, "little"), strobe, 1, 1)
    inputs = (beat.valid, beat.p.data, beat.p.strobe, beat.p.last, dut.o.ready)
    rows = run(dut, inputs, [step] * CONFIG.bus_bytes, dut.o.valid, dut.o.payload, beat.ready)
    assert [payload for valid, payload, _ in rows if valid] == [2, 3]
    assert [ready for *_, ready in rows] == [0] * (CONFIG.bus_bytes - 1) + [1]


@pytest.mark.parametrize("divisor", [1, 2, 5])
def test_uart_sends_byte_after_byte_without_a_gap(divisor: int) -> None:
    dut = UARTTransmitter(divisor)
    content = [0x00, 0xFF, 0x55, 0xA3]
    byte_cycles = BITS_PER_BYTE * divisor
    idle = 7
    # A byte is taken in the first cycle in which it is offered to an idle line, then one at the end of each.
    steps = [(0, 0)] * idle + [(1, content[0])]
    for octet in content[1:]:
        steps += [(1, octet)] * byte_cycles
    steps += [(0, 0)] * 2 * byte_cycles
    line, ready = zip(*run(dut, (dut.i.valid, dut.i.payload), steps, dut.tx, dut.i.ready), strict=True)
    octets = received(line, divisor)
    assert [octet for _, octet in octets] == content
    assert [start for start, _ in octets] == [idle + 1 + number * byte_cycles for number in range(len(content))]
    assert all(ready[idle + number * byte_cycles] for number in range(len(content)))


def test_uart_needs_a_cycle_for_a_bit() -> None:
    with pytest.raises(ValueError, match=r"^divisor must be at least 1, not 0$"):
        UARTTransmitter(0)


def test_stretch_counts_from_the_last_strobe() -> None:
    dut = Stretch(4)
    strobes = [0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0]
    levels = [level for (level,) in run(dut, (dut.strobe,), [(strobe,) for strobe in strobes], dut.level)]
    assert levels == [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]


# The loop as data.


def test_each_operation_of_the_loop_leads_to_the_next() -> None:
    for step, following in zip(LOOP, LOOP[1:] + LOOP[:1], strict=True):
        operation = step.operation
        if is_branch(operation.facts):
            assert operation.target.address == following.operation.pc
            assert operation.facts.taken or operation.target.address == operation.pc + 4
        else:
            assert following.operation.pc == operation.pc + 4


def test_the_loop_is_possible() -> None:
    for step in LOOP:
        facts = step.operation.facts
        # `issued` and `finish` answer `sampled`; the latest that fits into the slot's counters.
        assert 1 <= step.issue <= step.issue + step.translation < step.total < 1 << CONFIG.counter_bits
        assert step.total >= 2
        assert is_memory(facts) == facts.va_valid or is_branch(facts)
        assert not step.operation.events >> (8 * CONFIG.events_bytes)
        assert step.operation.va % (ITERATIONS * STRIDE) == step.operation.pa % (ITERATIONS * STRIDE) == 0
    kinds = {(is_memory(step.operation.facts), is_branch(step.operation.facts)) for step in LOOP}
    assert kinds == {(True, False), (False, True), (False, False)}
