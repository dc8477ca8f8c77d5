"""Record filter (D17.5).

Ref: DDI0487 M.a, D17.5.1 to D17.5.4; PMU events SAMPLE_FEED_*. CONSTRAINED UNPREDICTABLE cases are in docs/choices.md.
"""

from amaranth import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from .. import arch
from ..config import SPUConfig, UnpredictableFilter, check_config
from ..interface.members import when
from ..interface.operation import has_data_source, is_branch
from ..interface.register_layout import register_layout
from .component import ConfiguredComponent
from .reported_events import event_groups
from .sample import SampleLayout

__all__ = ["Filter"]


class Filter(ConfiguredComponent):
    """Filter of samples. Combinational.

    A sample is recorded if no enabled filter rejects it. For the PMU, `feed` reports which filters the sample matches,
    enabled or not.

    Members
    -------
    sample : In(SampleLayout)
    pmsfcr, pmsevfr, pmsnevfr, pmslatfr, pmsdsfr : In
        Registers. Bits that the configuration does not implement are zero. `pmsnevfr` only with FEAT_SPE_FnE, `pmsdsfr`
        only with FEAT_SPE_FDS.
    rejected : Out, one bit for each of filters
        Enabled filters that reject the sample.
    feed : Out, one bit for each of feed_events
        See `PMUEventsSignature`.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            config,
            {
                "sample": In(SampleLayout(config)),
                "pmsfcr": In(register_layout(arch.PMSFCR_EL1)),
                "pmsevfr": In(register_layout(arch.PMSEVFR_EL1)),
                **when(config.fne, pmsnevfr=In(register_layout(arch.PMSNEVFR_EL1))),
                "pmslatfr": In(register_layout(arch.PMSLATFR_EL1)),
                **when(config.fds, pmsdsfr=In(register_layout(arch.PMSDSFR_EL1))),
                "rejected": Out(data.StructLayout(dict.fromkeys(config.filters, 1))),
                "feed": Out(data.StructLayout(dict.fromkeys(config.feed_events, 1))),
            },
        )

    def elaborate(self, platform):
        m = Module()

        self._filter_by_type(m)
        self._filter_by_event(m)
        self._filter_by_latency(m)
        if self._config.fds:
            self._filter_by_data_source(m)

        return m

    def _unpredictable(self, nothing_selected):
        """Return whether a filter that selects nothing rejects every sample.

        If it has no effect instead, its comparison already passes every sample.
        """
        discards = self._config.unpredictable_filter is UnpredictableFilter.DISCARD
        return nothing_selected if discards else C(0)

    def _filter_by_type(self, m):
        """Filter by type (D17.5.1): any type whose mask bit is zero, and exactly those whose mask bit is one."""
        facts = self.sample.operation.facts
        types = {
            "B": is_branch(facts),
            "LD": facts.load,
            "ST": facts.store,
            # A load or store of SIMD&FP registers is SIMD (`vector`) or, if it is scalar, FP.
            "FP": facts.floating_point | ((facts.load | facts.store) & facts.simd_fp & ~facts.vector),
            "SIMD": facts.vector,
        }
        names = self._config.filter_types
        flags = Cat(types[name] for name in names)
        control = Cat(self.pmsfcr[name] for name in names)
        # Without FEAT_SPE_EFT, the mask is zero (D17.5.1).
        mask = Cat(self.pmsfcr[f"{name}m"] for name in names) if self._config.eft else C(0, len(names))
        any_of = control & ~mask
        matched = (~any_of.any() | (flags & any_of).any()) & ~((flags ^ control) & mask).any()

        # PMU events are named after the fields, except for branches.
        m.d.comb += [self.feed[{"B": "br"}.get(name, name.lower())].eq(types[name]) for name in names]
        m.d.comb += self.feed.op.eq(matched & (control | mask).any())
        # With FEAT_SPE_EFT, a filter that selects no type passes every sample.
        nothing_selected = C(0) if self._config.eft else ~control.any()
        m.d.comb += self.rejected.FT.eq(self.pmsfcr.FT & (~matched | self._unpredictable(nothing_selected)))

    def _filter_by_event(self, m):
        """Filter by event (D17.5.2): all events of PMSEVFR_EL1, and none of PMSNEVFR_EL1."""
        required = self.pmsevfr.E
        missing = self._any_event(required, reported=False)
        if not self._config.fne:
            m.d.comb += self.feed.event.eq(~missing)
            m.d.comb += self.rejected.FE.eq(self.pmsfcr.FE & (missing | self._unpredictable(~required.any())))
            return

        excluded = self.pmsnevfr.E
        present = self._any_event(excluded, reported=True)
        m.d.comb += self.feed.event.eq(~(missing | present))
        # CONSTRAINED UNPREDICTABLE: an event is both required and excluded. Either both filters have no effect, or
        # every sample is discarded. The latter needs no logic: one of the two filters rejects any sample.
        both = self.pmsfcr.FE & self.pmsfcr.FnE & (required & excluded).any()
        if self._config.unpredictable_filter is UnpredictableFilter.DISCARD:
            both = C(0)
        m.d.comb += [
            self.rejected.FE.eq(self.pmsfcr.FE & ~both & (missing | self._unpredictable(~required.any()))),
            self.rejected.FnE.eq(self.pmsfcr.FnE & ~both & (present | self._unpredictable(~excluded.any()))),
        ]

    def _any_event(self, selected, *, reported):
        """Return whether one of the selected events is reported, or is not reported.

        The condition of a group is combined with the result for the group, because it is the longer path.
        """
        found = []
        for group in event_groups(self._config, self.sample.operation):
            bits = Cat(selected[number] for number in group.numbers)
            values = Cat(group.values)
            if reported:
                found.append((bits & values).any() & group.condition)
            else:
                found.append((bits & ~values).any() | (bits.any() & ~group.condition))
        return Cat(found).any()

    def _filter_by_latency(self, m):
        """Filter by latency (D17.5.3): the recorded total latency is at least MINLAT."""
        # Higher bits of MINLAT are not implemented.
        minimum = self.pmslatfr.MINLAT[: self._config.counter_bits]
        long_enough = self.sample.total >= minimum
        m.d.comb += self.feed.lat.eq(long_enough)
        m.d.comb += self.rejected.FL.eq(self.pmsfcr.FL & (~long_enough | self._unpredictable(minimum == 0)))

    def _filter_by_data_source(self, m):
        """Filter by data source (D17.5.4): only samples with a Data Source packet can be rejected."""
        operation = self.sample.operation
        present = has_data_source(self._config, operation.facts)
        # PMSDSFR_EL1 has one bit for each value of the low bits of the code.
        codes = exact_log2(len(self.pmsdsfr.S))
        selected = self.pmsdsfr.S.bit_select(operation.data_source[:codes], 1)
        m.d.comb += self.feed.ds.eq(present & selected)
        m.d.comb += self.rejected.FDS.eq(self.pmsfcr.FDS & present & ~selected)
