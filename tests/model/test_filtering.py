"""Filtering of records, rule by rule (D17.5), and choice of the sampled access (D17.6.4.3 and D17.6.4.5)."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from configurations import FEATURES, FOR_FILTERS
from formal.engine.paths import explore
from formal.engine.terms import Solver, variable
from spurtle import arch
from spurtle.arch import PMSFCR_EL1
from spurtle.config import CONFIGS, SPUConfig, UnpredictableFilter
from spurtle_sim.model import filtering
from spurtle_sim.model.operation import Facts, Operation, Sample, Start
from spurtle_sim.model.records import events
from spurtle_sim.model.registers import Registers
from tests.support.gateware import boundary_integers
from tests.support.samples import samples
from tests.support.tiers import configurations

N1 = CONFIGS["neoverse_n1"]
ALL = {config.name: config for config in (*CONFIGS.values(), *FEATURES.values(), *FOR_FILTERS)}
FULL, DISCARD, BEFORE_EFT = FOR_FILTERS
IMPLEMENTED = pytest.mark.parametrize("config", configurations(ALL))

# Operations, and their types as D17.5.1 lists them, by the names of the fields of PMSFCR_EL1.
KINDS: Mapping[str, tuple[Facts, str]] = {
    "load": (Facts(load=1), "LD"),
    "store": (Facts(store=1), "ST"),
    "atomic that returns a value": (Facts(load=1, store=1, atomic=1), "LD ST"),
    "atomic that does not": (Facts(store=1, atomic=1), "ST"),
    "Store-Exclusive": (Facts(store=1, exclusive=1), "ST"),
    "branch": (Facts(branch=1, taken=1), "B"),
    "branch not taken": (Facts(branch=1, conditional=1), "B"),
    "exception instead of a branch": (Facts(branch=1, exception=1), ""),
    "load that generated an exception": (Facts(load=1, exception=1), "LD"),
    "other": (Facts(), ""),
    "scalar floating point": (Facts(floating_point=1), "FP"),
    "vector of integers": (Facts(vector=1), "SIMD"),
    "vector of floating point": (Facts(vector=1, floating_point=1), "SIMD FP"),
    "load of a scalar SIMD&FP register": (Facts(load=1, simd_fp=1), "LD FP"),
    "store of a pair of them": (Facts(store=1, simd_fp=1), "ST FP"),
    "load of a Q register": (Facts(load=1, simd_fp=1, vector=1), "LD SIMD"),
    "store of structures": (Facts(store=1, simd_fp=1, vector=1), "ST SIMD"),
    "FP atomic": (Facts(load=1, store=1, atomic=1, floating_point=1), "LD ST FP"),
    "memory copy, source": (Facts(load=1, store=1, memory_copy=1), "LD ST"),
    "memory copy, destination": (Facts(load=1, store=1, memory_copy=1, destination=1), "LD ST"),
    "memory set": (Facts(store=1, memory_set=1), "ST"),
    "call with GCS": (Facts(branch=1, taken=1, store=1, gcs=1, link=1), "B ST"),
    "return with GCS": (Facts(branch=1, taken=1, load=1, gcs=1, procedure_return=1), "B LD"),
    "call with GCS that generated an exception": (Facts(branch=1, exception=1, store=1, gcs=1), "ST"),
    "GCSSS2": (Facts(load=1, store=1, gcs=1), "LD ST"),
    "load of an Allocation Tag": (Facts(load=1, allocation_tag=1), "LD"),
    "MSR made a store": (Facts(store=1, nv2=1), "ST"),
    "DC ZVA": (Facts(store=1, unspecified=1), "ST"),
    "SME load": (Facts(load=1, unspecified=1, vector=1), "LD SIMD"),
}
PLAIN = {name: facts for name, (facts, _) in KINDS.items()}
PARTS = ("FE", "FT", "FL", "FnE", "FDS")


def settings(config: SPUConfig, registers: Mapping[str, int] | None = None, **pmsfcr: int) -> Registers:
    """Return the registers after writes of the fields of PMSFCR_EL1, and of other registers in `registers`."""
    result = Registers.after_reset(config)
    written = {"PMSFCR_EL1": PMSFCR_EL1.pack(**pmsfcr), **(registers or {})}
    for register in config.registers:
        if register.name in written:
            result.write(config, register, written.pop(register.name))
    assert not written
    return result


def sampled(facts: Facts, *, retired: int = 1, events: int = 0, total: int = 0, data_source: int = 0) -> Sample:
    facts = replace(facts, retired=retired)
    return Sample(start=Start(), operation=Operation(facts=facts, events=events, data_source=data_source), total=total)


def kept(config: SPUConfig, registers: Registers, candidates: Mapping[Any, Sample]) -> set[Any]:
    return {name for name, sample in candidates.items() if filtering.collect(config, registers, sample)}


KIND_SAMPLES = {name: sampled(facts) for name, facts in PLAIN.items()}


def of_types(*selected: str) -> set[str]:
    """Return the kinds of operation that have at least one of the types."""
    return {name for name, (_, types) in KINDS.items() if set(types.split()) & set(selected)}


@IMPLEMENTED
def test_all_records_are_kept_without_a_filter(config: SPUConfig):
    assert kept(config, Registers.after_reset(config), KIND_SAMPLES) == set(KINDS)
    assert filtering.collect(config, Registers.after_reset(config), sampled(Facts(), retired=0))


# D17.5.1.


@IMPLEMENTED
def test_type_flags(config: SPUConfig):
    bits = {"B": 1, "LD": 2, "ST": 4, "FP": 8, "SIMD": 16} if config.eft else {"B": 1, "LD": 2, "ST": 4}
    expected = {name: sum(bits.get(one, 0) for one in types.split()) for name, (_, types) in KINDS.items()}
    for retired in (0, 1):
        flags = {name: filtering.type_flags(config, replace(facts, retired=retired)) for name, facts in PLAIN.items()}
        assert flags == expected


@pytest.mark.parametrize("config", [N1, FULL], ids=["before EFT", "EFT"])
@pytest.mark.parametrize("types", ["LD", "ST", "B", "LD ST", "LD B", "ST B", "B LD ST"])
def test_any_selected_type_passes_without_masks(config: SPUConfig, types: str):
    chosen = types.split()
    selected = dict.fromkeys(chosen, 1)
    assert kept(config, settings(config, FT=1, **selected), KIND_SAMPLES) == of_types(*chosen)
    assert kept(config, settings(config, FT=0, **selected), KIND_SAMPLES) == set(KINDS)


@pytest.mark.parametrize("chosen", [("FP",), ("SIMD",), ("FP", "SIMD"), ("LD", "SIMD")])
def test_fp_and_simd_types_require_eft(chosen: tuple[str, ...]):
    selected = dict.fromkeys(chosen, 1)
    assert kept(FULL, settings(FULL, FT=1, **selected), KIND_SAMPLES) == of_types(*chosen)
    before = set(KINDS) if "LD" not in chosen else of_types("LD")
    assert kept(BEFORE_EFT, settings(BEFORE_EFT, FT=1, **selected), KIND_SAMPLES) == before


def test_every_combination_of_controls_masks_and_flags():
    """The expected result of both equations of D17.5.1 is computed with sets of types."""
    types = FULL.filter_types
    masks = list(product((0, 1), repeat=len(types)))
    for control, mask in product(masks, masks):
        alternatives = {name for name, c, m in zip(types, control, mask, strict=True) if c and not m}
        required = {name for name, c, m in zip(types, control, mask, strict=True) if c and m}
        forbidden = {name for name, c, m in zip(types, control, mask, strict=True) if m and not c}
        registers = settings(
            FULL,
            FT=1,
            **dict(zip(types, control, strict=True)),
            **{f"{name}m": m for name, m in zip(types, mask, strict=True)},
        )
        expected = {
            name
            for name, (_, flags) in KINDS.items()
            if (not alternatives or alternatives & {*flags.split()})
            and required <= {*flags.split()}
            and not forbidden & {*flags.split()}
        }
        assert kept(FULL, registers, KIND_SAMPLES) == expected


def test_eft_type_filter_that_selects_nothing_has_no_effect():
    for config in (FULL, DISCARD):  # CONSTRAINED UNPREDICTABLE only without FEAT_SPE_EFT
        assert kept(config, settings(config, FT=1), KIND_SAMPLES) == set(KINDS)


def test_mask_without_control_rejects_the_type():
    registers = settings(FULL, FT=1, LDm=1)
    assert kept(FULL, registers, KIND_SAMPLES) == set(KINDS) - of_types("LD")


def test_controls_select_flags_of_the_same_name():
    """The printed order of the flags in D17.5.1 would let ST select branches."""
    assert kept(N1, settings(N1, FT=1, ST=1), {name: KIND_SAMPLES[name] for name in ("store", "branch")}) == {"store"}


@pytest.mark.parametrize("name", ["memory copy, source", "memory copy, destination", "GCSSS2"])
def test_operation_with_two_accesses_has_both_types(name: str):
    """The types do not depend on which access is sampled."""
    copy = {name: KIND_SAMPLES[name]}
    assert kept(FULL, settings(FULL, FT=1, LD=1, LDm=1, STm=1), copy) == set()
    assert kept(FULL, settings(FULL, FT=1, LD=1, LDm=1, ST=1, STm=1), copy) == {name}


def test_branch_with_a_data_access_has_both_types():
    guarded = {name: KIND_SAMPLES[name] for name in ("call with GCS", "return with GCS")}
    assert kept(FULL, settings(FULL, FT=1, B=1), guarded) == set(guarded)
    assert kept(FULL, settings(FULL, FT=1, LD=1), guarded) == {"return with GCS"}
    assert kept(FULL, settings(FULL, FT=1, ST=1), guarded) == {"call with GCS"}
    assert kept(FULL, settings(FULL, FT=1, B=1, LDm=1), guarded) == {"call with GCS"}


def test_operation_that_did_not_retire_is_filtered_by_type():
    assert filtering.collect(FULL, settings(FULL, FT=1, LD=1), sampled(PLAIN["load"], retired=0))
    assert not filtering.collect(FULL, settings(FULL, FT=1, LD=1), sampled(PLAIN["store"], retired=0))


# D17.5.2.


@pytest.mark.parametrize(
    ("events", "pmsevfr", "kept"),
    [
        (0b0000_0100, 0b0000_0100, True),
        (0b0000_0100, 0b0000_1100, False),  # all events are required
        (0b0000_1100, 0b0000_1100, True),
        (0b0011_1100, 0b0000_1100, True),
        (0, 0b0000_0010, True),  # E[1] comes from the facts
        (1 << 12, 1 << 12, True),
        (0, 1 << 12, False),
    ],
)
def test_fe_requires_all_selected_events(events: int, pmsevfr: int, kept: bool):
    for config in (N1, FULL):
        registers = settings(config, {"PMSEVFR_EL1": pmsevfr}, FE=1)
        assert filtering.collect(config, registers, sampled(PLAIN["load"], events=events)) is kept
        registers = settings(config, {"PMSEVFR_EL1": pmsevfr}, FE=0)
        assert filtering.collect(config, registers, sampled(PLAIN["load"], events=events))


@pytest.mark.parametrize(
    ("events", "pmsnevfr", "kept"),
    [
        (0b0000_0100, 0b0000_0100, False),
        (0b0000_0100, 0b0000_1000, True),
        (0b0000_0100, 0b0000_1100, False),  # no event is allowed
        (0, 0b0000_1100, True),
        (0, 0b0000_0010, False),  # the operation retired
        (1 << 23, 1 << 23, False),
    ],
)
def test_fne_allows_no_selected_event(events: int, pmsnevfr: int, kept: bool):
    registers = settings(FULL, {"PMSNEVFR_EL1": pmsnevfr}, FnE=1)
    assert filtering.collect(FULL, registers, sampled(PLAIN["load"], events=events)) is kept
    registers = settings(FULL, {"PMSNEVFR_EL1": pmsnevfr}, FnE=0)
    assert filtering.collect(FULL, registers, sampled(PLAIN["load"], events=events))


def test_fe_and_fne_together():
    registers = settings(FULL, {"PMSEVFR_EL1": 1 << 2, "PMSNEVFR_EL1": 1 << 3}, FE=1, FnE=1)
    candidates = {value: sampled(PLAIN["load"], events=value << 2) for value in range(4)}
    assert kept(FULL, registers, candidates) == {0b01}


def test_filters_use_the_recorded_events():
    for facts, event in ((PLAIN["other"], 2), (PLAIN["load"], 7), (PLAIN["store"], 19)):
        sample = sampled(facts, events=1 << event)
        assert not filtering.collect(FULL, settings(FULL, {"PMSEVFR_EL1": 1 << event}, FE=1), sample)
        assert filtering.collect(FULL, settings(FULL, {"PMSNEVFR_EL1": 1 << event}, FnE=1), sample)
    sample = sampled(PLAIN["load"], retired=0, events=1 << 2)
    assert not filtering.collect(FULL, settings(FULL, {"PMSEVFR_EL1": 1 << 2}, FE=1), sample)


def test_branch_not_taken_can_be_selected_with_fne():
    """PMSEVFR_EL1.E[6] requires FEAT_SPE_FnE. Without it the bit is RES0, and the filter selects no event."""
    candidates = {name: KIND_SAMPLES[name] for name in ("branch", "branch not taken")}
    for config, expected in ((FULL, {"branch not taken"}), (N1, set(candidates))):
        assert kept(config, settings(config, {"PMSEVFR_EL1": 1 << 6}, FE=1), candidates) == expected


# D17.5.3.


@pytest.mark.parametrize(
    ("total", "minlat", "kept"), [(99, 100, False), (100, 100, True), (101, 100, True), (4094, 4095, False)]
)
def test_minimum_latency(total: int, minlat: int, kept: bool):
    for config in (N1, FULL):
        sample = sampled(PLAIN["load"], total=total)
        assert filtering.collect(config, settings(config, {"PMSLATFR_EL1": minlat}, FL=1), sample) is kept
        assert filtering.collect(config, settings(config, {"PMSLATFR_EL1": minlat}, FL=0), sample)


def test_latency_filter_uses_the_saturated_count():
    """MINLAT is as wide as the counters: no setting distinguishes the saturated count from the exact one."""
    for bits in (12, 16):
        config = replace(FULL, counter_bits=bits)
        largest = (1 << bits) - 1
        registers = settings(config, {"PMSLATFR_EL1": largest}, FL=1)
        for total in (largest, largest + 1, 1 << 40):
            assert filtering.collect(config, registers, sampled(PLAIN["load"], total=total))
    # 4500 exceeds the largest count. The register holds its 12 least significant bits, 404.
    assert settings(N1, {"PMSLATFR_EL1": 4500}).PMSLATFR_EL1 == 404


def test_operation_that_did_not_retire_is_filtered_by_latency():
    """The record has no latency packet, but it is filtered by the latency."""
    registers = settings(FULL, {"PMSLATFR_EL1": 10}, FL=1)
    for total in (9, 10):
        sample = sampled(Facts(), retired=0, total=total)
        assert filtering.collect(FULL, registers, sample) is (total == 10)


# D17.5.4.

FROM_A_SOURCE = Facts(load=1, data_source_valid=1)


@pytest.mark.parametrize(
    ("source", "selected", "kept"),
    [
        (0, 1 << 0, True),
        (0, ~(1 << 0), False),
        (9, 1 << 9, True),
        (9, ~(1 << 9), False),
        (63, 1 << 63, True),
        (63, ~(1 << 63), False),
        (0x40, 1 << 0, True),  # only DS[5:0] is compared
        (0x40, ~(1 << 0), False),
        (0xFFC9, 1 << 9, True),
    ],
)
def test_data_source_filter(source: int, selected: int, kept: bool):
    written = {"PMSDSFR_EL1": selected & (1 << 64) - 1}
    sample = sampled(FROM_A_SOURCE, data_source=source)
    assert filtering.collect(FULL, settings(FULL, written, FDS=1), sample) is kept
    assert filtering.collect(FULL, settings(FULL, written, FDS=0), sample)


def test_only_records_with_a_data_source_are_filtered_by_it():
    affected = {
        "load": (FROM_A_SOURCE, True),
        "load without a source": (replace(FROM_A_SOURCE, data_source_valid=0), False),
        "load that generated an exception": (replace(FROM_A_SOURCE, exception=1), False),
        "atomic that returns a value": (replace(FROM_A_SOURCE, store=1, atomic=1), True),
        "store": (replace(FROM_A_SOURCE, load=0, store=1), False),
        "branch": (Facts(branch=1, taken=1, data_source_valid=1), False),
        "other": (Facts(data_source_valid=1), False),
        "memory copy, source": (replace(FROM_A_SOURCE, store=1, memory_copy=1), True),
        "memory copy, destination": (replace(FROM_A_SOURCE, store=1, memory_copy=1, destination=1), False),
        "return with GCS": (replace(FROM_A_SOURCE, branch=1, taken=1, gcs=1), True),
    }
    registers = settings(FULL, {"PMSDSFR_EL1": 0}, FDS=1)
    candidates = {name: sampled(facts) for name, (facts, _) in affected.items()}
    assert kept(FULL, registers, candidates) == {name for name, (_, rejected) in affected.items() if not rejected}
    assert filtering.collect(FULL, registers, sampled(FROM_A_SOURCE, retired=0))
    for name, sample in candidates.items():
        assert filtering.feed(FULL, registers, sample)["ds"] == 0
        everything = settings(FULL, {"PMSDSFR_EL1": (1 << 64) - 1})
        assert filtering.feed(FULL, everything, sample)["ds"] == affected[name][1]


# The two choices for CONSTRAINED UNPREDICTABLE settings.

LOADS = {
    (value, total): sampled(PLAIN["load"], events=value << 2, total=total) for value in range(4) for total in (0, 50)
}


@pytest.mark.parametrize(
    ("name", "enabled"), [("FE", {"FE": 1}), ("FnE", {"FnE": 1}), ("FL", {"FL": 1}), ("FT", {"FT": 1})]
)
def test_filter_that_selects_nothing(name: str, enabled: dict[str, int]):
    """The effect of such a filter is CONSTRAINED UNPREDICTABLE."""
    no_effect, discard = FULL, DISCARD
    if name == "FT":
        no_effect, discard = (replace(config, eft=False, fpf=False) for config in (FULL, DISCARD))
    assert kept(no_effect, settings(no_effect, **enabled), LOADS) == set(LOADS)
    assert kept(discard, settings(discard, **enabled), LOADS) == set()
    assert kept(discard, settings(discard), LOADS) == set(LOADS)


def test_data_source_filter_that_selects_nothing_is_predictable():
    sample = {"load": sampled(FROM_A_SOURCE), "other": sampled(Facts())}
    for config in (FULL, DISCARD):
        assert kept(config, settings(config, {"PMSDSFR_EL1": 0}, FDS=1), sample) == {"other"}


OVERLAP = {"PMSEVFR_EL1": 0b01 << 2, "PMSNEVFR_EL1": 0b11 << 2}


def test_overlap_of_fe_and_fne():
    """With both filters enabled, an overlap makes both of them CONSTRAINED UNPREDICTABLE, for all events."""
    assert kept(FULL, settings(FULL, OVERLAP, FE=1, FnE=1), LOADS) == set(LOADS)
    assert kept(DISCARD, settings(DISCARD, OVERLAP, FE=1, FnE=1), LOADS) == set()
    for config in (FULL, DISCARD):
        assert {value for value, _ in kept(config, settings(config, OVERLAP, FE=1), LOADS)} == {0b01, 0b11}
        assert {value for value, _ in kept(config, settings(config, OVERLAP, FnE=1), LOADS)} == {0b00}


def test_filter_rejects_beside_one_without_effect():
    registers = settings(FULL, {"PMSLATFR_EL1": 10, **OVERLAP}, FE=1, FnE=1, FL=1)
    assert {total for _, total in kept(FULL, registers, LOADS)} == {50}
    registers = settings(FULL, {"PMSLATFR_EL1": 10}, FE=1, FL=1)
    assert {total for _, total in kept(FULL, registers, LOADS)} == {50}


def test_unimplemented_bits_select_nothing():
    """E[0], E[6] without FEAT_SPE_FnE, and events that are not recorded cannot be written."""
    registers = settings(N1, {"PMSEVFR_EL1": 1 << 0 | 1 << 6 | 1 << 20}, FE=1)
    assert kept(N1, registers, KIND_SAMPLES) == set(KINDS)


# Combinations of filters.


def test_any_enabled_filter_rejects():
    """Example D17-1, with all five filters."""
    chosen = {"PMSEVFR_EL1": 1 << 5, "PMSNEVFR_EL1": 1 << 3, "PMSLATFR_EL1": 10, "PMSDSFR_EL1": 1 << 1}
    for matches in product((False, True), repeat=len(PARTS)):
        fe, ft, fl, fne, fds = matches
        sample = sampled(
            replace(FROM_A_SOURCE, store=1 - ft, atomic=1),
            events=fe << 5 | (1 - fne) << 3,
            total=10 * fl,
            data_source=int(fds),
        )
        for enabled in product((0, 1), repeat=len(PARTS)):
            registers = settings(FULL, chosen, STm=1, **dict(zip(PARTS, enabled, strict=True)))
            expected = all(match or not enable for match, enable in zip(matches, enabled, strict=True))
            assert filtering.collect(FULL, registers, sample) is expected


@st.composite
def any_registers(draw: st.DrawFn, config: SPUConfig) -> Registers:
    """Draw values that software can have written. Few bits are set, so that samples often match."""
    few = boundary_integers(64) | st.integers(0, 0xFF)
    result = Registers.after_reset(config)
    for register in config.registers:
        if register.name in ("PMSEVFR_EL1", "PMSNEVFR_EL1", "PMSLATFR_EL1", "PMSDSFR_EL1"):
            result.write(config, register, draw(few))
    enables, controls, masks = (draw(st.integers(0, 31)) for _ in range(3))
    result.write(config, PMSFCR_EL1, masks << 48 | controls << 16 | enables)
    return result


@IMPLEMENTED
@examples(max_examples=15)
@given(data=st.data())
def test_enabling_another_filter_never_passes_a_rejected_record(config: SPUConfig, data: st.DataObject):
    """The exception is an overlap of FE and FnE with NO_EFFECT: the second enable removes the effect of the first."""
    registers, sample = data.draw(any_registers(config)), data.draw(samples(config))
    more = replace(registers)
    more.write(config, PMSFCR_EL1, registers.PMSFCR_EL1 | data.draw(st.integers(0, 31)))
    enabled = PMSFCR_EL1.unpack(more.PMSFCR_EL1)
    overlap = enabled.FE and enabled.FnE and more.PMSEVFR_EL1 & more.PMSNEVFR_EL1
    if not overlap or config.unpredictable_filter is UnpredictableFilter.DISCARD:
        assert filtering.collect(config, registers, sample) >= filtering.collect(config, more, sample)


@IMPLEMENTED
@examples(max_examples=15)
@given(data=st.data())
def test_any_setting_and_any_sample(config: SPUConfig, data: st.DataObject):
    """The expected results are computed with the sets that the architecture describes."""
    registers, sample = data.draw(any_registers(config)), data.draw(samples(config))
    fields = vars(PMSFCR_EL1.unpack(registers.PMSFCR_EL1))
    flags = filtering.type_flags(config, sample.operation.facts)
    has = {name for bit, name in enumerate(config.filter_types) if flags >> bit & 1}
    selected = {name for name in config.filter_types if fields[name]}
    exact = {name for name in config.filter_types if fields[f"{name}m"]}
    recorded, required, forbidden = (
        {bit for bit in range(64) if value >> bit & 1}
        for value in (events(config, sample), registers.PMSEVFR_EL1, registers.PMSNEVFR_EL1)
    )
    total = min(sample.total, (1 << config.counter_bits) - 1)
    matches = {
        "FT": (not selected - exact or bool(has & selected - exact)) and has & exact == selected & exact,
        "FE": required <= recorded,
        "FnE": not forbidden & recorded,
        "FL": total >= registers.PMSLATFR_EL1,
        "FDS": True,
    }
    counts = filtering.feed(config, registers, sample)
    assert set(counts) == set(config.feed_events)
    expected = {"br" if name == "B" else name.lower(): name in has for name in config.filter_types} | {
        "op": matches["FT"] and bool(selected | exact),
        "event": matches["FE"] and matches["FnE"],
        "lat": matches["FL"],
    }
    assert {name: counts[name] for name in expected} == expected
    assert set(counts.values()) <= {0, 1}

    facts = sample.operation.facts
    source_sampled = facts.load and not (config.two_accesses and facts.destination)
    if config.fds and facts.retired and not facts.exception and source_sampled and facts.data_source_valid:
        matches["FDS"] = registers.PMSDSFR_EL1 >> sample.operation.data_source % 64 & 1 == 1
        assert counts["ds"] == matches["FDS"]
    elif config.fds:
        assert counts["ds"] == 0
    overlap = bool(fields["FE"] and fields["FnE"] and required & forbidden)
    unpredictable = {
        "FT": not config.eft and not selected,
        "FE": overlap or not required,
        "FnE": overlap or not forbidden,
        "FL": registers.PMSLATFR_EL1 == 0,
        "FDS": False,
    }
    keeps = config.unpredictable_filter is UnpredictableFilter.NO_EFFECT
    verdicts = [keeps if unpredictable[name] else matches[name] for name in PARTS if fields[name]]
    assert filtering.collect(config, registers, sample) is all(verdicts)


# PMU events.


def test_feed_events_do_not_depend_on_enables():
    chosen = {"PMSEVFR_EL1": 1 << 2, "PMSNEVFR_EL1": 1 << 3, "PMSLATFR_EL1": 10, "PMSDSFR_EL1": 1 << 1}
    sample = sampled(FROM_A_SOURCE, events=1 << 2, total=10, data_source=1)
    expected = {"br": 0, "ld": 1, "st": 0, "fp": 0, "simd": 0, "op": 1, "event": 1, "lat": 1, "ds": 1}
    for enabled in product((0, 1), repeat=5):
        registers = settings(FULL, chosen, LD=1, **dict(zip(PARTS, enabled, strict=True)))
        assert filtering.feed(FULL, registers, sample) == expected


def test_type_filter_that_selects_nothing_counts_nothing():
    load = sampled(PLAIN["load"])
    for config in (FULL, BEFORE_EFT):
        assert filtering.feed(config, settings(config), load)["op"] == 0
        assert filtering.feed(config, settings(config, LD=1), load)["op"] == 1
        assert filtering.feed(config, settings(config, ST=1), load)["op"] == 0
    assert filtering.feed(FULL, settings(FULL, STm=1), load)["op"] == 1  # a mask selects too
    assert filtering.feed(FULL, settings(FULL, LDm=1), load)["op"] == 0


@pytest.mark.parametrize(
    ("required", "forbidden", "counted"),
    [
        (0, 0, {0b00, 0b01, 0b10, 0b11}),  # no event is selected, so every sample matches
        (0b01, 0, {0b01, 0b11}),
        (0, 0b10, {0b00, 0b01}),
        (0b01, 0b10, {0b01}),
        (0b01, 0b01, set()),  # no special case: no sample matches
    ],
)
def test_samples_that_feed_event_counts(required: int, forbidden: int, counted: set[int]):
    registers = settings(FULL, {"PMSEVFR_EL1": required << 2, "PMSNEVFR_EL1": forbidden << 2})
    counts = {value: filtering.feed(FULL, registers, sample)["event"] for (value, _), sample in LOADS.items()}
    assert {value for value, count in counts.items() if count} == counted


def test_feed_lat_counts_every_sample_if_minlat_is_zero():
    assert filtering.feed(FULL, settings(FULL), sampled(Facts()))["lat"] == 1


# D17.6.4.3, D17.6.4.5.


@pytest.mark.parametrize("random", [0, 1])
def test_type_filter_decides_the_sampled_access(random: int):
    """The filter decides if it selects either loads or stores, for all masks and other types."""
    names = ("FT", "LD", "ST", "LDm", "STm", "B", "FP", "SIMD", "FE")
    for values in product((0, 1), repeat=len(names)):
        fields = dict(zip(names, values, strict=True))
        expected = {(1, 1, 0): 0, (1, 0, 1): 1}.get((fields["FT"], fields["LD"], fields["ST"]), random)
        assert filtering.sampled_access(settings(FULL, **fields), random) == expected


# The proofs run these functions on terms of a solver.


def test_symbolic_run_has_few_paths():
    """Each `if` on data doubles the number of paths, and each path requires a call of the solver."""
    written = [getattr(arch, f"{name}_EL1") for name in ("PMSFCR", "PMSEVFR", "PMSNEVFR", "PMSLATFR", "PMSDSFR")]
    values = [variable(register.name, 64) for register in written]
    operation = [variable("facts", len(Facts.__slots__)), variable("events", 32), variable("data_source", 16)]
    solver = Solver()
    solver.add(*(value & ~FULL.writable(register) == 0 for value, register in zip(values, written, strict=True)))

    def run(function: Any, facts: Any, events: Any, source: Any, total: Any, *values: Any) -> Any:
        registers = Registers(**{register.name: value for register, value in zip(written, values, strict=True)})
        finished = Operation(facts=Facts.unpack(facts), events=events, data_source=source)
        return function(FULL, registers, Sample(start=Start(), operation=finished, total=total))

    for function, bound in ((filtering.collect, 128), (filtering.feed, 4)):
        paths = explore(partial(run, function), *operation, variable("total", 12), *values, solver=solver)
        assert sum(1 for _ in paths) <= bound
