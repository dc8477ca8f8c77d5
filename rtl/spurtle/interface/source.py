"""The ports of what gives the SPU of a board its operations."""

from amaranth.lib.wiring import In, Member, Out

from ..arch import AltClk
from ..config import SPUConfig
from .sampling import FinishSignature, InFlightSignature, SamplingPointSignature

__all__ = ["operation_ports"]


def operation_ports(config: SPUConfig) -> dict[str, Member]:
    """`run`, `idle`, and what goes to the SPU.

    Raises ValueError if the SPU of `config` has more lanes or slots than one, answers later than in the next cycle, or
    counts cycles of an alternate clock, which none of the sources has.
    """
    shape = (config.ops_per_cycle, config.slots, config.answer_latency)
    if shape != (1, 1, 1):
        raise ValueError("ops_per_cycle, slots and answer_latency must be 1, not {}, {} and {}".format(*shape))
    if config.altclk is not AltClk.NONE:
        raise ValueError(f"altclk must be {AltClk.NONE:d}, not {config.altclk:d}")
    return {
        "run": In(1),
        "idle": Out(1),
        "sampling": Out(SamplingPointSignature(config)),
        "in_flight": Out(InFlightSignature(config)),
        "finish": Out(FinishSignature(config)),
    }
