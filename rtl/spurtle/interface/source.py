"""Ports of a source of operations with one lane and one slot."""

from amaranth.lib.wiring import In, Member, Out

from ..arch import AltClk
from ..config import SPUConfig, check_config
from .sampling import FinishSignature, InFlightSignature, SamplingPointSignature

__all__ = ["operation_ports"]


def operation_ports(config: SPUConfig) -> dict[str, Member]:
    """Return the members `run` and `idle`, and those that connect to the SPU.

    Raises
    ------
    ValueError
        If the SPU of `config` has more than one lane or slot, answers later than in the next cycle, or counts cycles of
        an alternate clock, which no source has.
    """
    check_config(config)
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
