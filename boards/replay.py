"""Operation source without a core: the endless replay of a program excerpt from block RAM."""

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

from .workload import CONSTANT_COLUMNS, gaps, pack

__all__ = ["Replay"]


class Replay(ConfiguredComponent):
    """Replay of an excerpt: each row is an operation that passes the sampling point at its original time.

    The sampled operation completes with the latencies of its row, while other operations pass. In each cycle of the
    program the component drives the SPU as `cosim.spu.CompiledSPU.play` does.

    Timing: the first row passes in the first cycle in which `run` is asserted. `run` must be low in the first cycle
    after reset, because the memories output the first row and its wait one cycle later.
    Reset: the first row of the excerpt is the next one.

    Parameters
    ----------
    config : SPUConfig
        Configuration with one lane, one slot and an answer latency of one cycle.
    rows : numpy.ndarray
        Rows of TIMED_OPERATION; their number is a power of two of at least 2.

    Members
    -------
    run : In(1)
        The program may advance in this cycle. While `run` is low, only a sampled operation in flight continues.
    idle : Out(1)
        The program and its time are stopped, and no sampled operation is in flight.
    tick : Out(1)
        Asserted in each cycle of the program, and in one cycle after the last one in which an operation passed or was
        in flight.
    sampling, in_flight, finish : Out
        Ports of the SPU.
    """

    def __init__(self, config: SPUConfig, rows: NDArray[np.void]):
        ports = operation_ports(config)
        check_type("rows", rows, np.ndarray)
        if rows.dtype != TIMED_OPERATION:
            raise TypeError(f"rows must be of dtype TIMED_OPERATION, not {rows.dtype!r}")
        if len(rows) < 2 or len(rows) & len(rows) - 1:
            raise ValueError(f"the number of rows must be a power of two of at least 2, not {len(rows)}")
        # With one lane, operations are at least one cycle apart.
        self._waits = (gaps(rows) - np.uint64(1)).tolist()
        self._packed = pack(config, rows)
        self._longest = int(rows["finish"].max())
        self._rows = rows
        super().__init__(config, {**ports, "tick": Out(1)})

    @property
    def rows(self) -> NDArray[np.void]:
        """Rows of the excerpt."""
        return self._rows

    def elaborate(self, platform):
        m = Module()

        in_flight = Signal()
        index = Signal(range(len(self._waits)))
        self._advance(m, index)
        self._track_sampled(m, index, in_flight)

        settling = Signal()
        m.d.sync += settling.eq(self.sampling.valid | in_flight)
        m.d.comb += [self.tick.eq(self.run | settling), self.idle.eq(~self.tick)]

        return m

    def _advance(self, m, index):
        """Select the next row, and let it pass the sampling point when its wait is over."""
        shape = range(max(self._waits) + 1)
        m.submodules.waits = waits = Memory(shape=shape, depth=len(self._waits), init=self._waits)
        port = waits.read_port()
        wait = Signal(shape)
        m.d.comb += [
            self.sampling.valid.eq(self.run & (wait == 0)),
            # `index` wraps at the end of the excerpt because the number of rows is a power of two. The address is that
            # of the next cycle, so that the memory outputs the wait after a row in the cycle in which the row passes.
            port.addr.eq(index + self.sampling.valid),
        ]
        m.d.sync += index.eq(port.addr)
        with m.If(self.sampling.valid):
            m.d.sync += wait.eq(port.data)
        with m.Elif(self.tick & (wait != 0)):
            m.d.sync += wait.eq(wait - 1)

    def _track_sampled(self, m, index, in_flight):
        """Report the issue, translation, completion and finish of the sampled operation.

        The SPU answers one cycle after an operation passed. The memory then outputs the row of that operation, and
        holds it until the operation has finished.
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

        columns = Cat(*range(CONSTANT_COLUMNS), port.data)
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
            # The program runs in Non-secure state, as in CompiledSPU.
            operation.target.ns.eq(1),
            operation.pa_ns.eq(1),
        ]
