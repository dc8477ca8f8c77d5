"""D17.5: which records are kept, rule by rule; D17.6.4.3 and D17.6.4.5: which of two accesses is sampled."""

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

# Filters of D17.5 by operation; the flags are those of the chapter's list, by the names of its fields.
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
    """What software has written. `registers` are others than PMSFCR_EL1."""
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


def of_types(*wanted: str) -> set[str]:
    """Kinds that are one of the types."""
    return {name for name, (_, types) in KINDS.items() if set(types.split()) & set(wanted)}


@IMPLEMENTED
def test_without_a_filter_everything_is_kept(config: SPUConfig):
    assert kept(config, Registers.after_reset(config), KIND_SAMPLES) == set(KINDS)
    assert filtering.collect(config, Registers.after_reset(config), sampled(Facts(), retired=0))


# D17.5.1.


@IMPLEMENTED
def test_flags(config: SPUConfig):
    bits = {"B": 1, "LD": 2, "ST": 4, "FP": 8, "SIMD": 16} if config.eft else {"B": 1, "LD": 2, "ST": 4}
    expected = {name: sum(bits.get(one, 0) for one in types.split()) for name, (_, types) in KINDS.items()}
    for retired in (0, 1):
        flags = {name: filtering.type_flags(config, replace(facts, retired=retired)) for name, facts in PLAIN.items()}
        assert flags == expected


@pytest.mark.parametrize("config", [N1, FULL], ids=["before EFT", "EFT"])
@pytest.mark.parametrize("types", ["LD", "ST", "B", "LD ST", "LD B", "ST B", "B LD ST"])
def test_without_a_mask_any_selected_type_will_do(config: SPUConfig, types: str):
    chosen = types.split()
    selected = dict.fromkeys(chosen, 1)
    assert kept(config, settings(config, FT=1, **selected), KIND_SAMPLES) == of_types(*chosen)
    assert kept(config, settings(config, FT=0, **selected), KIND_SAMPLES) == set(KINDS)


@pytest.mark.parametrize("chosen", [("FP",), ("SIMD",), ("FP", "SIMD"), ("LD", "SIMD")])
def test_fp_and_simd_are_types_with_eft_alone(chosen: tuple[str, ...]):
    selected = dict.fromkeys(chosen, 1)
    assert kept(FULL, settings(FULL, FT=1, **selected), KIND_SAMPLES) == of_types(*chosen)
    before = set(KINDS) if "LD" not in chosen else of_types("LD")
    assert kept(BEFORE_EFT, settings(BEFORE_EFT, FT=1, **selected), KIND_SAMPLES) == before


def test_every_control_mask_and_combination_of_flags():
    """Both equations of D17.5.1, computed with sets of types."""
    types = FULL.filter_types
    masks = list(product((0, 1), repeat=len(types)))
    for control, mask in product(masks, masks):
        alternatives = {name for name, c, m in zip(types, control, mask, strict=True) if c and not m}
        wanted = {name for name, c, m in zip(types, control, mask, strict=True) if c and m}
        unwanted = {name for name, c, m in zip(types, control, mask, strict=True) if m and not c}
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
            and wanted <= {*flags.split()}
            and not unwanted & {*flags.split()}
        }
        assert kept(FULL, registers, KIND_SAMPLES) == expected


def test_with_eft_nothing_selected_discards_nothing():
    for config in (FULL, DISCARD):  # F1: CONSTRAINED UNPREDICTABLE only without
        assert kept(config, settings(config, FT=1), KIND_SAMPLES) == set(KINDS)


def test_a_mask_alone_discards_what_has_that_type():
    registers = settings(FULL, FT=1, LDm=1)
    assert kept(FULL, registers, KIND_SAMPLES) == set(KINDS) - of_types("LD")


def test_flags_and_controls_meet_by_name():
    """F17: as printed in D17.5.1, ST would meet branches."""
    assert kept(N1, settings(N1, FT=1, ST=1), {name: KIND_SAMPLES[name] for name in ("store", "branch")}) == {"store"}


@pytest.mark.parametrize("name", ["memory copy, source", "memory copy, destination", "GCSSS2"])
def test_an_operation_of_two_accesses_is_of_both_types(name: str):
    """F6, whichever access is sampled."""
    copy = {name: KIND_SAMPLES[name]}
    assert kept(FULL, settings(FULL, FT=1, LD=1, LDm=1, STm=1), copy) == set()
    assert kept(FULL, settings(FULL, FT=1, LD=1, LDm=1, ST=1, STm=1), copy) == {name}


def test_a_branch_with_an_access_is_kept_for_either():
    """F23."""
    guarded = {name: KIND_SAMPLES[name] for name in ("call with GCS", "return with GCS")}
    assert kept(FULL, settings(FULL, FT=1, B=1), guarded) == set(guarded)
    assert kept(FULL, settings(FULL, FT=1, LD=1), guarded) == {"return with GCS"}
    assert kept(FULL, settings(FULL, FT=1, ST=1), guarded) == {"call with GCS"}
    assert kept(FULL, settings(FULL, FT=1, B=1, LDm=1), guarded) == {"call with GCS"}


def test_types_are_those_of_an_operation_that_did_not_retire_too():
    assert filtering.collect(FULL, settings(FULL, FT=1, LD=1), sampled(PLAIN["load"], retired=0))
    assert not filtering.collect(FULL, settings(FULL, FT=1, LD=1), sampled(PLAIN["store"], retired=0))


# D17.5.2.


@pytest.mark.parametrize(
    ("events", "pmsevfr", "kept"),
    [
        (0b0000_0100, 0b0000_0100, True),
        (0b0000_0100, 0b0000_1100, False),  # all of them, not one of them
        (0b0000_1100, 0b0000_1100, True),
        (0b0011_1100, 0b0000_1100, True),
        (0, 0b0000_0010, True),  # E[1] comes from the facts
        (1 << 12, 1 << 12, True),
        (0, 1 << 12, False),
    ],
)
def test_all_selected_events(events: int, pmsevfr: int, kept: bool):
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
        (0b0000_0100, 0b0000_1100, False),  # none of them, not one of them
        (0, 0b0000_1100, True),
        (0, 0b0000_0010, False),  # it retired
        (1 << 23, 1 << 23, False),
    ],
)
def test_no_inverted_event(events: int, pmsnevfr: int, kept: bool):
    registers = settings(FULL, {"PMSNEVFR_EL1": pmsnevfr}, FnE=1)
    assert filtering.collect(FULL, registers, sampled(PLAIN["load"], events=events)) is kept
    registers = settings(FULL, {"PMSNEVFR_EL1": pmsnevfr}, FnE=0)
    assert filtering.collect(FULL, registers, sampled(PLAIN["load"], events=events))


def test_events_to_be_set_and_events_not_to_be():
    registers = settings(FULL, {"PMSEVFR_EL1": 1 << 2, "PMSNEVFR_EL1": 1 << 3}, FE=1, FnE=1)
    candidates = {value: sampled(PLAIN["load"], events=value << 2) for value in range(4)}
    assert kept(FULL, registers, candidates) == {0b01}


def test_events_are_those_that_are_recorded():
    for facts, event in ((PLAIN["other"], 2), (PLAIN["load"], 7), (PLAIN["store"], 19)):
        sample = sampled(facts, events=1 << event)
        assert not filtering.collect(FULL, settings(FULL, {"PMSEVFR_EL1": 1 << event}, FE=1), sample)
        assert filtering.collect(FULL, settings(FULL, {"PMSNEVFR_EL1": 1 << event}, FnE=1), sample)
    sample = sampled(PLAIN["load"], retired=0, events=1 << 2)
    assert not filtering.collect(FULL, settings(FULL, {"PMSEVFR_EL1": 1 << 2}, FE=1), sample)


def test_a_branch_not_taken_can_be_selected_with_fne():
    """E[6] in PMSEVFR_EL1 comes with FEAT_SPE_FnE; without, a filter of it alone selects nothing."""
    candidates = {name: KIND_SAMPLES[name] for name in ("branch", "branch not taken")}
    for config, expected in ((FULL, {"branch not taken"}), (N1, set(candidates))):
        assert kept(config, settings(config, {"PMSEVFR_EL1": 1 << 6}, FE=1), candidates) == expected


# D17.5.3.


@pytest.mark.parametrize(
    ("total", "minlat", "kept"), [(99, 100, False), (100, 100, True), (101, 100, True), (4094, 4095, False)]
)
def test_latency(total: int, minlat: int, kept: bool):
    for config in (N1, FULL):
        sample = sampled(PLAIN["load"], total=total)
        assert filtering.collect(config, settings(config, {"PMSLATFR_EL1": minlat}, FL=1), sample) is kept
        assert filtering.collect(config, settings(config, {"PMSLATFR_EL1": minlat}, FL=0), sample)


def test_latency_is_the_recorded_saturated_count():
    """F19. MINLAT is as wide as the counters, so that no setting can tell the saturated count from the true one."""
    for bits in (12, 16):
        config = replace(FULL, counter_bits=bits)
        largest = (1 << bits) - 1
        registers = settings(config, {"PMSLATFR_EL1": largest}, FL=1)
        for total in (largest, largest + 1, 1 << 40):
            assert filtering.collect(config, registers, sampled(PLAIN["load"], total=total))
    # 4500 would be above the largest count: of 12 bits 404 are left.
    assert settings(N1, {"PMSLATFR_EL1": 4500}).PMSLATFR_EL1 == 404


def test_latency_of_an_operation_that_did_not_retire():
    """F25: it has no such packet, and is filtered by its latency all the same."""
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
        (0x40, 1 << 0, True),  # DS[5:0] is looked at (F18)
        (0x40, ~(1 << 0), False),
        (0xFFC9, 1 << 9, True),
    ],
)
def test_data_source(source: int, selected: int, kept: bool):
    written = {"PMSDSFR_EL1": selected & (1 << 64) - 1}
    sample = sampled(FROM_A_SOURCE, data_source=source)
    assert filtering.collect(FULL, settings(FULL, written, FDS=1), sample) is kept
    assert filtering.collect(FULL, settings(FULL, written, FDS=0), sample)


def test_only_records_of_a_source_are_filtered_by_it():
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


# CONSTRAINED UNPREDICTABLE: the two choices.

LOADS = {
    (value, total): sampled(PLAIN["load"], events=value << 2, total=total) for value in range(4) for total in (0, 50)
}


@pytest.mark.parametrize(
    ("name", "enabled"), [("FE", {"FE": 1}), ("FnE", {"FnE": 1}), ("FL", {"FL": 1}), ("FT", {"FT": 1})]
)
def test_a_filter_that_selects_nothing(name: str, enabled: dict[str, int]):
    """F1 to F4."""
    no_effect, discard = FULL, DISCARD
    if name == "FT":
        no_effect, discard = (replace(one, eft=False, fpf=False) for one in (FULL, DISCARD))
    assert kept(no_effect, settings(no_effect, **enabled), LOADS) == set(LOADS)
    assert kept(discard, settings(discard, **enabled), LOADS) == set()
    assert kept(discard, settings(discard), LOADS) == set(LOADS)


def test_no_data_source_selected_is_no_such_filter():
    sample = {"load": sampled(FROM_A_SOURCE), "other": sampled(Facts())}
    for config in (FULL, DISCARD):
        assert kept(config, settings(config, {"PMSDSFR_EL1": 0}, FDS=1), sample) == {"other"}


OVERLAP = {"PMSEVFR_EL1": 0b01 << 2, "PMSNEVFR_EL1": 0b11 << 2}


def test_an_event_to_be_set_and_not_to_be():
    """F4, X16: with both filters enabled the overlap makes both of them CONSTRAINED UNPREDICTABLE, as a whole."""
    assert kept(FULL, settings(FULL, OVERLAP, FE=1, FnE=1), LOADS) == set(LOADS)
    assert kept(DISCARD, settings(DISCARD, OVERLAP, FE=1, FnE=1), LOADS) == set()
    for config in (FULL, DISCARD):
        assert {value for value, _ in kept(config, settings(config, OVERLAP, FE=1), LOADS)} == {0b01, 0b11}
        assert {value for value, _ in kept(config, settings(config, OVERLAP, FnE=1), LOADS)} == {0b00}


def test_another_filter_rejects_beside_one_without_effect():
    """F20."""
    registers = settings(FULL, {"PMSLATFR_EL1": 10, **OVERLAP}, FE=1, FnE=1, FL=1)
    assert {total for _, total in kept(FULL, registers, LOADS)} == {50}
    registers = settings(FULL, {"PMSLATFR_EL1": 10}, FE=1, FL=1)
    assert {total for _, total in kept(FULL, registers, LOADS)} == {50}


def test_bits_that_are_not_implemented_select_nothing():
    """F5. E[0], E[6] without FEAT_SPE_FnE and what is not recorded cannot be written."""
    registers = settings(N1, {"PMSEVFR_EL1": 1 << 0 | 1 << 6 | 1 << 20}, FE=1)
    assert kept(N1, registers, KIND_SAMPLES) == set(KINDS)


# D17.5 as a whole.


def test_any_enabled_filter_rejects():
    """Example D17-1, with all five."""
    chosen = {"PMSEVFR_EL1": 1 << 5, "PMSNEVFR_EL1": 1 << 3, "PMSLATFR_EL1": 10, "PMSDSFR_EL1": 1 << 1}
    for met in product((False, True), repeat=len(PARTS)):
        fe, ft, fl, fne, fds = met
        sample = sampled(
            replace(FROM_A_SOURCE, store=1 - ft, atomic=1),
            events=fe << 5 | (1 - fne) << 3,
            total=10 * fl,
            data_source=int(fds),
        )
        for enabled in product((0, 1), repeat=len(PARTS)):
            registers = settings(FULL, chosen, STm=1, **dict(zip(PARTS, enabled, strict=True)))
            expected = all(one or not enable for one, enable in zip(met, enabled, strict=True))
            assert filtering.collect(FULL, registers, sample) is expected


@st.composite
def any_registers(draw: st.DrawFn, config: SPUConfig) -> Registers:
    """Anything that software can have written; few bits set, so that what they select happens."""
    few = boundary_integers(64) | st.integers(0, 0xFF)
    result = Registers.after_reset(config)
    for register in config.registers:
        if register.name in ("PMSEVFR_EL1", "PMSNEVFR_EL1", "PMSLATFR_EL1", "PMSDSFR_EL1"):
            result.write(config, register, draw(few))
    enables, controls, masks = (draw(st.integers(0, 31)) for _ in range(3))
    result.write(config, PMSFCR_EL1, masks << 48 | controls << 16 | enables)
    return result


@IMPLEMENTED
@examples(max_examples=50)
@given(data=st.data())
def test_another_filter_never_lets_a_rejected_record_through(config: SPUConfig, data: st.DataObject):
    """But for events that are wanted and unwanted: where that has no effect, either filter had one before."""
    registers, sample = data.draw(any_registers(config)), data.draw(samples(config))
    more = replace(registers)
    more.write(config, PMSFCR_EL1, registers.PMSFCR_EL1 | data.draw(st.integers(0, 31)))
    enabled = PMSFCR_EL1.unpack(more.PMSFCR_EL1)
    overlap = enabled.FE and enabled.FnE and more.PMSEVFR_EL1 & more.PMSNEVFR_EL1
    if not overlap or config.unpredictable_filter is UnpredictableFilter.DISCARD:
        assert filtering.collect(config, registers, sample) >= filtering.collect(config, more, sample)


@IMPLEMENTED
@examples(max_examples=50)
@given(data=st.data())
def test_any_setting_and_any_sample(config: SPUConfig, data: st.DataObject):
    """The verdict and what is counted, from the sets that the text speaks of."""
    registers, sample = data.draw(any_registers(config)), data.draw(samples(config))
    fields = vars(PMSFCR_EL1.unpack(registers.PMSFCR_EL1))
    flags = filtering.type_flags(config, sample.operation.facts)
    has = {name for bit, name in enumerate(config.filter_types) if flags >> bit & 1}
    selected = {name for name in config.filter_types if fields[name]}
    exact = {name for name in config.filter_types if fields[f"{name}m"]}
    seen, wanted, unwanted = (
        {bit for bit in range(64) if value >> bit & 1}
        for value in (events(config, sample), registers.PMSEVFR_EL1, registers.PMSNEVFR_EL1)
    )
    total = min(sample.total, (1 << config.counter_bits) - 1)
    met = {
        "FT": (not selected - exact or bool(has & selected - exact)) and has & exact == selected & exact,
        "FE": wanted <= seen,
        "FnE": not unwanted & seen,
        "FL": total >= registers.PMSLATFR_EL1,
        "FDS": True,
    }
    told = filtering.feed(config, registers, sample)
    assert set(told) == set(config.feed_events)
    expected = {"br" if name == "B" else name.lower(): name in has for name in config.filter_types} | {
        "op": met["FT"] and bool(selected | exact),
        "event": met["FE"] and met["FnE"],
        "lat": met["FL"],
    }
    assert {name: told[name] for name in expected} == expected
    assert set(told.values()) <= {0, 1}

    facts = sample.operation.facts
    source_sampled = facts.load and not (config.two_accesses and facts.destination)
    if config.fds and facts.retired and not facts.exception and source_sampled and facts.data_source_valid:
        met["FDS"] = registers.PMSDSFR_EL1 >> sample.operation.data_source % 64 & 1 == 1
        assert told["ds"] == met["FDS"]
    elif config.fds:
        assert told["ds"] == 0
    overlap = bool(fields["FE"] and fields["FnE"] and wanted & unwanted)
    unpredictable = {
        "FT": not config.eft and not selected,
        "FE": overlap or not wanted,
        "FnE": overlap or not unwanted,
        "FL": registers.PMSLATFR_EL1 == 0,
        "FDS": False,
    }
    keeps = config.unpredictable_filter is UnpredictableFilter.NO_EFFECT
    verdicts = [keeps if unpredictable[name] else met[name] for name in PARTS if fields[name]]
    assert filtering.collect(config, registers, sample) is all(verdicts)


# PMU events.


def test_what_is_counted_does_not_depend_on_what_is_enabled():
    chosen = {"PMSEVFR_EL1": 1 << 2, "PMSNEVFR_EL1": 1 << 3, "PMSLATFR_EL1": 10, "PMSDSFR_EL1": 1 << 1}
    sample = sampled(FROM_A_SOURCE, events=1 << 2, total=10, data_source=1)
    expected = {"br": 0, "ld": 1, "st": 0, "fp": 0, "simd": 0, "op": 1, "event": 1, "lat": 1, "ds": 1}
    for enabled in product((0, 1), repeat=5):
        registers = settings(FULL, chosen, LD=1, **dict(zip(PARTS, enabled, strict=True)))
        assert filtering.feed(FULL, registers, sample) == expected


def test_a_type_filter_that_selects_nothing_counts_nothing():
    load = sampled(PLAIN["load"])
    for config in (FULL, BEFORE_EFT):
        assert filtering.feed(config, settings(config), load)["op"] == 0
        assert filtering.feed(config, settings(config, LD=1), load)["op"] == 1
        assert filtering.feed(config, settings(config, ST=1), load)["op"] == 0
    assert filtering.feed(FULL, settings(FULL, STm=1), load)["op"] == 1  # a mask selects too
    assert filtering.feed(FULL, settings(FULL, LDm=1), load)["op"] == 0


@pytest.mark.parametrize(
    ("wanted", "unwanted", "counted"),
    [
        (0, 0, {0b00, 0b01, 0b10, 0b11}),  # none is as good as all
        (0b01, 0, {0b01, 0b11}),
        (0, 0b10, {0b00, 0b01}),
        (0b01, 0b10, {0b01}),
        (0b01, 0b01, set()),  # no special case: nothing can have both
    ],
)
def test_events_that_are_counted(wanted: int, unwanted: int, counted: set[int]):
    registers = settings(FULL, {"PMSEVFR_EL1": wanted << 2, "PMSNEVFR_EL1": unwanted << 2})
    told = {value: filtering.feed(FULL, registers, sample)["event"] for (value, _), sample in LOADS.items()}
    assert {value for value, one in told.items() if one} == counted


def test_every_latency_is_at_least_zero():
    assert filtering.feed(FULL, settings(FULL), sampled(Facts()))["lat"] == 1


# D17.6.4.3, D17.6.4.5.


@pytest.mark.parametrize("random", [0, 1])
def test_the_filter_says_which_of_two_accesses_is_sampled(random: int):
    """One of loads and stores alone, whatever the masks and the other types (F6); otherwise chance says."""
    names = ("FT", "LD", "ST", "LDm", "STm", "B", "FP", "SIMD", "FE")
    for values in product((0, 1), repeat=len(names)):
        fields = dict(zip(names, values, strict=True))
        decided = {(1, 1, 0): 0, (1, 0, 1): 1}.get((fields["FT"], fields["LD"], fields["ST"]), random)
        assert filtering.sampled_access(settings(FULL, **fields), random) == decided


# The proofs run these functions over terms of a solver.


def test_a_symbolic_run_has_few_paths():
    """Each `if` on data doubles them, and each path is a question to the solver."""
    written = [getattr(arch, f"{name}_EL1") for name in ("PMSFCR", "PMSEVFR", "PMSNEVFR", "PMSLATFR", "PMSDSFR")]
    values = [variable(register.name, 64) for register in written]
    operation = [variable("facts", len(Facts.__slots__)), variable("events", 32), variable("data_source", 16)]
    solver = Solver()
    solver.add(*(value & ~FULL.writable(register) == 0 for value, register in zip(values, written, strict=True)))

    def run(judge: Any, facts: Any, happened: Any, source: Any, total: Any, *values: Any) -> Any:
        registers = Registers(**{register.name: value for register, value in zip(written, values, strict=True)})
        told = Operation(facts=Facts.unpack(facts), events=happened, data_source=source)
        return judge(FULL, registers, Sample(start=Start(), operation=told, total=total))

    for judge, most in ((filtering.collect, 128), (filtering.feed, 4)):
        paths = explore(partial(run, judge), *operation, variable("total", 12), *values, solver=solver)
        assert sum(1 for _ in paths) <= most
