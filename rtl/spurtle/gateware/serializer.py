"""Packet serializer: packets of a record in, beats out (D18.2)."""

from amaranth import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from ..config import SPUConfig, check_config
from .beat import beat_layout
from .component import ConfiguredComponent
from .cutter import Cutter
from .packer import Packer
from .record import record_layout
from .skid import SkidBuffer

__all__ = ["Serializer"]


class Serializer(ConfiguredComponent):
    """Serializer of records into beats of the bus width.

    Parts of the record are selected, not shifted out, so it must be stable while it is valid, as every stream payload
    is. `i.ready` does not depend on `o.ready` in the same cycle.

    Latency: the first beat is valid one cycle after the record, or three cycles if the layout is packed. `o` is an OR
    or a multiplexer of registers.

    Rate: one beat in every cycle, from one record to the next too, if that is valid in the cycle after the previous one
    was accepted. A packed record takes further cycles if less than one beat is assembled. With a bus of 8 bytes, they
    add at most a quarter for loads and branches in the named configurations. The first beat of a packed record follows
    the last one of the previous record if the first step of the record has a beat or more (`packer.Packer`).

    Members
    -------
    i : In(stream of record_layout)
    o : Out(stream of beat_layout)
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "i": In(stream.Signature(record_layout(config))),
                "o": Out(stream.Signature(beat_layout(config))),
            },
        )

    def elaborate(self, platform):
        m = Module()

        m.submodules.cutter = cutter = (Packer if self._config.layout.packed else Cutter)(self._config)
        m.submodules.skid = skid = SkidBuffer(beat_layout(self._config))
        connect(m, flipped(self.i), cutter.i)
        connect(m, cutter.o, skid.i)
        connect(m, skid.o, flipped(self.o))

        return m
