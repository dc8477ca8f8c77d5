"""The demonstration: the SPU, a core that runs a loop, a driver, and a UART. On a board, and without one."""

from amaranth import *
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out, connect

from spurtle.config import CONFIGS, SPUConfig
from spurtle.spu import SPU

from .core import LoopCore
from .driver import Driver
from .uart import BITS_PER_BYTE, RecordBytes, UARTTransmitter

__all__ = ["CONTEXT", "Demonstration", "Stretch", "Top"]

CONTEXT = 1234
"""CONTEXTIDR_EL1 of the program: what perf calls its process."""

_LED_SECONDS = 0.1


class Stretch(wiring.Component):
    """Makes a strobe long enough to be seen.

    Members
    -------
    strobe : In(1)
    level : Out(1)
        High for so many cycles after the last `strobe`.
    """

    strobe: In(1)
    level: Out(1)

    def __init__(self, cycles: int):
        self._cycles = cycles
        super().__init__()

    def elaborate(self, platform):
        m = Module()

        left = Signal(range(self._cycles + 1))
        m.d.comb += self.level.eq(left != 0)
        with m.If(self.strobe):
            m.d.sync += left.eq(self._cycles)
        with m.Elif(self.level):
            m.d.sync += left.eq(left - 1)

        return m


class Demonstration(wiring.Component):
    """Samples the loop for ever and sends the records, one after the other and nothing else, over the UART.

    The interval is the time that a record takes on the line, rounded down to what PMSIRR_EL1 can say: the line is
    always busy, and now and then a selection meets a slot whose record has not left.

    Parameters
    ----------
    config : SPUConfig
    clock_hz, baud : int
        A bit on the line takes a whole number of cycles: the one divides the other.
    buffer_records : int
        Records between two interrupts: those of a page of 4 KiB, if nothing else is said.

    Members
    -------
    tx : Out(1)
    alive : Out(1)
        Changes while the program runs.
    sending : Out(1)
        A record is being sent.
    interrupt, collision : Out(1)
        High for a tenth of a second after a PMBIRQ, and after a collision.
    """

    tx: Out(1, init=1)
    alive: Out(1)
    sending: Out(1)
    interrupt: Out(1)
    collision: Out(1)

    def __init__(self, config: SPUConfig, *, clock_hz: int, baud: int, buffer_records: int | None = None):
        if clock_hz % baud:
            raise ValueError(f"baud must divide clock_hz = {clock_hz}, not {baud}")
        self._config = config
        self._divisor = clock_hz // baud
        self._led_cycles = round(clock_hz * _LED_SECONDS)
        self._buffer_records = buffer_records or 4096 // config.max_record_bytes
        super().__init__()

    @property
    def interval(self) -> int:
        """PMSIRR_EL1.INTERVAL."""
        return self._config.max_record_bytes * BITS_PER_BYTE * self._divisor // 256

    def elaborate(self, platform):
        m = Module()

        m.submodules.spu = spu = SPU(self._config)
        m.submodules.core = core = LoopCore(self._config)
        m.submodules.driver = driver = Driver(self._config, interval=self.interval, buffer_records=self._buffer_records)
        m.submodules.record_bytes = record_bytes = RecordBytes(self._config)
        m.submodules.transmitter = transmitter = UARTTransmitter(self._divisor)
        connect(m, driver.sysreg, spu.sysreg)
        connect(m, driver.drain, spu.drain)
        connect(m, core.sampling, spu.sampling)
        connect(m, core.in_flight, spu.in_flight)
        connect(m, core.finish, spu.finish)
        connect(m, spu.write, record_bytes.i)
        connect(m, record_bytes.o, transmitter.i)
        m.d.comb += [
            driver.pmbirq.eq(spu.pmbirq),
            driver.idle.eq(core.idle),
            core.run.eq(driver.run),
            spu.pe.el.eq(Mux(driver.run, 0, 1)),
            spu.pe.ns.eq(1),
            spu.pe.contextidr_el1.eq(CONTEXT),
            spu.pe.count_enabled.eq(1),
            # Non-secure EL1 owns the buffer.
            *(getattr(spu.pe, name).eq(0b11) for name in ("mdcr_el2_e2pb", "mdcr_el3_nspb") if hasattr(spu.pe, name)),
            self.tx.eq(transmitter.tx),
        ]
        m.d.sync += spu.pe.physical_count.eq(spu.pe.physical_count + 1)

        m.submodules.interrupt_led = interrupt = Stretch(self._led_cycles)
        m.submodules.collision_led = collision = Stretch(self._led_cycles)
        blink = Signal(range(self._led_cycles))
        with m.If(core.sampling.valid):
            m.d.sync += blink.eq(blink + 1)
            with m.If(blink == self._led_cycles - 1):
                m.d.sync += [blink.eq(0), self.alive.eq(~self.alive)]
        m.d.comb += [
            self.sending.eq(record_bytes.o.valid),
            interrupt.strobe.eq(spu.pmbirq),
            self.interrupt.eq(interrupt.level),
            collision.strobe.eq(spu.pmu.sample_collision),
            self.collision.eq(collision.level),
        ]

        return m


class Top(Elaboratable):
    """The demonstration on a board: its clock, its UART, and as many of its LEDs as there are."""

    def __init__(self, baud: int):
        self._baud = baud

    def elaborate(self, platform):
        m = Module()

        m.submodules.demonstration = demonstration = Demonstration(
            CONFIGS["minimal"], clock_hz=round(platform.default_clk_frequency), baud=self._baud
        )
        outputs = {"tx": (platform.request("uart", dir="-").tx, demonstration.tx)}
        for number, name in enumerate(("alive", "sending", "interrupt", "collision")):
            if ("led", number) in platform.resources:
                outputs[f"led_{name}"] = platform.request("led", number, dir="-"), getattr(demonstration, name)
        for name, (port, signal) in outputs.items():
            m.submodules[name] = buffer = io.Buffer("o", port)
            m.d.comb += buffer.o.eq(signal)

        return m
