"""Interface contracts of streams: assumed at an input, asserted at an output."""

from amaranth.hdl import Elaboratable, Module, Signal, Value

__all__ = ["RecordBeats", "StreamContract"]


class StreamContract(Elaboratable):
    """Contract of a stream: a stalled transfer keeps `valid` and `payload` until it is accepted or a reset occurs.

    Parameters
    ----------
    interface : stream
    prop : Assume or Assert
    """

    def __init__(self, interface, *, prop):
        self._interface = interface
        self._prop = prop

    def elaborate(self, platform):
        m = Module()

        payload = Value.cast(self._interface.payload)
        stalled = Signal()
        previous_payload = Signal.like(payload)
        m.d.sync += [stalled.eq(self._interface.valid & ~self._interface.ready), previous_payload.eq(payload)]
        with m.If(stalled):
            m.d.comb += self._prop(self._interface.valid)
            m.d.comb += self._prop(payload == previous_payload)

        return m


class RecordBeats(Elaboratable):
    """Contract of a stream of records: a record has exactly `beats` transfers, and `last` marks the last of them.

    Parameters
    ----------
    interface : stream of beats
    beats : int
        A power of two.
    prop : Assume or Assert

    Attributes
    ----------
    index : Signal(range(beats))
        Index within its record of the offered beat, or of the next one if none is offered.
    """

    def __init__(self, interface, *, beats, prop):
        self._interface = interface
        self._beats = beats
        self._prop = prop
        self.index = Signal(range(beats))

    def elaborate(self, platform):
        m = Module()

        with m.If(self._interface.valid):
            m.d.comb += self._prop(self._interface.p.last == (self.index == self._beats - 1))
            with m.If(self._interface.ready):
                m.d.sync += self.index.eq(self.index + 1)

        return m
