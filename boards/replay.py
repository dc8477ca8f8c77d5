"""A source of operations without a core: an excerpt of a program in block RAM, played for ever."""

import numpy as np
from amaranth import *
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Out
from numpy.typing import NDArray

from spurtle.config import SPUConfig
from spurtle.gateware.component import ConfiguredComponent
from spurtle.interface.source import operation_ports
from spurtle.support.arguments import check_type
from spurtle_sim.trace.dtypes import TIMED_OPERATION

from .workload import COLUMNS_OF_CONSTANTS, gaps, pack

__all__ = ["Replay"]


class Replay(ConfiguredComponent):
    """Passes the rows through the sampling point at their distances, and follows the sampled one to its end with its
    own latencies, while others pass. It does in each cycle of the program what `cosim.spu.CompiledSPU.play` does.

    Timing: the first row passes as soon as the program goes on, at the earliest one cycle after reset.
    Reset: the excerpt's first row is next.

    Parameters
    ----------
    config : SPUConfig
        Of an SPU with one lane and one slot, which answers in the next cycle.
    rows : numpy.ndarray
        Of TIMED_OPERATION, as many as a power of two.

    Members
    -------
    run : In(1)
        The program goes on in this cycle: not while PMBIRQ is high, if it is to wait. Otherwise a sampled operation
        finishes.
    idle : Out(1)
        The program and its time stand still, and no sampled operation is in flight.
    tick : Out(1)
        A cycle of the program. There is one more after the last in which an operation passed or was in flight.
    sampling, in_flight, finish : Out
        To the SPU.
    """

    def __init__(self, config: SPUConfig, rows: NDArray[np.void]):
        ports = operation_ports(config)
        check_type("rows", rows, np.ndarray)
        if rows.dtype != TIMED_OPERATION:
            raise TypeError(f"rows must be of dtype TIMED_OPERATION, not {rows.dtype!r}")
        if len(rows) < 2 or len(rows) & len(rows) - 1:
            raise ValueError(f"rows must be as many as a power of two from 2 on, not {len(rows)}")
        # With one lane there is a gap of at least one cycle.
        self._waits = (gaps(rows) - np.uint64(1)).tolist()
        self._packed = pack(config, rows)
        self._longest = int(rows["finish"].max())
        self._rows = rows
        super().__init__(config, {**ports, "tick": Out(1)})

    @property
    def rows(self) -> NDArray[np.void]:
        """The excerpt."""
        return self._rows

    def elaborate(self, platform):
        m = Module()

        in_flight = Signal()
        index = Signal(range(len(self._waits)))
        self._pass(m, index)
        self._follow(m, index, in_flight)

        settling = Signal()
        m.d.sync += settling.eq(self.sampling.valid | in_flight)
        m.d.comb += [self.tick.eq(self.run | settling), self.idle.eq(~self.tick)]

        return m

    def _pass(self, m, index):
        """Which row is next, and when it passes."""
        shape = range(max(self._waits) + 1)
        m.submodules.waits = waits = Memory(shape=shape, depth=len(self._waits), init=self._waits)
        port = waits.read_port()
        wait = Signal(shape)
        m.d.comb += [
            self.sampling.valid.eq(self.run & (wait == 0)),
            # The number of rows is a power of two: it wraps by itself. The wait behind a row is there when it passes.
            port.addr.eq(index + self.sampling.valid),
        ]
        m.d.sync += index.eq(port.addr)
        with m.If(self.sampling.valid):
            m.d.sync += wait.eq(port.data)
        with m.Elif(self.tick & (wait != 0)):
            m.d.sync += wait.eq(wait - 1)

    def _follow(self, m, index, in_flight):
        """What the sampled operation does. The answer comes one cycle late: then the memory gives the row that passed,
        and it does so until that operation has finished.
        """
        packed = self._packed
        m.submodules.words = words = Memory(shape=packed.width, depth=len(packed.words), init=packed.words)
        port = words.read_port()
        busy = Signal()
        age = Signal(range(self._longest + 1), init=1)
        m.d.comb += [in_flight.eq(self.sampling.sampled | busy), port.addr.eq(index), port.en.eq(~in_flight)]
        with m.If(in_flight & ~self.finish.valid):
            m.d.sync += [busy.eq(1), age.eq(age + 1)]
        with m.Else():
            m.d.sync += [busy.eq(0), age.eq(1)]

        columns = Cat(*range(COLUMNS_OF_CONSTANTS), port.data)
        row = {name: Cat(columns[number] for number in numbers) for name, numbers in packed.fields.items()}
        operation = self.finish.operation
        m.d.comb += [
            self.in_flight.issued.eq(in_flight & (age == row["issue"])),
            self.in_flight.translating.eq(in_flight & (age >= row["translate_from"]) & (age < row["translate_to"])),
            self.in_flight.completed.eq(self.finish.valid),
            self.finish.valid.eq(in_flight & (age == row["finish"])),
            self.finish.vanished.eq(0),
            *(operation[name].eq(row[name]) for name in operation.shape().members if name in row and name != "target"),
            operation.target.address.eq(row["target"]),
            # A program of CompiledSPU is Non-secure.
            operation.target.ns.eq(1),
            operation.pa_ns.eq(1),
        ]
