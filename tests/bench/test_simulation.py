"""Rates of the simulators: errors, calculation, the command, and the published rates."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import rates as measuring
from bench import simulation
from bench.rates import Benchmark, BenchmarkError, rates
from bench.simulation import PAGE, RATES, Rate, main, read, rows, with_rates
from spurtle.config import CONFIGS
from spurtle_sim.emulator.program import Program
from tests.support.elf import EXIT, write_elf

NEOVERSE_N1 = CONFIGS["neoverse_n1"]
EXIT_1 = (0xD2800020, *EXIT)  # mov x0, #1


def counting(*counts: int, stage: str = "emulator") -> Benchmark:
    """Return a benchmark whose runs return these counts in turn."""
    remaining: Iterator[int] = iter(counts)
    return Benchmark(stage, "x", "operations", lambda: lambda: next(remaining))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets the CPU seconds of the next runs."""

    def set_clock(*seconds: float) -> None:
        times = iter([time for duration in seconds for time in (0.0, duration)])
        monkeypatch.setattr(measuring, "cpu_seconds", lambda: next(times))

    return set_clock


# Measurement of a rate.


def test_best_round_counts(clock) -> None:
    first, second = counting(6, 6), counting(8, 8)
    notes: list[str] = []
    clock(3.0, 4.0, 2.0, 8.0)
    assert rates([first, second], 2, notes.append) == {first: 3.0, second: 2.0}
    assert notes[0] == "round 1 of 2: emulator (x)"
    assert len(notes) == 4


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((0,), r"^emulator \(x\) simulated 0 operations, and 0 in the first round$"),
        ((5_000, 4_999), r"^emulator \(x\) simulated 4,999 operations, and 5,000 in the first round$"),
    ],
)
def test_different_or_zero_count_is_an_error(counts: tuple[int, ...], message: str) -> None:
    with pytest.raises(BenchmarkError, match=message):
        rates([counting(*counts)], len(counts), lambda _: None)


def test_failing_program_is_an_error(tmp_path: Path) -> None:
    good = write_elf(tmp_path / "good", EXIT)
    assert measuring.emulator("good", good).prepare()() == len(EXIT)
    bad = write_elf(tmp_path / "bad", EXIT_1)
    with pytest.raises(BenchmarkError, match=r"^bad must exit with status 0, not 1$"):
        measuring.emulator("bad", bad).prepare()()


def test_timing_model_simulates_all_operations(tmp_path: Path) -> None:
    program = Program(write_elf(tmp_path / "program", EXIT))
    operations = list(program.run())
    assert measuring.timing_model("program", program, [*operations, *operations]).prepare()() == 2 * len(EXIT)


def test_failing_profile_is_an_error(tmp_path: Path) -> None:
    good = write_elf(tmp_path / "good", EXIT)
    for stage in "complete profile", "fast-forward":
        assert measuring.complete_profile(stage, "good", good, tmp_path, 2).prepare()() == 2
    bad = write_elf(tmp_path / "bad", EXIT_1)
    with pytest.raises(BenchmarkError, match=r"^spurtle profile of bad failed: emulator: .*\n3 operations in "):
        measuring.complete_profile("complete profile", "bad", bad, tmp_path, 3).prepare()()


@pytest.mark.parametrize("benchmark", [measuring.compiled_spu, measuring.compiled_spu_from_python])
def test_missing_records_are_an_error(monkeypatch: pytest.MonkeyPatch, benchmark) -> None:
    monkeypatch.setattr(measuring, "CYCLES", 10_000)
    assert benchmark(NEOVERSE_N1).prepare()() >= 10_000
    run = benchmark(NEOVERSE_N1).prepare()
    monkeypatch.setattr(measuring.stimulus, "SAMPLING", measuring.stimulus.Sampling(interval=512))
    message = r"^neoverse_n1 must count and record \(10000, 19\) operations, not \(10000, 13\)$"
    with pytest.raises(BenchmarkError, match=message):
        run()


@pytest.mark.long
def test_cxxrtl_model_writes_the_records_of_the_compiled_spu(monkeypatch: pytest.MonkeyPatch) -> None:
    run = measuring.cxxrtl_model().prepare()
    monkeypatch.setattr(measuring, "CXXRTL_CYCLES", 100)
    assert run() == 100
    monkeypatch.setattr(measuring.CXXRTLPlayer, "play", lambda player, cycles: None)
    with pytest.raises(BenchmarkError, match=r"^the CXXRTL model of neoverse_n1 does not write the records of "):
        measuring.cxxrtl_model()


# The table.

REFERENCE = Benchmark("CXXRTL model", "neoverse_n1", "cycles", lambda: lambda: 1)
EMULATOR = Benchmark("emulator", "sort", "operations", lambda: lambda: 1)


def test_ratios_are_multiples_of_the_cxxrtl_model() -> None:
    assert rows({REFERENCE: 2_000_000.0, EMULATOR: 7_123_456.0}) == [
        Rate("CXXRTL model", "neoverse_n1", "cycles", 2.0, 1.0),
        Rate("emulator", "sort", "operations", 7.12, 3.56),
    ]


def test_page_shows_the_published_rates() -> None:
    page = PAGE.read_text()
    assert with_rates(page, read()) == page
    assert with_rates(page, read()[1:]) != page


def test_each_simulator_has_a_published_rate() -> None:
    published = [(rate.stage, rate.subject) for rate in read()]
    configs = [config.name for config in measuring.COMPILED]
    stages = ("emulator", "timing model", "complete profile", "fast-forward", "QEMU, fast-forward")
    expected = [
        (measuring.REFERENCE, NEOVERSE_N1.name),
        *(("compiled SPU", name) for name in configs),
        *(("compiled SPU from Python", name) for name in configs),
        *((stage, name) for stage in stages for name in measuring.WORKLOADS),
    ]
    assert published == expected


# The command.


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a folder with a file of published rates and a page, and replace the measurement."""
    monkeypatch.setattr(simulation, "RATES", tmp_path / "simulation.json")
    monkeypatch.setattr(simulation, "PAGE", tmp_path / "bench.md")
    (tmp_path / "simulation.json").write_text(
        json.dumps([{"stage": "emulator", "subject": "sort", "unit": "operations", "millions": 3, "ratio": 4.0}])
    )
    (tmp_path / "bench.md").write_text("<!-- simulation -->\n<!-- end -->\n")
    monkeypatch.setattr(simulation, "measure_all", lambda: {REFERENCE: 1e6, EMULATOR: 5e6})
    return tmp_path


def test_command_shows_the_published_ratio(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["CXXRTL", "model", "neoverse_n1", "1", "M", "cycles", "1"] in lines
    assert ["emulator", "sort", "5", "M", "operations", "5", "4", "+25%"] in lines
    assert [rate.ratio for rate in read()] == [4.0]


def test_publish_replaces_file_and_table(published: Path) -> None:
    assert main(["--publish"]) == 0
    assert [(rate.stage, rate.ratio) for rate in read()] == [("CXXRTL model", 1.0), ("emulator", 5.0)]
    assert "| emulator | `sort` | 5 operations | 5 |\n<!-- end -->" in (published / "bench.md").read_text()


def test_nothing_is_published_after_an_error(
    published: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing() -> dict[Benchmark, float]:
        raise BenchmarkError("emulator (sort) simulated 0 operations")

    before = RATES.read_text(), read()
    monkeypatch.setattr(simulation, "measure_all", failing)
    assert main(["--publish"]) == 1
    assert capsys.readouterr().err == "bench-sim: emulator (sort) simulated 0 operations\n"
    assert (RATES.read_text(), read()) == before


def test_output_of_programs_is_discarded(capfd: pytest.CaptureFixture[str]) -> None:
    with simulation.silent_programs():
        os.write(1, b"program")
    os.write(1, b"table")
    assert capfd.readouterr().out == "table"
