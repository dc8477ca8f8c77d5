"""Memory of the states of the PE in which the operations in flight passed the sampling point.

Ref: DDI0487 M.a, D17.6 (captured information).
"""

from functools import reduce
from itertools import pairwise
from operator import or_

from amaranth import *
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from .component import ConfiguredComponent
from .sample import StartLayout
from .slots import index_of

__all__ = ["StartStates"]


class StartStates(ConfiguredComponent):
    """Memory of the start states of several slots.

    The state of each cycle is written to a word of its own, before it is known whether an operation is selected in that
    cycle. When the selection is known, each free slot keeps the word; two operations of one cycle have one word. There
    are as many words as slots, cycles until the selection is known, and one for the next cycle. So one is unused.

    Timing: `incoming` is written in the cycle after its operations passed the sampling point. The slots receive its
    word `answer_latency - 1` cycles later. `start` is combinational. Reset: the memory is not reset, but the state of a
    slot that was allocated after it is valid.

    Members
    -------
    free : In(slots)
        Slots that are not in use.
    incoming : In(StartLayout)
        State of the PE for the operations that passed the sampling point in the previous cycle.
    slot : In(range(slots))
        Slot whose state is read.
    start : Out(StartLayout)
        State of the operation in `slot`, if that is in use.
    """

    proof_signals = ("words", "passed_*", "held_*", "address_*")

    def __init__(self, config: SPUConfig):
        check_config(config)
        if config.slots == 1:
            raise ValueError(f"slots must be at least 2 for a memory of start states, not 1 as in {config.name}")
        super().__init__(
            config,
            {
                "free": In(config.slots),
                "incoming": In(StartLayout(config)),
                "slot": In(range(config.slots)),
                "start": Out(StartLayout(config)),
            },
        )

    def elaborate(self, platform):
        m = Module()

        slots, latency = self._config.slots, self._config.answer_latency
        depth = slots + latency + 1
        m.submodules.words = words = memory.Memory(shape=StartLayout(self._config), depth=depth, init=[])
        store = words.write_port()
        load = words.read_port(domain="comb")

        # Words of the states of successive cycles, one-hot, because they are compared with all others. The first one is
        # written. Operations whose state is in the last one may be selected in this cycle.
        passed = [Signal(depth, name=f"passed_{age}", init=1 << age) for age in range(latency)]
        m.d.sync += [later.eq(earlier) for earlier, later in pairwise(passed)]
        held = [Signal(depth, name=f"held_{slot}") for slot in range(slots)]
        addresses = [Signal(range(depth), name=f"address_{slot}") for slot in range(slots)]
        for free, word, address in zip(self.free, held, addresses, strict=True):
            with m.If(free):
                m.d.sync += [word.eq(passed[-1]), address.eq(index_of(passed[-1]))]
        m.d.comb += [
            store.en.eq(1),
            store.addr.eq(index_of(passed[0])),
            store.data.eq(self.incoming),
            load.addr.eq(Array(addresses)[self.slot]),
            self.start.eq(load.data),
        ]

        # The lowest unused word is written next. There is one: each slot holds one word at most, also while it is free.
        unused = Signal(depth)
        m.d.comb += unused.eq(~reduce(or_, [*passed, *held]))
        for number in reversed(range(depth)):
            with m.If(unused[number]):
                m.d.sync += passed[0].eq(1 << number)

        return m
