"""Each version of Linux perf reads the content of the perf.data files that the writer makes."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from spurtle.arch import PMBSR_EL1
from spurtle.config import CONFIGS
from spurtle.support.errors import UserError
from spurtle_sim.emulator.program import Program
from spurtle_sim.perf.events import Aux, Comm, Exit, Fork, loss_flags, mmap_event, process_events
from spurtle_sim.perf.format import AuxFlag, Settings
from spurtle_sim.perf.process import Mapping, Process
from spurtle_sim.perf.writer import Recording, content
from spurtle_sim.profile import outputs
from spurtle_sim.profile.driver import Driver
from spurtle_sim.profile.options import Sampling, parse_filters
from spurtle_sim.profile.run import run_profile
from spurtle_sim.trace.dtypes import TIMED_OPERATION
from tests.support.elf import EXIT, write_elf, write_with_build_id
from tests.support.paths import WORKLOADS
from tests.support.perf_records import HIT, PID, REFILL, branch, load
from tests.support.perf_versions import Perf

SORT = WORKLOADS / "sort.elf"
HEAP = Mapping(0x50_0000, 0x2000, 0, 3, "[heap]")
ANONYMOUS = Mapping(0x7000_0000_0000, 0x1000, 0, 3, "//anon")


@pytest.fixture(scope="module")
def process() -> Process:
    return Program(SORT).process


@pytest.fixture(scope="module")
def sift() -> int:
    """Return the address of the hot function."""
    return next(address for address, name in Program(SORT).image.functions if name == "sift")


def recording(
    process: Process, data: bytes, *, config: str = "neoverse_n1", settings: Settings | None = None, timed: bool = True
) -> Recording:
    """Return the recording of a process with the records in `data`."""
    return Recording(
        argv=process.argv,
        events=process_events(process, [outputs.aux_event(process.pid, data)]),
        midr=outputs.midr(config),
        settings=settings or Settings(),
        timed=timed,
    )


def written(folder: Path, made: Recording) -> Path:
    outputs.write(folder / "perf.data", made)
    return folder / "perf.data"


def test_report_dumps_each_packet(perf: Perf, tmp_path: Path, process: Process, sift: int) -> None:
    file = written(tmp_path, recording(process, load(sift, 0x402000, 0x8000_1000, 7, 100, 8)))
    dump = [line.split(maxsplit=1)[1] for line in perf.lines("report", "-i", file, "-D") if line.startswith(".  0000")]
    packets = "\n".join(dump)
    for shown in (f"PC 0x{sift:x} el0 ns=1", f"CONTEXT 0x{PID:x} el1", "LD GP-REG", "EV RETIRED L1D-ACCESS TLB-ACCESS",
                  "LAT 7 TOT", "VA 0x402000", "PA 0x80001000 ns=1", "DATA-SOURCE 8", "TS 100"):  # fmt: skip
        assert shown in packets, shown


@pytest.mark.parametrize("timed", [True, False])
def test_script_prints_each_record(perf: Perf, tmp_path: Path, process: Process, sift: int, timed: bool) -> None:
    times = (100, 230) if timed else (None, None)
    data = load(sift + 16, 0x402010, 0x8000_1010, 7, times[0], 8) + branch(sift + 24, sift + 64, 9, times[1])
    file = written(tmp_path, recording(process, data, timed=timed))
    fields = "comm,tid,ip,sym,addr,phys_addr,weight,data_src" + (",time" if timed else "")
    lines = [line.split() for line in perf.lines("script", "-i", file, "--itrace=i1i", "-F", fields)]
    # For a timeless recording, perf 6.1 begins with an empty sample.
    lines = [words for words in lines if "[unknown]" not in words or timed]
    assert len(lines) == 2
    for words, pc, total in zip(lines, (sift + 16, sift + 24), (7, 9), strict=True):
        assert words[:2] == ["sort.elf", str(PID)]
        assert f"{pc:x}" in words and "sift" in words
        assert str(total) in words
    assert "80001010" in lines[0]
    assert "L2 hit" in " ".join(lines[0])
    # perf 7 prints an address only for memory samples.
    accesses = perf.lines("script", "-i", file, "--itrace=M", "-F", "addr")
    assert accesses[-1].split() == ["402010"]
    [missed] = perf.lines("script", "-i", file, "--itrace=b", "-F", "event,ip,sym,addr")
    assert {"branch-miss:", "branch:"} & {*missed.split()}
    assert {f"{sift + 64:x}", f"{sift + 24:x}", "sift"} <= {*missed.split()}
    if timed:
        shown = " ".join(perf.lines("script", "-i", file, "--itrace=i1i", "--ns", "-F", "time"))
        assert shown.split() == ["0.000000100:", "0.000000230:"]


def test_report_names_the_functions_and_warns_of_nothing(
    perf: Perf, tmp_path: Path, process: Process, sift: int
) -> None:
    main = next(address for address, name in Program(SORT).image.functions if name == "main")
    data = b"".join(branch(pc, pc + 8, 2, time) for time, pc in enumerate([sift, sift + 4, sift + 8, main]))
    file = written(tmp_path, recording(process, data))
    shown, complaints = perf.run("report", "-i", file, "--stdio", "--itrace=i1i")
    assert complaints == []
    assert "WARNING" not in shown
    # perf ends its report with a random tip, which may have a percentage too.
    lines = [line.split() for line in shown.splitlines() if line and not line.startswith("#")]
    assert lines == [
        ["75.00%", "sort.elf", "sort.elf", "[.]", "sift"],
        ["25.00%", "sort.elf", "sort.elf", "[.]", "main"],
    ]


def test_threads_exit_at_their_times(perf: Perf, tmp_path: Path, process: Process, sift: int) -> None:
    """Two threads run on two CPUs. The second one starts later and ends first. Each sample has its thread."""
    second = PID + 1
    events = [
        *process_events(process, [])[:-1],
        Fork(time=50, pid=PID, tid=second, parent_pid=PID, parent_tid=PID),
        Comm(time=51, pid=PID, tid=second, name="second"),
        Aux(time=150, pid=PID, tid=second, cpu=1, data=branch(sift + 4, sift, 3, 100, pid=second)),
        Exit(time=160, pid=PID, tid=second, parent_pid=PID, parent_tid=PID),
        Aux(time=300, pid=PID, tid=PID, cpu=0, data=branch(sift, sift + 4, 3, 60) + branch(sift, sift + 4, 3, 200)),
        Exit(time=310, pid=PID, tid=PID, parent_pid=PID, parent_tid=PID),
    ]
    file = written(tmp_path, Recording(argv=process.argv, events=events))
    lines = perf.lines("script", "-i", file, "--itrace=i1i", "-F", "comm,pid,tid,cpu,time,ip,sym", "--ns")
    assert [line.split() for line in lines] == [
        ["sort.elf", f"{PID}/{PID}", "[000]", "0.000000060:", f"{sift:x}", "sift"],
        ["second", f"{PID}/{second}", "[001]", "0.000000100:", f"{sift + 4:x}", "sift"],
        ["sort.elf", f"{PID}/{PID}", "[000]", "0.000000200:", f"{sift:x}", "sift"],
    ]
    tasks = [line for line in perf.lines("script", "-i", file, "--show-task-events", "--ns") if "PERF_RECORD" in line]
    found = re.findall(r"(\d+\.\d+): PERF_RECORD_(FORK|EXIT)", "\n".join(tasks))
    assert found == [("0.000000050", "FORK"), ("0.000000160", "EXIT"), ("0.000000310", "EXIT")]


@pytest.mark.parametrize(
    ("config", "source", "hit", "missed"),
    [
        ("neoverse_n1", 0, "L1 hit", "L2 hit"),
        *((name, None, "L1 hit", "L1 miss") for name in ("kunpeng_920", "minimal")),
    ],
)
def test_loads_hit_where_the_configuration_says(
    perf: Perf, tmp_path: Path, process: Process, sift: int, config: str, source: int | None, hit: str, missed: str
) -> None:
    """Linux perf reads an absent data source as a hit in L1 if MIDR_EL1 identifies a Neoverse N1."""
    refill = None if source is None else 8
    loads = [(REFILL, refill)] * 3 + [(HIT, source)] * 5
    data = b"".join(
        load(sift, 0x402010, 0x8000_1010, 7, time, source, events=events)
        for time, (events, source) in enumerate(loads, 1)
    )
    file = written(tmp_path, recording(process, data, config=config))
    lines = perf.lines("mem", "report", "-i", file, "--itrace=M", "--stdio", "--sort=mem")
    counts = {" ".join(line.split()[2:]).split(" or ")[-1]: int(line.split()[1]) for line in lines}
    assert counts == {hit: 5, missed: 3}


def test_midr_is_of_the_configuration():
    assert outputs.midr("neoverse_n1") == 0x410F_D0C1
    assert outputs.midr("kunpeng_920") == 0x481F_D010
    others = {outputs.midr(name) for name in CONFIGS} - {0x410F_D0C1, 0x481F_D010}
    assert [midr >> 24 for midr in others] == [0]  # reserved for software use


def test_data_symbols(perf: Perf, tmp_path: Path, process: Process, sift: int) -> None:
    with SORT.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        numbers = next(symbol["st_value"] for symbol in symbols if symbol.name == "numbers")
    [stack] = [mapping for mapping in process.mappings if mapping.path == "[stack]"]
    addresses = [numbers + 0x1C0, stack.end - 0x40, HEAP.start + 0x10, ANONYMOUS.start + 0x20]
    data = b"".join(load(sift, va, 0x8000_1000, 7, time, 0) for time, va in enumerate(addresses, 10))
    later = [mmap_event(process, 5, HEAP), mmap_event(process, 6, ANONYMOUS)]
    events = process_events(process, [outputs.aux_event(PID, data)], later=later)
    file = written(tmp_path, Recording(argv=process.argv, events=events, midr=outputs.midr("neoverse_n1")))
    lines = perf.lines("mem", "report", "-i", file, "--itrace=M", "--stdio", "--sort=mem,symbol_daddr,dso_daddr")
    assert set(re.findall(r"\[\.\] (\S+) +(\S+)", "\n".join(lines))) == {
        ("numbers+0x1c0", "sort.elf"),
        (f"{stack.end - 0x40:#018x}", "[stack]"),
        (f"{HEAP.start + 0x10:#018x}", "[heap]"),
        (f"{ANONYMOUS.start + 0x20:#018x}", "anon"),
    }


def test_c2c_counts_the_records(perf: Perf, tmp_path: Path, process: Process, sift: int) -> None:
    data = b"".join(load(sift, 0x402010, 0x8000_1010, 7, time, 8 * (time % 2)) for time in range(1, 10))
    file = written(tmp_path, recording(process, data))
    shown, complaints = perf.run("c2c", "report", "-i", file, "--stdio")
    assert complaints == []
    counts = dict(
        re.findall(r"^  (Total records|Load Operations|Load L1D hit|Load L2D hit) +: +(\d+)$", shown, re.MULTILINE)
    )
    assert counts == {"Total records": "9", "Load Operations": "9", "Load L1D hit": "4", "Load L2D hit": "5"}


def test_a_replaced_executable_gives_no_wrong_names(perf: Perf, tmp_path: Path, sift: int) -> None:
    program = tmp_path / "program"
    identifier = bytes(range(20))
    write_with_build_id(SORT, program, identifier)
    process = Program(program).process
    assert process.build_id == identifier
    file = written(tmp_path, recording(process, branch(sift, sift + 8, 2, 5)))
    listed = [line.split() for line in perf.lines("buildid-list", "-i", file)]
    assert [identifier.hex(), str(program)] in listed
    events = " ".join(perf.lines("script", "-i", file, "--show-mmap-events", "--itrace=i1i"))
    assert f"<{identifier.hex()}>" in events
    report = ("report", "-i", file, "--stdio", "--itrace=i1i", "-F", "sym")
    assert [line.split() for line in perf.lines(*report)] == [["[.]", "sift"]]
    write_with_build_id(SORT, program, identifier[::-1])
    [shown] = perf.lines(*report)
    assert re.fullmatch(r"\[\.\] 0x[0-9a-f]{16}", shown.strip())


FILTERS = [
    "load_filter,store_filter,load_filter_mask,min_latency=9",
    "event_filter=0x8,inv_event_filter=0x40,inv_data_src_filter=0x3",
]


def test_the_attribute_equals_that_of_the_kernel(perf: Perf, tmp_path: Path, process: Process, sift: int) -> None:
    sampling = Sampling(interval=768, jitter=True, filters=parse_filters(CONFIGS["v1p4"], FILTERS))
    made = recording(process, branch(sift, sift + 8, 2, 5), settings=sampling.settings())
    file = written(tmp_path, made)
    [spe, _] = perf.lines("evlist", "-v", "-i", file)
    types, jitter = 1 << 33 | 1 << 34 | 1 << 37, 1 << 16
    for shown in ("sample_freq }: 768", f"config: {types | jitter | 0b111:#x}", "exclude_kernel: 1", "exclude_hv: 1"):
        assert shown in spe
    # perf 6.1 rejects attributes with config3, and perf 6.12 attributes with config4. These members are in the
    # description of the event, which no version prints.
    header = perf.run("report", "-i", file, "--header-only")[0]
    assert "config1 } = 0x8, { bp_len, config2 } = 0x9" in header
    assert struct.pack("<2Q", 0x40, 0x3) in content(made)


def test_script_selects_a_time_range(perf: Perf, tmp_path: Path, process: Process, sift: int) -> None:
    data = b"".join(branch(sift, sift + 8, 2, time) for time in range(5, 1000, 10))
    file = written(tmp_path, recording(process, data))
    lines = perf.lines("script", "-i", file, "--itrace=i1i", "--time", "10%/2", "--ns", "-F", "time")
    assert [int(line.strip(" :").partition(".")[2]) for line in lines] == list(range(105, 200, 10))


def test_collisions_are_reported(perf: Perf, tmp_path: Path, process: Process, sift: int) -> None:
    """The first sampled operation takes as long as a thousand others, so the next selections collide."""
    operations = np.zeros(2_000, TIMED_OPERATION)
    operations["dispatch"] = np.arange(2_000)
    operations["pc"], operations["issue"], operations["finish"] = sift, 1, 2
    operations["finish"][:300] = 1_200
    operations["facts"] = 1 << 0
    driver = Driver(CONFIGS["neoverse_n1"], Sampling(interval=256), context=PID, check=False)
    driver.run(operations)
    driver.stop()
    assert driver.collided > 0
    [aux] = driver.aux
    assert aux.flags == AuxFlag.COLLISION
    file = written(tmp_path, Recording(argv=process.argv, events=process_events(process, driver.aux)))
    _, complaints = perf.run("script", "-i", file, "--itrace=i1i")
    assert any("collision" in line and "1 times out of 1" in line for line in complaints), complaints


# brk(brk(0) + 4096); mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); 16,384 times: store to
# each, and to the stack.
MEMORY = (
    0xD2801AC8, 0xD2800000, 0xD4000001, 0xAA0003F3, 0x91400400, 0xD4000001,
    0xD2801BC8, 0xD2800000, 0xD2820001, 0xD2800062, 0xD2800443, 0x92800004, 0xD2800005, 0xD4000001, 0xAA0003F4,
    0x52800022, 0x53124442, 0xB900127F, 0xB900229F, 0xB81D03FF, 0x71000442, 0x54FFFF81,
)  # fmt: skip


def test_memory_of_a_profiled_program(perf: Perf, memory: Path) -> None:
    """Memory has a name after the system call that allocates it, and EXIT follows all samples."""
    shown = perf.lines("script", "-i", memory, "--show-mmap-events", "--show-task-events", "--itrace=i1i", "--ns")
    found = re.findall(r"(\d+)\.(\d+): PERF_RECORD_(?:MMAP2.*(\S{4} \S+)|(EXIT))", "\n".join(shown))
    times = {name or end: int(seconds + fraction) for seconds, fraction, name, end in found}
    program = str(memory.with_name("program"))
    assert [*times] == [f"r-xp {program}", f"rw-p {program}", "rw-p [stack]", "rw-p [heap]", "rw-p //anon", "EXIT"]
    assert times[f"r-xp {program}"] == times["rw-p [stack]"] == 0 < times["rw-p [heap]"] < times["rw-p //anon"]
    samples = [
        int(line.strip(" :").replace(".", ""))
        for line in perf.lines("script", "-i", memory, "--itrace=i1i", "--ns", "-F", "time")
    ]
    assert times["rw-p //anon"] < samples[0] < samples[-1] < times["EXIT"]
    objects = perf.lines("mem", "report", "-i", memory, "--itrace=M", "--stdio", "--sort=mem,symbol_daddr,dso_daddr")
    assert {match[1] for line in objects if (match := re.search(r"0x\S+ +(\S+)", line))} == {
        "[heap]",
        "[stack]",
        "anon",
    }


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the profile of a program that allocates memory."""
    folder = tmp_path_factory.mktemp("memory")
    program = write_elf(folder / "program", [*MEMORY, *EXIT])
    run_profile(CONFIGS["neoverse_n1"], program, sampling=Sampling(interval=256), output=str(folder / "perf.data"))
    return folder / "perf.data"


@pytest.mark.parametrize("coll", [0, 1])
@pytest.mark.parametrize("dl", [0, 1])
def test_losses_are_those_of_the_linux_driver(coll: int, dl: int) -> None:
    lost = AuxFlag.TRUNCATED | AuxFlag.PARTIAL if dl else AuxFlag(0)
    assert loss_flags(PMBSR_EL1.pack(COLL=coll, DL=dl, S=1, MSS=1)) == (AuxFlag.COLLISION if coll else 0) | lost


def test_the_output_is_reproducible(tmp_path: Path, process: Process) -> None:
    for name in ("a", "b"):
        outputs.save(str(tmp_path / name), recording(process, bytes(64)))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes().startswith(b"PERFILE2")
    assert (tmp_path / "a.spe").read_bytes() == bytes(64)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.spe", "b", "b.spe"]


def test_an_unwritable_path_is_a_user_error(tmp_path: Path, process: Process) -> None:
    with pytest.raises(UserError, match="absent"):
        outputs.write(tmp_path / "absent" / "perf.data", recording(process, b""))
