"""Complete runs of `spurtle profile`: profiled on the RTL, checked by the reference model, read by Linux perf."""

import os
import re
import shutil
import struct
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from spurtle.config import CONFIGS
from spurtle_sim.emulator.program import Program
from spurtle_sim.native.library import Loadable
from spurtle_sim.perf.reader import read_perf_data
from spurtle_sim.profile import run
from spurtle_sim.profile.driver import Driver
from spurtle_sim.profile.options import Sampling, parse_filters
from spurtle_sim.profile.run import run_profile
from spurtle_sim.records import text
from spurtle_sim.records.checks import Monitor
from spurtle_sim.records.decode import Record, decode_packets, decode_records
from spurtle_sim.timing.core import read_core
from spurtle_sim.timing.model import TimingModel
from spurtle_sim.trace.instruction import FACT
from tests.support.elf import DATA, EXIT, write_elf
from tests.support.paths import WORKLOADS
from tests.support.perf_words import SUBSTITUTIONS, WORDS_COLUMN, printed_words
from tests.support.plain_filter import passes_filter
from tests.support.profile_output import profile_records
from tests.support.tiers import tiers

TABLE = tomllib.loads((WORKLOADS / "workloads.toml").read_text())

needs_perf = pytest.mark.skipif(
    shutil.which("perf") is None, reason="perf is not installed: apt-get install linux-perf"
)


def spurtle(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("spurtle")), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env={**os.environ, **environment}
    )


def perf(*arguments: object) -> str:
    command = ["perf", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


WORKLOAD = {"neoverse_n1": "chase", "kunpeng_920": "chase", "arm_model": "sort", "v1p4": "simd"}
"""Program for each of these configurations.

In `sort`, branches have many targets, so that a previous branch target of another record is detected.
"""


# mov w2, #0xffff; subs w2, w2, #1; b.ne to the subs
LOOP = (0x529FFFE2, 0x71000442, 0x54FFFFE1)


@pytest.fixture(params=tiers(fast=["loop"], full=["sort"]))
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a program of 131,000 operations, or a workload of 1.7 million."""
    return WORKLOADS / "sort.elf" if request.param == "sort" else write_elf(tmp_path / "loop", [*LOOP, *EXIT])


@pytest.fixture(scope="module", params=tiers(fast=["v1p4"], full=WORKLOAD))
def profiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return a configuration and the perf.data file of its workload, with each record checked by the reference."""
    config = request.param
    name = WORKLOAD[config]
    output = tmp_path_factory.mktemp(name) / "perf.data"
    run = spurtle("profile", "--check", "--config", config, "-o", output, WORKLOADS / f"{name}.elf")
    assert run.returncode == 0, run.stderr
    assert run.stdout == TABLE[name]["output"] + "\n"
    assert "each one checked" in run.stderr
    assert f"{TABLE[name]['operations']:,} operations" in run.stderr
    assert f"perf report -i {output}" in run.stderr
    return config, output


def test_every_record_is_complete_and_retired(profiled: tuple[str, Path]):
    config, output = profiled
    found = profile_records(output)
    assert len(found) == TABLE[WORKLOAD[config]]["operations"] // 769
    assert not any(record.problems for record in found)
    assert all(record.events & 2 and record.pc and record.total for record in found)
    branches = [record for record in found if record.target]
    assert all(bool(record.previous_target) == CONFIGS[config].pbt for record in branches)
    assert branches


def test_the_monitor_reports_no_problems(profiled: tuple[str, Path]):
    config, output = profiled
    assert Monitor(CONFIGS[config]).check(Path(f"{output}.spe").read_bytes()) == []


def test_no_branch_is_between_the_previous_target_and_the_pc(profiled: tuple[str, Path]):
    config, output = profiled
    records = profile_records(output)
    found = [(each.previous_target.address, each.pc.address) for each in records if each.previous_target]
    assert bool(found) == CONFIGS[config].pbt
    program = Program(WORKLOADS / f"{WORKLOAD[config]}.elf")
    for _ in program.run() if found else ():
        pass
    for first, last in found:
        assert first <= last
        passed = [program.instructions[pc].facts for pc in range(first, last, 4)]
        assert not any(facts & FACT["branch"] and not facts & FACT["conditional"] for facts in passed)


@needs_perf
def test_perf_decodes_the_same_packets(profiled: tuple[str, Path]):
    _, output = profiled
    expected = [
        line for line in perf("report", "-D", "-i", output).splitlines() if re.match(r"\.  [0-9a-f]{8}: ", line)
    ]
    version = re.match(r"perf version (\d+\.\d+)", perf("--version"))
    if version is None or version[1] not in SUBSTITUTIONS:
        pytest.skip(f"the words of this version of perf are unknown: {perf('--version').strip()}")
    buffers = [buffer.data for buffer in read_perf_data(output.read_bytes()).buffers]
    actual = [text.line(data, packet) for data in buffers for packet in decode_packets(data)]
    actual = [line[:WORDS_COLUMN] + printed_words(version[1], line[WORDS_COLUMN:]) for line in actual]
    assert [line.split() for line in expected] == [line.split() for line in actual]


@needs_perf
def test_perf_samples_every_record(profiled: tuple[str, Path]):
    config, output = profiled
    fields = "ip,sym,addr,phys_addr,weight"
    lines = perf("script", "-i", output, "--itrace=i1i", "-F", fields).splitlines()
    functions = function_names(WORKLOADS / f"{WORKLOAD[config]}.elf")
    found = profile_records(output)
    assert len(lines) == len(found)
    for line, record in zip(lines, found, strict=True):
        # perf prints: addr, weight, ip, symbol, phys_addr
        addr, weight, ip, symbol, physical = line.split()
        assert record.pc is not None
        assert (int(addr, 16), int(weight), int(ip, 16)) == (record.va or 0, record.total, record.pc.address)
        assert int(physical, 16) == (record.pa.address if record.pa else 0)
        assert symbol == next(name for start, end, name in functions if start <= record.pc.address < end)


@needs_perf
def test_perf_names_the_hot_function(profiled: tuple[str, Path]):
    config, output = profiled
    symbols = [line.split()[1] for line in perf("script", "-i", output, "--itrace=i1i", "-F", "ip,sym").splitlines()]
    assert max(set(symbols), key=symbols.count) == TABLE[WORKLOAD[config]]["hot"]


def function_names(path: Path) -> list[tuple[int, int, str]]:
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        functions = [symbol for symbol in symbols if symbol["st_info"]["type"] == "STT_FUNC"]
        return [(s["st_value"], s["st_value"] + s["st_size"], s.name) for s in functions]


@pytest.mark.parametrize("filters", [[], ["load_filter,min_latency=6"]], ids=["all", "filtered"])
@pytest.mark.parametrize("jitter", [False, True], ids=["regular", "jitter"])
@pytest.mark.parametrize("name", CONFIGS)
def test_the_start_of_a_workload_equals_the_reference(name: str, jitter: bool, filters: list[str]):
    config = CONFIGS[name]
    program = Program(WORKLOADS / "chase.elf")
    timing_model = TimingModel(program.instructions, read_core().for_lanes(config.ops_per_cycle))
    sampling = Sampling(interval=256, filters=parse_filters(config, filters), jitter=jitter, seed=5 if jitter else None)
    driver = Driver(config, sampling, context=1, check=True)
    operations = next(program.run())
    driver.run(timing_model.run(operations))
    driver.stop()
    assert driver.checker is not None
    assert driver.checker.mismatches == []
    mean = 256 + 128.5 if jitter and not config.ernd else 257
    assert driver.sampled + driver.collided == pytest.approx(len(operations) / mean, rel=0.05)
    count = len(list(decode_records(driver.data)))
    assert 0 < count < driver.sampled if filters else count == driver.sampled


def loop(path: Path, turns: int) -> Path:
    """Write a program with `turns` turns of a loop of four operations: a load, arithmetic and a branch."""
    again = [
        0x92402C05,  # and x5, x0, #0xfff
        0xF8656823,  # ldr x3, [x1, x5]
        0xF1000400,  # subs x0, x0, #1
        0x54FFFFA1,  # b.ne to the and
    ]
    start = [0xD2A00001 | (DATA >> 16) << 5, 0xD2800000 | (turns & 0xFFFF) << 5, 0xF2A00000 | (turns >> 16) << 5]
    return write_elf(path, [*start, *again, *EXIT])


@pytest.mark.long
def test_memory_does_not_grow_with_the_run(tmp_path: Path):

    def peak(operations: int) -> int:
        """Return the peak memory of a run in KiB."""
        program = loop(tmp_path / "program", operations // 4)
        spurtle = str(Path(sys.executable).with_name("spurtle"))
        command = [spurtle, "profile", "-o", str(tmp_path / "perf.data"), str(program)]
        pid = os.posix_spawn(spurtle, command, os.environ)
        _, status, usage = os.wait4(pid, 0)
        assert status == 0
        return usage.ru_maxrss

    short = peak(1_000_000)
    records = 100_000_000 / 769 * 64 / 1024  # KiB
    # The report after the end of the run reads all records.
    assert peak(100_000_000) < 1.1 * short + 6 * records


def test_jitter_follows_its_seed(program: Path, tmp_path: Path):
    buffers: list[bytes] = []
    for seed in (1, 2, 1):
        output = tmp_path / f"{len(buffers)}.data"
        run = spurtle("profile", "--jitter", "--seed", seed, "--config", "v1p4", "-o", output, program)
        assert run.returncode == 0, run.stderr
        buffers.append(Path(f"{output}.spe").read_bytes())
        assert buffers[-1]
    assert buffers[0] == buffers[2] != buffers[1]


FILTERS = {
    "neoverse_n1": ("load_filter,event_filter=0x8,min_latency=20",),
    "kunpeng_920": ("store_filter,load_filter",),
    "arm_model": ("load_filter,branch_filter,inv_event_filter=0x4",),
    "v1p4": ("simd_filter,load_filter,simd_filter_mask", "load_filter_mask,inv_event_filter=0x80000"),
}


@pytest.fixture(scope="module")
def filtered(profiled: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """Return a configuration, its unfiltered perf.data file, and that of a run with the filters of `FILTERS`."""
    config, unfiltered = profiled
    name = WORKLOAD[config]
    output = tmp_path_factory.mktemp(name) / "filtered.data"
    options = [part for terms in FILTERS[config] for part in ("--filter", terms)]
    run = spurtle("profile", "--check", "--config", config, *options, "-o", output, WORKLOADS / f"{name}.elf")
    assert run.returncode == 0, run.stderr
    assert "each one checked" in run.stderr
    return config, unfiltered, output


def test_filters_select_the_records(filtered: tuple[str, Path, Path], capfd: pytest.CaptureFixture[str]):
    config, unfiltered, output = filtered
    program = Program(WORKLOADS / f"{WORKLOAD[config]}.elf")
    for _ in program.run():
        pass
    terms = {key: int(value or "1", 0) for key, _, value in
             (term.partition("=") for term in ",".join(FILTERS[config]).split(","))}  # fmt: skip

    def untimed(path: Path) -> list[Record]:
        """Return the records without timestamps, which depend on the times of interrupts."""
        return [replace(record, offset=0, timestamp=None) for record in profile_records(path)]

    every = untimed(unfiltered)
    expected = [each for each in every if each.pc and passes_filter(terms, each, program.instructions[each.pc.address])]
    assert untimed(output) == expected
    assert 20 < len(expected) < len(every) - 20


@needs_perf
def test_perf_samples_the_filtered_records(filtered: tuple[str, Path, Path]):
    _, _, output = filtered
    assert len(perf("script", "-i", output, "--itrace=i1i", "-F", "ip").splitlines()) == len(profile_records(output))


def test_discard_mode_writes_no_file(program: Path, tmp_path: Path):
    output = tmp_path / "out" / "perf.data"
    output.parent.mkdir()
    run = spurtle(
        "profile", "--check", "--config", "v1p4", "--filter", "discard,branch_filter", "--interval", 25600,
        "-o", output, program,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    *_, sampled, counted = run.stderr.splitlines()
    assert " sampled, " in sampled and ", 0 interrupts" in sampled
    assert counted.startswith("no records and no file in Discard mode, all checked: SAMPLE_FEED_BR ")
    assert list(output.parent.iterdir()) == []


@pytest.mark.full
def test_a_busybox_of_a_distribution(tmp_path: Path):
    busybox = os.environ.get("SPURTLE_BUSYBOX")
    if busybox is None:
        pytest.skip("SPURTLE_BUSYBOX does not name a static AArch64 busybox")
    # The expected digest is that of hashlib.
    import hashlib

    data = tmp_path / "data"
    data.write_bytes(b"a" * 20_000)
    run = spurtle("profile", "--check", "-o", tmp_path / "perf.data", busybox, "sha256sum", data)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split()[0] == hashlib.sha256(data.read_bytes()).hexdigest()
    assert "each one checked" in run.stderr


def elf_header(machine: int) -> bytes:
    identification = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    return identification + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 64, 0, 0, 64, 56, 0, 64, 0, 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["program", "No such file"]),
        (b"#!/bin/sh\n", ["program", "ELF"]),
        (elf_header(62), ["program", "AArch64"]),
    ],
)
def test_a_program_that_cannot_run(tmp_path: Path, content: bytes | None, words: list[str]):
    program = tmp_path / "program"
    if content is not None:
        program.write_bytes(content)
    check_rejected(spurtle("profile", "-o", tmp_path / "perf.data", program), *words)
    assert not list(tmp_path.glob("*.data*"))


def check_rejected(run: subprocess.CompletedProcess[str], *words: str) -> None:
    """Check that the error is one sentence with `words`, and the exit status: 125 for `profile`, else 2."""
    assert run.returncode == (125 if "profile" in run.args else 2), run.stderr
    assert run.stderr.startswith("spurtle: ")
    assert run.stderr.count("\n") == 1
    for word in words:
        assert word in run.stderr


def test_an_output_that_cannot_be_written(tmp_path: Path):
    sort = WORKLOADS / "sort.elf"
    check_rejected(
        spurtle("profile", "-o", tmp_path / "missing" / "perf.data", sort), "missing", "No such file or directory"
    )
    check_rejected(spurtle("profile", "-o", tmp_path, sort), str(tmp_path), "is a directory")
    (tmp_path / "perf.data.spe").mkdir()
    check_rejected(spurtle("profile", "-o", tmp_path / "perf.data", sort), "perf.data.spe", "is a directory")


def test_libraries_are_compiled_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    class LoadedError(Exception):
        pass

    def load(libraries: Sequence[Loadable]) -> None:
        raise LoadedError({library.name for library in libraries})

    monkeypatch.setattr(run, "load", load)
    with pytest.raises(LoadedError) as loaded:
        run_profile(CONFIGS["v1p4"], WORKLOADS / "sort.elf", output=str(tmp_path / "perf.data"))
    assert loaded.value.args == ({"spurtle_v1p4", "timing_model", "executed", "emulator_hooks"},)


def test_an_absent_compiler(tmp_path: Path):
    run = spurtle("profile", "-o", tmp_path / "perf.data", WORKLOADS / "sort.elf", CXX="no-such-compiler")
    check_rejected(run, "no-such-compiler", "install g++")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("interval", ["0", "100", "4294967296", "x"])
def test_invalid_intervals(interval: str):
    check_rejected(
        spurtle("profile", "--interval", interval, WORKLOADS / "sort.elf"), f"not {interval}", "multiple of 256"
    )


@pytest.mark.parametrize("seed", ["0", "4294967296", "x"])
def test_invalid_seeds(seed: str):
    run = spurtle("profile", "--jitter", "--seed", seed, WORKLOADS / "sort.elf")
    check_rejected(run, f"not {seed}", "from 1 to 2**32 - 1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("profile", "--seed", "1", "x"), ("--seed must come with --jitter",)),
        (("verilog", "--config", "n1"), ("'n1'", "minimal", "neoverse_n1")),
        (("profile",), ("PROGRAM",)),
        (("profile", "--filter", "loads", WORKLOADS / "sort.elf"), ("'loads'", "load_filter", "neoverse_n1")),
        (("frobnicate",), ("'frobnicate'", "profile")),
        (("verilog", "-o", "/dev/null/x"), ("/dev/null/x", "is not a directory")),
    ],
)
def test_invalid_arguments(arguments: tuple[str, ...], words: tuple[str, ...]):
    check_rejected(spurtle(*arguments), *words)
