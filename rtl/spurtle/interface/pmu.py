"""PMU events of the SPU.

Ref: DDI0487 M.a, D13.5 R_HSGZX (frozen event counters), D17.5.1 (types of SAMPLE_FEED_*).
"""

from amaranth.lib.wiring import Out

from ..config import SPUConfig, check_config
from .members import when
from .signature import StructuralSignature

__all__ = ["PMUEventsSignature"]


class PMUEventsSignature(StructuralSignature):
    """PMU events of the SPU, seen from the SPU: the number of each in this cycle.

    Members
    -------
    sample_pop : Out(range(ops_per_cycle + 1))
        Members of the sample population that passed while profiling was enabled.
    sample_feed : Out(1)
        A sampled operation finished.
    sample_feed_br, sample_feed_ld, sample_feed_st, sample_feed_fp, sample_feed_simd : Out(1)
        A sampled operation of that type finished (D17.5.1). The last two only with FEAT_SPE_EFT.
    sample_feed_op, sample_feed_event, sample_feed_lat, sample_feed_ds : Out(1)
        A sampled operation finished that matches the filter by type, by event, by latency, by data source. The filter
        need not be enabled. The last one only with FEAT_SPE_FDS.
    sample_filtrate : Out(1)
        A sampled operation passed the filters.
    sample_collision : Out(range(selections_per_cycle + 1))
        Operations that were selected while no slot was free.
    sample_buffer_full : Out(1)
        A buffer full event occurred.
    freeze : Out(1)
        Level: PMBLIMITR_EL1.{PMFZ, E} and PMBSR_EL1.S are one. The PMU freezes the event counters that PMCR_EL0.FZS and
        MDCR_EL2.HPMFZS select. Only with FEAT_SPEv1p2.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "sample_pop": Out(range(config.ops_per_cycle + 1)),
                "sample_feed": Out(1),
                **{f"sample_feed_{event}": Out(1) for event in config.feed_events},
                "sample_filtrate": Out(1),
                "sample_collision": Out(range(config.selections_per_cycle + 1)),
                "sample_buffer_full": Out(1),
                **when(config.discard_mode, freeze=Out(1)),
            }
        )
