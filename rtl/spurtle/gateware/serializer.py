"""The packet serializer: the packets of a record in, beats out (D18.2)."""

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
    """Cuts or packs records into beats of the bus width, record after record.

    A record is selected from, not shifted: it has to stand still while it is valid, as every stream payload does. What
    `i.ready` is in a cycle does not depend on what `o.ready` is in it.

    Timing: of records of one size a beat every cycle, the first one cycle after the record. A packed one takes as many
    cycles as it has beats, and those in which less than a beat of it is there, but not all. With a bus of 8 bytes they
    are at most a quarter more for loads and branches in the named configurations. Its first beat comes four cycles
    after the record at the earliest.

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
