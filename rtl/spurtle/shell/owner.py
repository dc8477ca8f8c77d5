"""Security state that a record belongs to.

Ref: DDI0487 M.a, D17.7 (owning Security state of the Profiling Buffer).
"""

from amaranth import *
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from ..gateware.component import ConfiguredComponent
from ..interface.members import when

__all__ = ["RecordOwner"]


class RecordOwner(ConfiguredComponent):
    """Delay of the owning Security state of the Profiling Buffer, by two cycles, and longer while a beat stalls.

    The first beat of a record is valid one cycle after the record was accepted. The record belongs to the owner of the
    cycle before its acceptance: no record is accepted in the cycle after a change of owner, and a record is abandoned
    if the owner changes later.

    Reset: the outputs are zero.

    Members
    -------
    ns, nse : In(1)
        Owning Security state. `nse` only with FEAT_RME.
    valid, ready : In(1)
        Handshake of the write port.
    record_ns, record_nse : Out(1)
        Security state that a record belongs to, while its first beat is valid. `record_nse` only with FEAT_RME.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "ns": In(1),
                **when(config.rme, nse=In(1)),
                "valid": In(1),
                "ready": In(1),
                "record_ns": Out(1),
                **when(config.rme, record_nse=Out(1)),
            },
        )

    def elaborate(self, platform):
        m = Module()

        for name in ("ns", "nse") if self._config.rme else ("ns",):
            previous = Signal(name=f"previous_{name}")
            m.d.sync += previous.eq(getattr(self, name))
            with m.If(~self.valid | self.ready):
                m.d.sync += getattr(self, f"record_{name}").eq(previous)

        return m
