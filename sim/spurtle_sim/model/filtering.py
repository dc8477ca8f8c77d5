"""Which sample records are kept: PMSFCR_EL1 and the registers that it enables."""

# Ref: DDI0487 M.a, D17.5, rule by rule; D17.6.4.3 and D17.6.4.5 for `sampled_access`. This also runs over z3 values:
# nothing but `if`, comparisons, bit operations and shifts.

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

# Fields are read one by one: to unpack the whole register for each sample takes most of the time of a filter.
_CONTROLS = PMSFCR_EL1.fields


def collect(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """Keep the record: no enabled filter rejects it. PMU event SAMPLE_FILTRATE counts these."""
    ft, fe, fne, fl, fds = (_CONTROLS[name].of(registers.PMSFCR_EL1) for name in ("FT", "FE", "FnE", "FL", "FDS"))
    # FE and FnE that want an event both to be set and not to be.
    overlap = fe & fne & (registers.PMSEVFR_EL1 & registers.PMSNEVFR_EL1 != 0)
    # The filter, where it is enabled, and where what it does is CONSTRAINED UNPREDICTABLE.
    for by, enable, unpredictable in (
        (by_type, ft, (not config.eft) & (_types(config, registers) == 0)),
        (by_event, fe, overlap | (registers.PMSEVFR_EL1 == 0)),
        (by_inverted_event, fne, overlap | (registers.PMSNEVFR_EL1 == 0)),
        (by_latency, fl, registers.PMSLATFR_EL1 == 0),
        (by_data_source, fds, False),
    ):
        if enable == 1:
            passes = by(config, registers, sample)
            if config.unpredictable_filter == UnpredictableFilter.NO_EFFECT:
                passes = passes | unpredictable
            else:
                passes = passes & (unpredictable == 0)
            if not passes:
                return False
    return True


def feed(config: SPUConfig, registers: Registers, sample: Sample) -> dict[str, int]:
    """What else PMU event SAMPLE_FEED counts of a finished sample, 0 or 1 each, by `config.feed_events`: its types, and
    which of the filters it meets, whether or not they are enabled.
    """
    types = type_flags(config, sample.operation.facts)
    selects_types = (_types(config, registers) | _types(config, registers, "m")) != 0
    told = {name: types >> bit & 1 for bit, name in enumerate(config.feed_events[: len(config.filter_types)])} | {
        "op": by_type(config, registers, sample) & selects_types,
        "event": by_event(config, registers, sample) & by_inverted_event(config, registers, sample),
        "lat": by_latency(config, registers, sample),
    }
    if config.fds:
        told["ds"] = has_data_source(config, sample.operation.facts) & _selects_data_source(registers, sample)
    return told


def type_flags(config: SPUConfig, facts: Facts) -> int:
    """{SIMD, FP, ST, LD, B}, with B in bit 0: an operation may be more than one of them (D17.5.1). Without FEAT_SPE_EFT
    {ST, LD, B}.
    """
    types = facts.store << 2 | facts.load << 1 | is_branch(facts)
    if config.eft:
        scalar_access = is_memory(facts) & facts.simd_fp & ~facts.vector
        types |= facts.vector << 4 | (facts.floating_point | scalar_access) << 3
    return types


def _types(config: SPUConfig, registers: Registers, suffix: str = "") -> int:
    """Operation type filter controls, or with the suffix "m" the mask, in the order of `type_flags`."""
    if suffix and not config.eft:
        return 0
    types = 0
    for bit, name in enumerate(config.filter_types):
        types |= _CONTROLS[name + suffix].of(registers.PMSFCR_EL1) << bit
    return types


def by_type(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """PMSFCR_EL1.FT (D17.5.1): it is one of the types whose mask bit is 0, if any is selected, and it is exactly what
    is selected of the types whose mask bit is 1.
    """
    control, mask = _types(config, registers), _types(config, registers, "m")
    types = type_flags(config, sample.operation.facts)
    alternatives = control & ~mask
    return ((alternatives == 0) | (types & alternatives != 0)) & (types & mask == control & mask)


def by_event(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """PMSFCR_EL1.FE (D17.5.2): it has all events of PMSEVFR_EL1."""
    return events(config, sample) & registers.PMSEVFR_EL1 == registers.PMSEVFR_EL1


def by_inverted_event(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """PMSFCR_EL1.FnE (D17.5.2): it has no event of PMSNEVFR_EL1."""
    return events(config, sample) & registers.PMSNEVFR_EL1 == 0


def by_latency(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """PMSFCR_EL1.FL (D17.5.3): its total latency, as it is recorded, is at least PMSLATFR_EL1.MINLAT."""
    return saturate(config, sample.total) >= registers.PMSLATFR_EL1


def by_data_source(config: SPUConfig, registers: Registers, sample: Sample) -> bool:
    """PMSFCR_EL1.FDS (D17.5.4): its data source is one of PMSDSFR_EL1, or none is recorded."""
    recorded = has_data_source(config, sample.operation.facts)
    return (recorded == 0) | (_selects_data_source(registers, sample) == 1)


def _selects_data_source(registers: Registers, sample: Sample) -> int:
    return registers.PMSDSFR_EL1 >> (sample.operation.data_source & 0x3F) & 1


def sampled_access(registers: Registers, random: int) -> int:
    """Which access is sampled of an operation that loads from one address and stores to another: 1 for the store.

    The filter decides if it selects one of loads and stores alone, whatever its masks; else the random bit does.
    """
    ft, load, store = (_CONTROLS[name].of(registers.PMSFCR_EL1) for name in ("FT", "LD", "ST"))
    if ft == 1 and load != store:
        return store
    return random
