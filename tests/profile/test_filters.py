"""Filters of `spurtle profile`: registers for the terms of perf, and the records of workloads that pass the filters."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest

from spurtle.arch import PMSFCR_EL1, PMSIRR_EL1
from spurtle.config import CONFIGS, SPUConfig
from spurtle.support.errors import UserError
from spurtle_sim.emulator.program import Program
from spurtle_sim.profile import driver
from spurtle_sim.profile.driver import Driver
from spurtle_sim.profile.options import Filters, Sampling, parse_filters
from spurtle_sim.profile.run import run_profile
from spurtle_sim.records.decode import Record, decode_records
from spurtle_sim.timing.core import read_core
from spurtle_sim.timing.model import TimingModel
from tests.support.paths import WORKLOADS
from tests.support.plain_filter import passes_filter
from tests.support.tiers import tiers

NAMES = ("sort", "chase", "simd")
LAST = [*CONFIGS][-1]

PLAYS = [(config, NAMES[index % 3]) for index, config in enumerate(CONFIGS) if config != LAST]
PLAYS += [(LAST, name) for name in NAMES]
"""Runs: each configuration with one workload, and the configuration with the most filters with all of them."""

CASES = (
    "load_filter",
    "store_filter",
    "branch_filter=1",
    "load_filter,store_filter",
    "min_latency=5",
    "min_latency=0x14",
    "event_filter=0x8",  # L1D refill
    "event_filter=0x18",  # L1D refill and TLB access
    "event_filter=128",  # mispredicted
    "load_filter,event_filter=2,min_latency=4",
    "load_filter,branch_filter,min_latency=6",
    "simd_filter",
    "float_filter",
    "simd_filter,float_filter",
    "simd_filter,load_filter,simd_filter_mask,load_filter_mask",  # both
    "load_filter,store_filter,simd_filter_mask",  # one of the two, and no SIMD
    "branch_filter_mask,load_filter_mask,store_filter_mask",  # none of the three
    "float_filter_mask,store_filter",
    "inv_event_filter=0x8",
    "branch_filter,inv_event_filter=64",  # taken branches
    "event_filter=0x4,inv_event_filter=0x8",
    "event_filter=0x80000",  # L2 access
    "inv_data_src_filter=1",  # not from L1
    "load_filter,load_filter_mask,inv_data_src_filter=0x4901",  # none of the existing sources
    "simd_filter,event_filter=0x4,inv_event_filter=0x20,min_latency=5,inv_data_src_filter=0x100",
)

rejected = Counter[str]()
passed = Counter[str]()


def numbers(case: str) -> dict[str, int]:
    """Return the values of the terms of a case, which are well formed."""
    return {name: int(text or "1", 0) for name, _, text in (term.partition("=") for term in case.split(","))}


def supported(config: SPUConfig, case: str) -> bool:
    try:
        parse_filters(config, [case])
    except UserError:
        return False
    return True


@cache
def timed(name: str, lanes: int) -> tuple[Program, np.ndarray]:
    """Return a workload, and the timed operations of a part after its start, with empty caches at first."""
    program = Program(WORKLOADS / f"{name}.elf")
    timing_model = TimingModel(program.instructions, read_core().for_lanes(lanes))
    return program, timing_model.run(np.concatenate([*islice(program.run(), 20, 22)])[:90_000])


def play(config: str, name: str, filters: Filters) -> Driver:
    """Return the driver after a checked run of a workload."""
    played = Driver(CONFIGS[config], Sampling(interval=256, filters=filters), context=1, check=True)
    played.run(timed(name, CONFIGS[config].ops_per_cycle)[1])
    played.stop()
    assert played.checker is not None
    assert played.checker.mismatches == []
    return played


@cache
def unfiltered(config: str, name: str) -> Driver:
    return play(config, name, Filters())


def records(played: Driver) -> list[Record]:
    """Return the records of a run, without their offsets."""
    return [replace(record, offset=0) for record in decode_records(bytes(played.data))]


def plain(case: str, config: str, name: str, unfiltered: list[Record]) -> list[Record]:
    """Return the records that the plain filter keeps."""
    instructions = timed(name, CONFIGS[config].ops_per_cycle)[0].instructions
    return [
        each for each in unfiltered if each.pc and passes_filter(numbers(case), each, instructions[each.pc.address])
    ]


RUNS = [(config, name, case) for config, name in PLAYS for case in CASES if supported(CONFIGS[config], case)]


def is_short(config: str, name: str, case: str) -> bool:
    """Return whether a run is in the fast tier. `chase` takes long because it misses the caches."""
    misses = ("event_filter=0x8", "event_filter=0x18", "inv_event_filter=0x8", "event_filter=0x80000")
    return case == CASES[0] or (config == LAST and (name != "chase" or case in misses))


@pytest.mark.parametrize(
    ("config", "name", "case"),
    tiers(fast=[run for run in RUNS if is_short(*run)], full=RUNS),
)
def test_records_equal_those_of_the_plain_filter(config: str, name: str, case: str) -> None:
    played = play(config, name, parse_filters(CONFIGS[config], [case]))
    every = unfiltered(config, name)
    expected = plain(case, config, name, records(every))
    assert records(played) == expected
    assert played.counts()["filtrate"] == len(expected)
    assert played.counts()["feed"] == len(records(every))
    passed[case] += len(expected)
    rejected[case] += len(records(every)) - len(expected)


def test_each_filter_has_passed_and_rejected_records() -> None:
    # Of the runs before this test. The fast runs include each case. In the full tier alone, some cases are not mixed.
    empty = "load_filter,load_filter_mask,inv_data_src_filter=0x4901"
    assert {case: (passed[case], rejected[case]) for case in passed if min(passed[case], rejected[case]) < 10} == {
        case: (0, rejected[case]) for case in passed if case == empty
    }


@pytest.mark.parametrize("config", CONFIGS)
def test_interrupts_change_no_record(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a filter, the interrupts of a small buffer have other times. Only the timestamps differ."""

    def untimed(played: Driver) -> list[Record]:
        return [replace(record, timestamp=None) for record in records(played)]

    monkeypatch.setattr(driver, "_SIZE", 1 << 12)
    case = "load_filter,branch_filter"
    every, played = play(config, "sort", Filters()), play(config, "sort", parse_filters(CONFIGS[config], [case]))
    assert every.interrupts > played.interrupts > 0
    assert untimed(played) == plain(case, config, "sort", untimed(every))


WITH_DISCARD = [config for config in CONFIGS if CONFIGS[config].discard_mode]


@pytest.mark.parametrize("case", ["", "load_filter,event_filter=0x4"])
@pytest.mark.parametrize("config", WITH_DISCARD)
def test_discarded_records_are_counted(config: str, case: str) -> None:
    terms = [case] if case else []
    every = play(config, "simd", parse_filters(CONFIGS[config], terms))
    discarded = play(config, "simd", parse_filters(CONFIGS[config], [*terms, "discard"]))
    assert every.data and not discarded.data
    assert not discarded.interrupts
    events = [name for name in every.counts() if name not in ("cycles", "time", "delay", "records", "buffer_full")]
    assert [discarded.counts()[name] for name in events] == [every.counts()[name] for name in events]
    assert discarded.counts()["buffer_full"] == discarded.counts()["records"] == 0
    assert discarded.counts()["filtrate"] == every.counts()["records"] == len(records(every))


# Terms.


def test_terms() -> None:
    n1, v1p4 = CONFIGS["neoverse_n1"], CONFIGS["v1p4"]
    disabled = Filters(pmsfcr=0, pmsevfr=0, pmsnevfr=0, pmsdsfr=2**64 - 1, pmslatfr=0, discard=False)
    assert parse_filters(n1, []) == disabled
    assert parse_filters(n1, ["load_filter=0,event_filter=0,min_latency=0"]) == disabled
    assert parse_filters(v1p4, ["simd_filter_mask=0,inv_event_filter=0x0,inv_data_src_filter=0,discard=0"]) == disabled
    assert parse_filters(n1, ["store_filter,branch_filter=1"]) == replace(disabled, pmsfcr=1 << 1 | 1 << 16 | 1 << 18)
    assert parse_filters(n1, ["min_latency=4095", "event_filter=0x200"]) == replace(
        disabled, pmsfcr=1 << 0 | 1 << 2, pmsevfr=1 << 9, pmslatfr=4095
    )
    # FT is set by a mask alone. Each bit is that of D24.7.
    for name, bit in (("branch", 16), ("load", 17), ("store", 18), ("float", 19), ("simd", 20)):
        assert parse_filters(v1p4, [f"{name}_filter"]) == replace(disabled, pmsfcr=1 << 1 | 1 << bit)
        assert parse_filters(v1p4, [f"{name}_filter_mask"]) == replace(disabled, pmsfcr=1 << 1 | 1 << bit + 32)
    assert parse_filters(v1p4, ["inv_event_filter=0xF80040", "inv_data_src_filter=0x8001", "discard"]) == replace(
        disabled, pmsfcr=1 << 3 | 1 << 4, pmsnevfr=0xF80040, pmsdsfr=2**64 - 1 - 0x8001, discard=True
    )


@pytest.mark.parametrize(
    ("config", "term", "words"),
    [
        ("minimal", "loads", ["in minimal, not 'loads'", "branch_filter, load_filter, store_filter, event_filter"]),
        ("minimal", "latency=6", ["min_latency in minimal, not 'latency=6'"]),
        ("minimal", "event=retired", ["not 'event=retired'"]),
        ("minimal", "", ["load_filter", "not ''"]),
        ("minimal", "load_filter,", ["load_filter", "not ''"]),
        *[
            ("neoverse_n1", term, [f"in neoverse_n1, not '{term}'"])
            for term in ("simd_filter", "float_filter=1", "load_filter_mask", "inv_event_filter=64", "discard=1")
        ],
        ("neoverse_n1", "inv_data_src_filter=1", ["min_latency in neoverse_n1, not 'inv_data_src_filter=1'"]),
        ("neoverse_n1", "event_filter=0x48", ["1, 2, 3, 4, 5, 7, 8, 9, 10, 12 in neoverse_n1, not 6"]),
        ("v1p4", "inv_event_filter=0x8000000000010001", ["5, 6, 7", "24, 25 in v1p4, not 0, 16, 63"]),
        ("neoverse_n1", "event_filter=0x10000000000000000", ["0 to 0xffffffffffffffff", "not '0x10000000000000000'"]),
        ("neoverse_n1", "min_latency=4096", ["from 0 to 4095 in neoverse_n1, not '4096'"]),
        ("v1p4", "min_latency=65536", ["from 0 to 65535 in v1p4, not '65536'"]),
        *[("minimal", f"min_latency={text}", [f"not '{text}'"]) for text in ("", "-1", "1_0", "ten", "0x", "\u0661")],
        ("minimal", "load_filter=2", ["from 0 to 1", "not '2'"]),
        ("minimal", "load_filter,load_filter=0", ["not load_filter twice"]),
        ("minimal", "jitter=1", ["jitter", "--jitter"]),
        ("v1p4", "ts_enable", ["must not have ts_enable", "always"]),
        ("v1p4", "pa_enable=1", ["must not have pa_enable", "always"]),
        ("v1p4", "pct_enable=0", ["must not have pct_enable", "always"]),
    ],
)  # fmt: skip
def test_invalid_terms(config: str, term: str, words: list[str]) -> None:
    with pytest.raises(UserError) as refused:
        parse_filters(CONFIGS[config], [term])
    message = str(refused.value)
    assert message.startswith("--filter ")
    for word in words:
        assert word in message


# Sampling from Python.


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        *[
            (
                {"interval": number},
                ValueError,
                f"interval must be a multiple of 256 from 256 to 2**32 - 256, not {number}",
            )
            for number in (-256, 0, 3, 255, 257, 2**32)
        ],
        ({"interval": 256.0}, TypeError, "interval must be of type int, not 256.0"),
        ({"interval": True}, TypeError, "interval must be of type int, not True"),
        ({"filters": "discard"}, TypeError, "filters must be of type Filters, not 'discard'"),
        ({"jitter": 1}, TypeError, "jitter must be of type bool, not 1"),
        ({"jitter": True, "seed": 0}, ValueError, "seed must be from 1 to 4294967295, not 0"),
        ({"jitter": True, "seed": 2**32}, ValueError, "seed must be from 1 to 4294967295, not 4294967296"),
        ({"jitter": True, "seed": "1"}, TypeError, "seed must be of type int, not '1'"),
        ({"seed": 1}, ValueError, "seed must be None without jitter, not 1"),
    ],
)
def test_invalid_sampling(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        Sampling(**arguments)


def test_the_interval_is_in_operations() -> None:
    for interval in (256, 768, 2**32 - 256):
        sampling = Sampling(interval=interval)
        [pmsirr] = [value for register, value in sampling.writes(CONFIGS["minimal"]) if register == PMSIRR_EL1]
        assert pmsirr == interval  # INTERVAL is bits 31 to 8
        assert sampling.settings().period == interval


MINIMAL_EVENTS = ", ".join(str(event) for event in sorted(CONFIGS["minimal"].events - {0, 6}))


@pytest.mark.parametrize(
    ("config", "filters", "message"),
    [
        ("neoverse_n1", {"discard": True}, "filters.discard must be False in neoverse_n1, which has no Discard mode"),
        (
            "neoverse_n1",
            {"pmsfcr": PMSFCR_EL1.pack(SIMD=1, FT=1)},
            "filters.pmsfcr must only have bits 0, 1, 2, 16, 17, 18 in neoverse_n1, not 0x100002",
        ),
        (
            "minimal",
            {"pmsevfr": 1 << 63},
            f"filters.pmsevfr must only have bits {MINIMAL_EVENTS} in minimal, not 0x8000000000000000",
        ),
        ("neoverse_n1", {"pmsnevfr": 2}, "filters.pmsnevfr must be 0 in neoverse_n1, not 0x2"),
        ("neoverse_n1", {"pmslatfr": 4096}, "filters.pmslatfr must be from 0 to 4095, not 4096"),
        (
            "neoverse_n1",
            {"pmsdsfr": 0},
            "filters.pmsdsfr must be 0xffffffffffffffff in neoverse_n1, which has no data source filter",
        ),
        ("v1p4", {"pmsdsfr": 1 << 64}, f"filters.pmsdsfr must be from 0 to {2**64 - 1}, not {1 << 64}"),
        ("v1p4", {"pmslatfr": -1}, "filters.pmslatfr must be from 0 to 65535, not -1"),
    ],
)
def test_filters_that_a_configuration_does_not_have(config: str, filters: dict[str, int], message: str) -> None:
    sampling = Sampling(filters=Filters(**filters))
    calls: list[Callable[[], object]] = [
        lambda: sampling.check(CONFIGS[config]),
        lambda: [*sampling.writes(CONFIGS[config])],
        lambda: Driver(CONFIGS[config], sampling, context=1, check=False),
        lambda: run_profile(CONFIGS[config], "absent", sampling=sampling),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            call()


@pytest.mark.parametrize("config", CONFIGS)
def test_filters_of_a_configuration_are_accepted(config: str) -> None:
    for case in CASES:
        if supported(CONFIGS[config], case):
            Sampling(filters=parse_filters(CONFIGS[config], [case])).check(CONFIGS[config])
