"""Previous branch target (D17.6.3.1).

Ref: DDI0487 M.a, D17.6.3.1 (FEAT_SPE_PBT).
"""

from amaranth import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..config import SPUConfig, check_config
from ..interface.operation import LocationLayout
from ..interface.sampling import TakenBranchSignature
from .component import ConfiguredComponent

__all__ = ["PreviousTarget", "previous_target_layout"]


def previous_target_layout(config: SPUConfig) -> data.StructLayout:
    """Return the layout of a branch target and whether it may be recorded. LSB first.

    Members
    -------
    valid : unsigned(1)
    target : LocationLayout
    """
    return data.StructLayout({"valid": 1, "target": LocationLayout(config)})


class PreviousTarget(ConfiguredComponent):
    """Register of the target of the last taken branch.

    It is invalid if that branch was executed while profiling was disabled or prohibited. A change of the owner of the
    Profiling Buffer invalidates it, even if a branch retires in the same cycle: the new owner may not record what the
    previous one was permitted to.

    Latency: one cycle. Reset: invalid.

    Members
    -------
    branch : In(TakenBranchSignature)
    enabled : In(1)
        Profiling is enabled in the state in which the branch was executed.
    new_owner : In(1)
        See `control.ProfilingControl`.
    previous : Out(previous_target_layout)
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        if not config.pbt:
            raise ValueError(f"pbt must be True for the previous branch target, not False as in {config.name}")
        super().__init__(
            config,
            {
                "branch": In(TakenBranchSignature(config)),
                "enabled": In(1),
                "new_owner": In(1),
                "previous": Out(previous_target_layout(config)),
            },
        )

    def elaborate(self, platform):
        m = Module()

        with m.If(self.branch.valid):
            m.d.sync += [self.previous.valid.eq(self.enabled), self.previous.target.eq(self.branch.target)]
        with m.If(self.new_owner):
            m.d.sync += self.previous.valid.eq(0)

        return m
