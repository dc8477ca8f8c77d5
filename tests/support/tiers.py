"""The three tiers of tests. A marker says which tier a test belongs to; a test without a marker is fast."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any

import pytest

from configurations import FAST

__all__ = ["IN_FULL", "TIERS", "configurations", "not_run", "tier_of", "tiers"]

TIERS = {"fast": "make test", "full": "make test-full", "long": "make test-long"}
"""The command that runs the tests of each tier. `make test-full` also runs the fast tests."""


IN_FULL = {
    # Changes in each cycle take most of the time of the full tier. It has a packed layout and a fixed one.
    "gateware/test_buffer_outstanding.py::test_a_change_in_any_cycle": (
        r"outstanding_packed-(stop|another pointer)-.*True.*|outstanding_words-(discard|a new owner)-.*True.*"
    ),
    "gateware/test_buffer_cycles.py::test_a_fault_and_another_event_in_any_cycle": r"v1p4-.*-(stop|abort|clear)",
    "gateware/test_buffer_cycles.py::test_a_halt_in_any_cycle": r"v1p4-(stop|discard)-.*",
    "gateware/test_buffer_cycles.py::test_all_events_in_any_cycle": r"(v1p4|unnamed_packed)-[2-5]",
    "gateware/test_buffer.py::test_every_fault_at_every_word": r"(unnamed_packed|v1p4)-5",
    # Each configuration has the same rules. The fast tier has the smallest and the largest one.
    "gateware/test_control.py::test_like_the_reference": r"lanes5_slots8",
    "gateware/test_inflight.py::test_any_flights": r"unnamed|one_lane_many_slots",
    "gateware/test_inflight.py::test_drop_is_asserted_after_the_buffer_has_not_run": r"unnamed-.*|many_lanes_.*-3",
    "gateware/test_registers.py::test_other_encodings_are_undefined": r"unnamed_v1p1-5",
    "gateware/test_registers.py::test_unimplemented_bits_read_as_zero": r"unnamed-60",
    "gateware/test_registers.py::test_an_access_in_every_cycle": r"unnamed|arm_model",
    "gateware/test_record.py::test_every_kind_of_operation": r"unnamed-.*",
    "gateware/test_record.py::test_every_vector_length": r"unnamed-.*",
    "gateware/test_spu.py::test_a_record_is_discarded_if_the_buffer_did_not_run_for_one_cycle": r"v1p4-8",
    "shell/test_axi4.py::test_written_records_are_in_memory": r"(narrow|v1p4)-4",
    "shell/test_rvfi.py::test_only_what_retires_as_it_began_is_recorded": r"(both|user) modes?-2-.*",
    "bench/test_bench.py::test_each_block_fits_into_the_harness": r"(spu|record|buffer)-v1p4",
    "bench/test_records.py::test_published_rate_is_measured_again": r".*latency 100",
    "campaign/test_soak.py::test_records_match_the_samples": r"10000-arm_model",
    "export/test_outputs.py::test_each_output_is_driven": r"SPU v1p4|axi4-apb minimal 1|plain .*",
    # The fast tier tests a run with the other perf, and the length of a packet does not depend on the configuration.
    "perf/test_words.py::test_every_packet_of_random_records": r"6\.12-arm_model|newest-(v1p4|neoverse_n1)",
    "profile/test_filters.py::test_records_equal_those_of_the_plain_filter": r"arm_model-.*",
    "system/test_linux_driver.py::test_records_arrive_or_loss_is_reported": r"6\.12-(v1p4|arm_model|minimal)-.*",
    "system/test_sample_accounting.py::test_each_sample_is_accounted_for": r".*-(arm_model|v1p4)",
    # The compiled filter makes the decisions of the fast tier 60 times in the long tier.
    "system/test_filter_decisions.py::test_filter": r"v1p4-.*",
    "system/test_cocotb.py::test_verilator": r"v1p4-.*",
    "system/test_cocotb.py::test_icarus": r"",
    "cosim/test_spu.py::test_records_equal_the_reference": r"neoverse_n1|minimal",
    # Tools that take seconds for each design.
    "export/test_verilog.py::test_other_families_synthesize_the_text": r".*-gowin",
    "export/test_verilog.py::test_ports_are_the_published_ports": r"arm_model",
    "export/test_verilog.py::test_synthesis_keeps_every_register": r"minimal-ecp5",
    "export/test_verilog.py::test_verilator_finds_no_loop_with_an_asynchronous_reset": r"v1p4",
    "bench/test_register_pairs.py::test_slowest_pair_is_the_critical_path": r"ice40",
    # Simulations of complete boards. The fast tier has the board hx8k.
    "boards/test_build.py::test_plan": r"hx8k|arty_a7",
    "boards/test_complete_board.py::test_first_profile_after_reset": r"",
    "boards/test_complete_board.py::test_no_record_is_lost_on_a_noisy_line": r"hx8k",
    "boards/test_replay.py::test_records_equal_those_of_the_compiled_spu": r"minimal-.*",
    # Wrong circuits: one for each kind of proof.
    "proofs/test_buffer.py::test_a_wrong_buffer_fails": r"(?!LosesEnds).*",
    "proofs/test_random_numbers.py::test_seeded_faults_of_the_lfsr_fail": r"(intervals, one lane|access by 8, .*)-2",
    "proofs/test_leak.py::test_leaks_fail": r"PA without permission|permission of a later cycle",
    "proofs/test_wiring.py::test_wrong_connections_fail": r"(NeverDropped|WithoutMinlatBit)-.*",
}
"""Tests whose cases of the full tier take too long together, with a pattern of those that remain in it.

The other cases of the full tier are in the long tier.
"""


def tiers(*, fast: Iterable[Any] = (), full: Iterable[Any] = (), long: Iterable[Any] = ()) -> list[Any]:
    """Return the cases for `pytest.mark.parametrize`, each with the marker of its tier.

    A case with several arguments is a tuple. A case that is listed in several tiers belongs to the first of them.
    """
    cases: list[Any] = []
    added: list[Any] = []
    for name, values in zip(TIERS, (fast, full, long), strict=True):
        for value in values:
            if value not in added:
                added.append(value)
                arguments = value if isinstance(value, tuple) else (value,)
                cases.append(pytest.param(*arguments, marks=getattr(pytest.mark, name)))
    return cases


def configurations(every: Mapping[str, Any] | Iterable[str], *, fast: Collection[str] = FAST) -> list[Any]:
    """Return cases for `pytest.mark.parametrize`, or parameters of a fixture, with names.

    Cases whose names are in `fast` are in the fast tier, the others in the full tier. If `every` is not a mapping, the
    value of a case is its name.
    """
    values = every if isinstance(every, Mapping) else {name: name for name in every}
    tier = {name: pytest.mark.fast if name in fast else pytest.mark.full for name in values}
    return [pytest.param(value, id=name, marks=tier[name]) for name, value in values.items()]


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test: the last of the tiers of its parameters, except for the cases of `IN_FULL`."""
    names = {marker.name for marker in item.iter_markers()}
    tier = next((name for name in reversed(TIERS) if name in names), "fast")
    test, _, case = item.nodeid.removeprefix("tests/").partition("[")
    if tier == "full" and test in IN_FULL and not re.fullmatch(IN_FULL[test], case.removesuffix("]")):
        return "long"
    return tier


def not_run(deselected: Sequence[str], selected: Set[str]) -> str:
    """Return a line that says how many tests of other tiers were not run, and how to run them.

    `deselected` holds the tier of each deselected test, `selected` the tiers of the tests that run.
    """
    counts = Counter(deselected)
    parts = [
        f"{counts[name]:,} of the {name} tier ({command})"
        for name, command in TIERS.items()
        if counts[name] and name not in selected
    ]
    return f"tests not run: {', '.join(parts)}" if parts else ""
