"""Memory of the states of the PE in which the operations in flight passed the sampling point.

Ref: DDI0487 M.a, D17.6 (captured information).
"""

from amaranth import *
from amaranth.lib import memory
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from .component import ConfiguredComponent
from .sample import StartLayout

__all__ = ["StartStates"]


class StartStates(ConfiguredComponent):
    """Memory of the start states of several slots.

    The state of each cycle is written to a word that no slot in use has, and each free slot keeps the address of this
    word. Two operations that are selected in one cycle have one word. There is one word more than slots, so that a
    word remains for the next cycle, whether or not slots are allocated in this one.

    Timing: the address of the next word is registered, and no write depends on `allocate`, which arrives late. `start`
    is combinational. Reset: the memory is not reset, but the state of a slot that was allocated after it is valid.

    Members
    -------
    free : In(slots)
        Slots that are not in use.
    incoming : In(StartLayout)
        State of the PE for the operations that are allocated slots in this cycle.
    slot : In(range(slots))
        Slot whose state is read.
    start : Out(StartLayout)
        State of the operation in `slot`, if that is in use.
    """

    proof_signals = ("words", "next_word", "word_*")

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

        depth = self._config.slots + 1
        m.submodules.words = words = memory.Memory(shape=StartLayout(self._config), depth=depth, init=[])
        store = words.write_port()
        load = words.read_port(domain="comb")
        next_word = Signal(range(depth))
        words_of_slots = [Signal(range(depth), name=f"word_{slot}") for slot in range(self._config.slots)]
        m.d.comb += [
            store.en.eq(1),
            store.addr.eq(next_word),
            store.data.eq(self.incoming),
            load.addr.eq(Array(words_of_slots)[self.slot]),
            self.start.eq(load.data),
        ]
        for free, word in zip(self.free, words_of_slots, strict=True):
            with m.If(free):
                m.d.sync += word.eq(next_word)

        # The lowest word that remains unused if slots are allocated in this cycle. If there is none, no slot is free,
        # and this word remains unused.
        for number in reversed(range(depth)):
            in_use = (~free & (word == number) for free, word in zip(self.free, words_of_slots, strict=True))
            with m.If(~Cat(next_word == number, *in_use).any()):
                m.d.sync += next_word.eq(number)

        return m
