"""Division of records into AXI4 bursts.

Ref: IHI0022 (AXI4), A3.4.1 (length of a burst, and the 4 KB boundary that it does not cross).
"""

from amaranth import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import SPUConfig, check_config
from ..gateware.component import ConfiguredComponent
from ..interface.members import when
from ..interface.memory import BeatLayout

__all__ = ["BurstCollector", "BurstLayout", "burst_boundary", "can_divide", "longest_record"]

_BOUNDARY_BYTES = 4096
"""Address boundary that no AXI burst crosses."""

_BURST_WORDS = 256
"""Length of the longest AXI4 burst."""


def longest_record(config: SPUConfig) -> int:
    """Return the words of the longest record. One that begins within a word can extend over one word more."""
    return config.max_record_bytes // config.bus_bytes + (config.layout.align < config.bus_bytes)


def burst_boundary(config: SPUConfig) -> int:
    """Return the address boundary that no burst crosses, in words.

    It is 4 KB, or the longest burst if a record can be longer than that.
    """
    return _BOUNDARY_BYTES // config.bus_bytes if longest_record(config) <= _BURST_WORDS else _BURST_WORDS


def can_divide(config: SPUConfig) -> bool:
    """Return whether a record can cross the boundary, so that it is sent in several bursts."""
    return config.layout.packed or longest_record(config) > burst_boundary(config)


class BurstLayout(data.StructLayout):
    """One burst, part of a record. LSB first.

    Members
    -------
    address : unsigned
        Address in words.
    more : range(words of the longest burst)
        Number of words less one, as in AWLEN.
    ns, nse : unsigned(1)
        Security state that the record belongs to. `nse` only with FEAT_RME.
    first : range(words of the longest record)
        Number of the first word of the burst within its record. Only if a record can be sent in several bursts.
    last : unsigned(1)
        Last burst of the record. Only if a record can be sent in several bursts.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        longest = longest_record(config)
        super().__init__(
            {
                "address": 64 - exact_log2(config.bus_bytes),
                "more": range(min(longest, burst_boundary(config))),
                "ns": 1,
                **when(config.rme, nse=1),
                **when(can_divide(config), first=range(longest), last=1),
            }
        )


class BurstCollector(ConfiguredComponent):
    """Collector of the beats of records into bursts.

    A burst ends with its record, or before the address boundary that no burst crosses. It is valid in the cycle after
    its last beat. The first beat of the next burst can follow in that cycle, if the burst is transferred in it.

    Reset: no burst is valid, and the next beat is the first one of a record.

    Members
    -------
    beat : In(BeatLayout)
    transfer : In(1)
        Strobe: `beat` is transferred. It is not asserted while a burst is valid and not transferred, unless `drop` is
        asserted.
    ns, nse : In(1)
        Security state that the record of `beat` belongs to, with its first beat. `nse` only with FEAT_RME.
    drop : In(1)
        The beat belongs to no burst, and the burst that is valid or that is being collected is dropped.
    ends : Out(1)
        `beat` is the last one of its burst.
    burst : Out(stream of BurstLayout)
    """

    proof_signals = ("in_record", "in_burst", "complete", "count")

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "beat": In(BeatLayout(config)),
                "transfer": In(1),
                "ns": In(1),
                **when(config.rme, nse=In(1)),
                "drop": In(1),
                "ends": Out(1),
                "burst": Out(stream.Signature(BurstLayout(config))),  # pyright: ignore[reportArgumentType]: a shape
            },
        )

    def elaborate(self, platform):
        m = Module()

        config, beat, burst = self._config, self.beat, self.burst.p
        address = beat.address[exact_log2(config.bus_bytes) :]
        in_record = Signal()  # the next beat is not the first one of its record
        in_burst = Signal()  # the next beat is not the first one of its burst
        complete = Signal()

        m.d.comb += [
            self.ends.eq(beat.last | address[: exact_log2(burst_boundary(config))].all()),
            self.burst.valid.eq(complete & ~self.drop),
        ]
        with m.If(self.burst.ready):
            m.d.sync += complete.eq(0)
        with m.If(self.transfer):
            m.d.sync += [
                in_record.eq(~beat.last),
                in_burst.eq(~self.ends),
                complete.eq(self.ends),
                burst.more.eq(burst.more + 1),
            ]
            with m.If(~in_burst):
                m.d.sync += [burst.address.eq(address), burst.more.eq(0)]
            with m.If(~in_record):
                m.d.sync += burst.ns.eq(self.ns)
                if config.rme:
                    m.d.sync += burst.nse.eq(self.nse)
        with m.If(self.drop):
            m.d.sync += [complete.eq(0), in_burst.eq(0)]
        if can_divide(config):
            self._number(m, in_burst)

        return m

    def _number(self, m, in_burst):
        """Count the words of the record, and capture the number of the first one of a burst."""
        burst = self.burst.p
        count = Signal.like(burst.first)
        with m.If(self.transfer):
            m.d.sync += [count.eq(Mux(self.beat.last, 0, count + 1)), burst.last.eq(self.beat.last)]
            with m.If(~in_burst):
                m.d.sync += burst.first.eq(count)
