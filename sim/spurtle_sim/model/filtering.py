"""Filtering of sample records by PMSFCR_EL1 and the filter registers that it enables.

All functions also run on z3 values. They therefore use only `if`, comparisons, bit operations and shifts.

Ref: DDI0487 M.a, D17.5, rule by rule; D17.6.4.3 and D17.6.4.5 (`sampled_access`).
"""

from spurtle.arch import PMSFCR_EL1
from spurtle.config import SPUConfig, UnpredictableFilter

from .kinds import has_data_source, is_branch, is_memory
from .operation import Facts, Sample
from .records import events, saturate
from .registers import Registers

__all__ = [
    "by_data_source",
    "by_event",
    "by_inverted_event",
    "by_latency",
    "by_type",
    "collect",
    "feed",
    "sampled_access",
    "type_flags",
]

# Fields are read one by one, because unpacking the complete register for each sample dominates the run time of a
# filter.
_CONTROLS = PMSFCR_EL1.fields


def collect(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """Return whether the record is kept: no enabled filter rejects it. PMU event SAMPLE_FILTRATE counts it."""
    ft, fe, fne, fl, fds = (_CONTROLS[name].of(registers.PMSFCR_EL1) for name in ("FT", "FE", "FnE", "FL", "FDS"))
    # FE and FnE are both enabled, and an event is selected in both PMSEVFR_EL1 and PMSNEVFR_EL1.
    overlap = fe & fne & (registers.PMSEVFR_EL1 & registers.PMSNEVFR_EL1 != 0)
    # Each filter, whether it is enabled, and whether its effect is CONSTRAINED UNPREDICTABLE.
    for passes_filter, enable, unpredictable in (
        (by_type, ft, (not config.eft) & (_types(config, registers) == 0)),
        (by_event, fe, overlap | (registers.PMSEVFR_EL1 == 0)),
        (by_inverted_event, fne, overlap | (registers.PMSNEVFR_EL1 == 0)),
        (by_latency, fl, registers.PMSLATFR_EL1 == 0),
        (by_data_source, fds, False),
    ):
        if enable == 1:
            passes = passes_filter(config, registers, sample)
            if config.unpredictable_filter == UnpredictableFilter.NO_EFFECT:
                passes = passes | unpredictable
            else:
                passes = passes & (unpredictable == 0)
            if not passes:
                return False
    return True


def feed(config: SPUConfig, registers: Registers, sample: Sample) -> dict[str, int]:
    """Return, for each PMU event SAMPLE_FEED_* of `config.feed_events`, whether it counts a finished sample (0 or 1).

    The events count the types of the operation, and the filters that the sample matches, whether or not the filters are
    enabled.
    """
    types = type_flags(config, sample.operation.facts)
    selects_types = (_types(config, registers) | _types(config, registers, "m")) != 0
    counts = {name: types >> bit & 1 for bit, name in enumerate(config.feed_events[: len(config.filter_types)])} | {
        "op": by_type(config, registers, sample) & selects_types,
        "event": by_event(config, registers, sample) & by_inverted_event(config, registers, sample),
        "lat": by_latency(config, registers, sample),
    }
    if config.fds:
        counts["ds"] = has_data_source(config, sample.operation.facts) & _selects_data_source(registers, sample)
    return counts


def type_flags(config: SPUConfig, facts: Facts) -> int:
    """Return the types of the operation, {SIMD, FP, ST, LD, B} with B in bit 0, or {ST, LD, B} without FEAT_SPE_EFT.

    An operation can have more than one type (D17.5.1).
    """
    types = facts.store << 2 | facts.load << 1 | is_branch(facts)
    if config.eft:
        scalar_access = is_memory(facts) & facts.simd_fp & ~facts.vector
        types |= facts.vector << 4 | (facts.floating_point | scalar_access) << 3
    return types


def _types(config: SPUConfig, registers: Registers, suffix: str = "") -> int:
    """Return the operation type filter controls, or with the suffix "m" their masks, in the order of `type_flags`."""
    if suffix and not config.eft:
        return 0
    types = 0
    for bit, name in enumerate(config.filter_types):
        types |= _CONTROLS[name + suffix].of(registers.PMSFCR_EL1) << bit
    return types


def by_type(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """Return whether the sample passes the filter by operation type, PMSFCR_EL1.FT (D17.5.1).

    If types with mask bit 0 are selected, the operation must have at least one of them. Of the types with mask bit 1
    the operation must have those that are selected, and no others.
    """
    control, mask = _types(config, registers), _types(config, registers, "m")
    types = type_flags(config, sample.operation.facts)
    alternatives = control & ~mask
    return ((alternatives == 0) | (types & alternatives != 0)) & (types & mask == control & mask)


def by_event(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """Return whether the sample has all events of PMSEVFR_EL1: PMSFCR_EL1.FE (D17.5.2)."""
    return events(config, sample) & registers.PMSEVFR_EL1 == registers.PMSEVFR_EL1


def by_inverted_event(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """Return whether the sample has no event of PMSNEVFR_EL1: PMSFCR_EL1.FnE (D17.5.2)."""
    return events(config, sample) & registers.PMSNEVFR_EL1 == 0


def by_latency(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """Return whether the recorded total latency is at least PMSLATFR_EL1.MINLAT: PMSFCR_EL1.FL (D17.5.3)."""
    return saturate(config, sample.total) >= registers.PMSLATFR_EL1


def by_data_source(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """Return whether PMSDSFR_EL1 selects the data source, or none is recorded: PMSFCR_EL1.FDS (D17.5.4)."""
    recorded = has_data_source(config, sample.operation.facts)
    return (recorded == 0) | (_selects_data_source(registers, sample) == 1)


def _selects_data_source(registers: Registers, sample: Sample) -> int:
    """Return whether PMSDSFR_EL1 selects the data source: bits [5:0] of the data source are the index of its bit."""
    return registers.PMSDSFR_EL1 >> (sample.operation.data_source & 0x3F) & 1


def sampled_access(registers: Registers, random: int) -> int:
    """Return which access is sampled of an operation that loads from one address and stores to another.

    The result is 1 for the store and 0 for the load.

    The filter by operation type decides if it is enabled and selects either loads or stores, but not both. Its masks
    have no effect. Otherwise the random bit decides.
    """
    ft, load, store = (_CONTROLS[name].of(registers.PMSFCR_EL1) for name in ("FT", "LD", "ST"))
    if ft == 1 and load != store:
        return store
    return random
