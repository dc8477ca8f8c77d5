"""Payload of a sampled operation.

Ref: DDI0487 M.a, D17.6 (captured information).
"""

from amaranth.lib import data

from ..arch import CONTEXT_BITS, COUNT_BITS
from ..config import SPUConfig, check_config
from ..interface.members import when
from ..interface.operation import OperationLayout
from .control import CollectionPermissions
from .previous_target import previous_target_layout

__all__ = ["KnownAtFinishLayout", "SampleLayout", "StartLayout"]


class StartLayout(data.StructLayout):
    """State of the PE when the operation passed the sampling point, with permissions to collect. LSB first.

    `nse` only with FEAT_RME.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "el": 2,
                "ns": 1,
                **when(config.rme, nse=1),
                "contextidr_el1": CONTEXT_BITS,
                "contextidr_el2": CONTEXT_BITS,
                "timestamp": COUNT_BITS,
                "collect": CollectionPermissions,
            }
        )


class KnownAtFinishLayout(data.StructLayout):
    """Members of `SampleLayout` that are known only when the operation finishes. LSB first."""

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "operation": OperationLayout(config),
                **when(config.pbt, previous=previous_target_layout(config)),
            }
        )


class SampleLayout(data.StructLayout):
    """Sampled operation, from the sampling point to its finish. LSB first.

    Members
    -------
    start : StartLayout
    operation : OperationLayout
    previous : previous_target_layout
        Target of the previous taken branch. Only with FEAT_SPE_PBT.
    total, issue, translation, alternate_issue : unsigned(counter_bits)
        Latencies in cycles, all ones if saturated. `alternate_issue` only with an alternate clock.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "start": StartLayout(config),
                **KnownAtFinishLayout(config).members,
                **dict.fromkeys(config.latencies, config.counter_bits),
            }
        )
