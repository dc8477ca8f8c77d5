"""The demonstration's core: it runs the loop, one operation a cycle, and tells the SPU how each sampled one fares."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spurtle.config import SPUConfig
from spurtle.pe import Finish, InFlight, SamplingPoint
from spurtle_sim.ports import operation_bits

from .loop import ITERATIONS, LOOP, STRIDE

__all__ = ["LoopCore"]

_AGE_BITS = max(step.total for step in LOOP).bit_length()
_INDEX_BITS = (len(LOOP) - 1).bit_length()
_ITERATION_BITS = (ITERATIONS - 1).bit_length()
_STRIDE_BITS = (STRIDE - 1).bit_length()


class LoopCore(wiring.Component):
    """Passes one operation of the loop through the sampling point in each cycle of `run`, and follows the sampled one.

    Reset: the loop's first operation is next.

    Parameters
    ----------
    config : SPUConfig
        Of an SPU with one lane and one slot.

    Members
    -------
    run : In(1)
        The program goes on. While it is zero it stands still, and a sampled operation finishes.
    idle : Out(1)
        The program stands still and no sampled operation is in flight.
    sampling, in_flight, finish : Out
        To the SPU.
    """

    def __init__(self, config: SPUConfig):
        if (config.ops_per_cycle, config.slots) != (1, 1):
            raise ValueError(f"ops_per_cycle and slots must be 1, not {config.ops_per_cycle} and {config.slots}")
        self._config = config
        super().__init__(
            {
                "run": In(1),
                "idle": Out(1),
                "sampling": Out(SamplingPoint(config)),
                "in_flight": Out(InFlight(config)),
                "finish": Out(Finish(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()

        index = Signal(_INDEX_BITS)
        iteration = Signal(_ITERATION_BITS)
        m.d.comb += self.sampling.valid.eq(self.run)
        with m.If(self.run):
            m.d.sync += Cat(index, iteration).eq(Cat(index, iteration) + 1)

        # The answer comes one cycle late: until then the operation before is remembered.
        in_flight = Signal()
        busy = Signal()
        age = Signal(_AGE_BITS, init=1)
        followed_index = Signal.like(index)
        followed_iteration = Signal.like(iteration)
        m.d.comb += [
            in_flight.eq(self.sampling.sampled | busy),
            self.idle.eq(~self.run & ~in_flight),
        ]
        with m.If(~in_flight):
            m.d.sync += [followed_index.eq(index), followed_iteration.eq(iteration)]
        with m.If(in_flight & ~self.finish.valid):
            m.d.sync += [busy.eq(1), age.eq(age + 1)]
        with m.Else():
            m.d.sync += [busy.eq(0), age.eq(1)]

        operation = self.finish.operation
        moving = slice(_STRIDE_BITS, _STRIDE_BITS + _ITERATION_BITS)
        with m.Switch(followed_index):
            for number, step in enumerate(LOOP):
                with m.Case(number):
                    translated = step.issue + step.translation
                    m.d.comb += [
                        self.in_flight.issued.eq(in_flight & (age == step.issue)),
                        self.in_flight.translating.eq(in_flight & (age > step.issue) & (age <= translated)),
                        self.finish.valid.eq(in_flight & (age == step.total)),
                        operation.as_value().eq(operation_bits(self._config, step.operation)),
                    ]
        # Where there is no data address, nobody looks.
        m.d.comb += [operation.va[moving].eq(followed_iteration), operation.pa[moving].eq(followed_iteration)]

        return m
