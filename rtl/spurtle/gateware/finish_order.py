"""Order in which sampled operations have finished."""

from amaranth import *
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from .component import ConfiguredComponent

__all__ = ["FinishOrder"]


class FinishOrder(ConfiguredComponent):
    """Queue of the numbers of finished slots.

    The numbers are in a shift register, so that the first one is a register and not the output of a memory: it is the
    address of the memories of `InFlight`.

    Latency: one cycle. Reset: empty.

    Members
    -------
    push : In(1)
        Strobe: the operation in `slot` has finished. The queue has space for all slots.
    slot : In(range(slots))
    pop : In(1)
        Strobe: `first` is removed. Only if `present` is not zero.
    first : Out(range(slots))
        Slot whose operation finished first.
    present : Out(slots)
        Entries, the first one in bit 0.
    """

    proof_signals = ("entry_*",)

    def __init__(self, config: SPUConfig):
        check_config(config)
        if config.slots == 1:
            raise ValueError(f"slots must be at least 2 for an order of operations, not 1 as in {config.name}")
        super().__init__(
            config,
            {
                "push": In(1),
                "slot": In(range(config.slots)),
                "pop": In(1),
                "first": Out(range(config.slots)),
                "present": Out(config.slots),
            },
        )

    def elaborate(self, platform):
        m = Module()

        entries = [Signal.like(self.slot, name=f"entry_{index}") for index in range(self._config.slots)]
        m.d.comb += self.first.eq(entries[0])
        following = Cat(self.present[1:], C(0, 1))
        preceding = Cat(C(1, 1), self.present[:-1])
        m.d.sync += self.present.eq(
            Mux(
                self.pop,
                following | (self.present & self.push.replicate(len(self.present))),
                self.present | (preceding & self.push.replicate(len(self.present))),
            )
        )
        # An absent entry follows `slot` in every cycle, so that `push` does not enable these flip-flops.
        for entry, later, present, later_present in zip(
            entries, [*entries[1:], self.slot], self.present, following, strict=True
        ):
            with m.If(self.pop):
                m.d.sync += entry.eq(Mux(later_present, later, self.slot))
            with m.Elif(~present):
                m.d.sync += entry.eq(self.slot)

        return m
