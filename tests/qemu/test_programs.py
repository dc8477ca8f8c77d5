"""Programs that only QEMU can run: threads, signals, dynamic libraries, processes, and code written at run time."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from signal import SIG_DFL, SIGILL, SIGINT, SIGKILL, SIGTERM, Signals

import numpy as np
import pytest

from spurtle.config import CONFIGS
from spurtle.support.errors import UserError
from spurtle_sim.emulator.front_end import Batch
from spurtle_sim.perf.events import Comm, Exit, Fork, Mmap, TimedEvent
from spurtle_sim.perf.process import PID
from spurtle_sim.profile.emulation import Emulation
from spurtle_sim.profile.options import Sampling
from spurtle_sim.profile.run import run_profile
from spurtle_sim.qemu.find import Qemu
from spurtle_sim.qemu.program import QemuProgram
from spurtle_sim.trace.instruction import FACT
from tests.support.elf import EXIT, write_elf
from tests.support.profile_output import profile_records
from tests.support.qemu import SYSROOT, THREADS, compiled, needs_compiler, qemu_versions, read_symbols
from tests.support.tiers import tiers

pytestmark = pytest.mark.parametrize("qemu", qemu_versions())

SIGNALS = """
#include <signal.h>
#include <sys/time.h>
static volatile int count;
static volatile unsigned sum;
static void handle(int number) {
    count++;
    for (int i = 0; i < 50; i++) sum += i & number;
}
int main(void) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, 500}, {0, 500}};
    unsigned value = 1;
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &timer, 0);
    while (count < 40)
        for (int i = 0; i < 1000; i++) value = value & 1 ? 3 * value + 1 : value / 2;
    return value & 0;
}
"""

FAULTS = """
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>
static void skip(int number, siginfo_t *information, void *context) {
    ((ucontext_t *)context)->uc_mcontext.pc += 4;
}
int main(void) {
    struct sigaction action = {.sa_sigaction = skip, .sa_flags = SA_SIGINFO};
    long word;
    sigaction(SIGSEGV, &action, 0);
    for (int i = 0; i < 20; i++)
        __asm__ volatile(
            "ldr x9, [%0]; .globl first; first: str x9, [%1]; ldr x9, [%0]; add x9, x9, x9;"
            ".globl last; last: ldr x9, [%1]; b 1f; 1:"
            : : "r"(&word), "r"(8L) : "x9", "memory");
    return 0;
}
"""

PROCESSES = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **arguments, char **environment) {
    if (count > 1) {
        volatile int sum = 0;
        for (int i = 0; i < 1000; i++) sum += i;
        return atoi(arguments[1]);
    }
    for (int i = 1; i <= 3; i++) {
        char number[] = {'0' + i, 0}, *next[] = {arguments[0], number, 0};
        int status;
        pid_t child = fork();
        if (!child) {
            execve("/proc/self/exe", next, environment);
            _exit(100);
        }
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) != i) return 101;
    }
    char *last[] = {arguments[0], "7", 0};
    execve(arguments[0], last, environment);
    return 102;
}
"""

WRITTEN = """
#include <sys/mman.h>
int main(void) {
    unsigned *code = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int sum = 0;
    for (int i = 0; i < 50; i++) {
        code[0] = 0x52800000 | i << 5;                // mov w0, #i
        code[1] = i & 1 ? 0x11000400 : 0xB9400021;    // add w0, w0, #1; or ldr w1, [x1]
        code[2] = 0xD65F03C0;                         // ret
        __builtin___clear_cache((char *)code, (char *)(code + 3));
        sum += ((int (*)(int, int *))code)(0, &sum);
    }
    return sum != 1225 + 25;
}
"""

SCALABLE = """
#include <arm_sve.h>
static double scalable_data[100];
int main(void) {
    double sum = 0;
    for (long i = 0; i < 100; i += svcntd()) {
        svbool_t part = svwhilelt_b64(i, 100L);
        svst1(part, &scalable_data[i], svadd_x(part, svld1(part, &scalable_data[i]), 1.0));
    }
    svuint64_t indices = svindex_u64(0, 3);
    sum = svaddv(svptrue_b64(), svld1_gather_index(svptrue_b64(), scalable_data, indices));
    return sum != svcntd();
}
"""

INTERRUPTED = """
#include <signal.h>
#include <stdio.h>
#include <time.h>
static volatile int count;
static void handle(int number) { count++; }
int main(void) {
    struct timespec moment = {0, 50000000};
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGINT, &action, 0);
    puts("ready");
    fflush(stdout);
    while (!count) nanosleep(&moment, 0);
    for (int i = 0; i < 10; i++) nanosleep(&moment, 0);
    return count;
}
"""

TAGS = """
#include <arm_acle.h>
#include <sys/mman.h>
#include <sys/prctl.h>
static void set(char *block, long tagged) {
    __asm__ volatile(
        ".globl tags; tags: stg %1, [%0]; stg %1, [%0, #-16]; st2g %1, [%0], #32; stzg %1, [%0, #16]!;"
        "ldg %1, [%0, #-48]; stgp %1, %1, [%0, #32]; dc gva, %0; dc gzva, %0; str xzr, [%0]"
        : "+r"(block), "+r"(tagged) : : "memory");
}
int main(void) {
    unsigned long mode = PR_TAGGED_ADDR_ENABLE | PR_MTE_TCF_SYNC | 0xfffeUL << PR_MTE_TAG_SHIFT;
    if (prctl(PR_SET_TAGGED_ADDR_CTRL, mode, 0, 0, 0)) return 2;
    char *block = mmap((void *)0x10000000, 8192, PROT_READ | PROT_WRITE | 0x20, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3000; i++) set(block + 64, (long)__arm_mte_create_random_tag(block, 0));
    return __arm_mte_get_tag(block + 64) != block + 64;
}
"""

CRASHES = """
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) int broken(int *number) { return *number; }
int main(int count, char **arguments) { return count > 1 ? (int)strlen((char *)8) : broken((int *)8); }
"""

TAG_FACTS = ("load", "store", "allocation_tag", "unspecified")

CALLER = """
#include <stdio.h>
int main(void) { return printf("%d\\n", 42) != 3; }
"""


def executable(path: Path, words: Sequence[int]) -> Path:
    write_elf(path, words).chmod(0o755)
    return path


def events(batches: Iterable[Batch], kind: type[TimedEvent]) -> list[TimedEvent]:
    return [event for batch in batches for event in batch.events if isinstance(event, kind)]


@needs_compiler
@pytest.mark.parametrize("threads", tiers(full=[1, 16], long=[600]))
def test_threads(qemu: Qemu, threads: int, tmp_path: Path) -> None:
    """Each thread has its operations, its start, its name and its end."""
    program = QemuProgram(qemu, compiled(tmp_path, THREADS, "-static"), [str(threads)])
    batches = list(program.batches())
    assert program.exit_status == 0
    numbers = set(range(PID + 1, PID + 1 + threads))
    assert {batch.thread for batch in batches} == {PID, *numbers}
    assert {event.tid for event in events(batches, Fork)} == numbers
    assert {event.tid for event in events(batches, Exit)} == numbers
    assert {event.tid for event in events(batches, Comm)} == numbers
    atomics: Counter[int] = Counter()
    for batch in batches:
        atomic = batch.operations["facts"] & (FACT["atomic"] | FACT["exclusive"]) != 0
        if batch.thread != PID:
            atomics[batch.thread] += int(atomic.sum())
    assert min(atomics.values()) >= 3000
    started = {PID}
    for batch in batches:
        assert batch.thread in started or not len(batch.operations)
        started |= {event.tid for event in batch.events if isinstance(event, Fork)}


@needs_compiler
@pytest.mark.full
def test_records_of_threads(qemu: Qemu, tmp_path: Path) -> None:
    """The Context packets have the numbers of the threads, and each record is what the reference writes."""
    path = compiled(tmp_path, THREADS, "-static")
    output = tmp_path / "perf.data"
    emulation = Emulation(qemu=qemu.path)
    status = run_profile(CONFIGS["v1p4"], path, ["4"], output=str(output), check=True, emulation=emulation)
    assert status == 0
    contexts = {record.context_el1 for record in profile_records(output)}
    assert contexts == set(range(PID, PID + 5))


@needs_compiler
@pytest.mark.full
def test_signal_handlers(qemu: Qemu, tmp_path: Path) -> None:
    """The next operation after each one is its successor, except at the start and the end of a handler."""
    path = compiled(tmp_path, SIGNALS, "-static")
    program = QemuProgram(qemu, path)
    operations = np.concatenate([batch.operations for batch in program.batches()])
    assert program.exit_status == 0
    facts = operations["facts"][:-1]
    branches = facts & FACT["branch"] != 0
    following = np.where(branches, operations["target"][:-1], operations["pc"][:-1] + 4)
    breaks = np.flatnonzero(following != operations["pc"][1:])
    entered = operations["pc"][1:][breaks] == read_symbols(path)["handle"]
    assert entered.sum() >= 40
    # The other breaks follow rt_sigreturn. A handler that follows another one directly has one break.
    assert np.all(facts[breaks][~entered] & FACT["exception"])
    # A direct branch has one of its two targets, also if a signal has interrupted it.
    direct = branches & (facts & FACT["indirect"] == 0)
    targets: dict[int, set[int]] = {}
    for pc, target in zip(
        operations["pc"][:-1][direct].tolist(), operations["target"][:-1][direct].tolist(), strict=True
    ):
        targets.setdefault(pc, set()).add(target)
    assert max(map(len, targets.values())) == 2


@pytest.mark.full
@pytest.mark.skipif(
    "SPURTLE_BUSYBOX" not in os.environ, reason="SPURTLE_BUSYBOX does not name a static AArch64 busybox"
)
def test_scripts(qemu: Qemu, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The interpreter of a script runs in QEMU. A program of the host runs on the host, which is reported."""
    busybox = os.environ["SPURTLE_BUSYBOX"]
    script = tmp_path / "script"
    script.write_text(f"#!{busybox} sh\necho script $1 | {busybox} cat\n/bin/echo host\n")
    script.chmod(0o755)
    command = f"{script} one; {script} two | {busybox} cat; exec {script} three"
    program = QemuProgram(qemu, busybox, ["sh", "-c", command], follow=True)
    batches = list(program.batches())
    assert program.exit_status == 0
    out, err = capfd.readouterr()
    assert out.splitlines() == ["script one", "host", "script two", "host", "script three", "host"]
    assert err.splitlines() == [
        "spurtle: /bin/echo is not an AArch64 program: it runs on the host, and is not profiled"
    ]
    names = Counter(event.name for event in events(batches, Comm) if isinstance(event, Comm))
    # Each of the three scripts has its interpreter and one `cat`. The command has one more `cat`.
    assert names == {"busybox": 7}


@needs_compiler
@pytest.mark.full
def test_faults(qemu: Qemu, tmp_path: Path) -> None:
    """An instruction that causes a fault has not retired, in the middle and at the end of a block."""
    path = compiled(tmp_path, FAULTS, "-static")
    program = QemuProgram(qemu, path)
    counts = Counter(pc for batch in program.batches() for pc in batch.operations["pc"].tolist())
    assert program.exit_status == 0
    first, last = (read_symbols(path)[name] for name in ("first", "last"))
    executed = [counts[pc] for pc in range(first - 4, last + 8, 4)]
    assert executed == [20, 0, 20, 20, 0, 20]


@needs_compiler
@pytest.mark.full
@pytest.mark.parametrize("follow", [False, True])
def test_processes(qemu: Qemu, follow: bool, tmp_path: Path) -> None:
    """The first process is recorded after it executes another program; with `follow`, all processes."""
    program = QemuProgram(qemu, compiled(tmp_path, PROCESSES, "-static"), follow=follow)
    batches = list(program.batches())
    assert program.exit_status == 7
    children = [PID + number for number in (1, 2, 3)] if follow else []
    assert sorted({batch.thread for batch in batches}) == [PID, *children]
    assert [event.pid for event in events(batches, Fork)] == children
    assert [event.pid for event in events(batches, Comm)] == [*children, PID]
    assert all(isinstance(event, Comm) and event.name == "program" for event in events(batches, Comm))


@needs_compiler
@pytest.mark.full
def test_written_code(qemu: Qemu, tmp_path: Path) -> None:
    """An instruction that replaces another one is classified again."""
    program = QemuProgram(qemu, compiled(tmp_path, WRITTEN, "-static"))
    batches = list(program.batches())
    assert program.exit_status == 0
    assert sum(len(batch.changed) for batch in batches) >= 49
    loads = sum(int((batch.operations["pc"] % 4096 == 4).sum()) for batch in batches if batch.changed)
    assert loads >= 40


@needs_compiler
@pytest.mark.full
def test_sve(qemu: Qemu, tmp_path: Path) -> None:
    """Each load and store of SVE is one operation with its lowest address. Without registers there is no SVE."""
    path = compiled(tmp_path, SCALABLE, "-static", "-march=armv8.2-a+sve", "-O2")
    program = QemuProgram(qemu, path)
    operations = np.concatenate([batch.operations for batch in program.batches()])
    if not qemu.exact:
        assert program.exit_status == 128 + SIGILL
        return
    assert program.exit_status == 0
    data = read_symbols(path)["scalable_data"]
    accessed = operations[(operations["va"] >= data) & (operations["va"] < data + 800)]
    loads, stores = (accessed[accessed["facts"] & FACT[name] != 0]["va"].tolist() for name in ("load", "store"))
    expected = list(range(data, data + 800, 16))
    assert stores == expected
    assert loads == [*expected, data]


@needs_compiler
@pytest.mark.full
def test_a_crash_names_the_function(qemu: Qemu, tmp_path: Path) -> None:
    """The function is in a program whose address is chosen when it is loaded. A stripped library has no names."""
    path = compiled(tmp_path, CRASHES, "-fno-builtin")
    for arguments, place in (([], r"broken\+0x0"), (["library"], r"\[libc\.so\.6\]\+0x[0-9a-f]+")):
        program = QemuProgram(qemu, path, arguments, sysroot=str(SYSROOT))
        assert list(program.batches())
        assert re.fullmatch(rf"program crashed at PC 0x[0-9a-f]+ \({place}\): SIGSEGV", program.failure)


@needs_compiler
@pytest.mark.full
def test_allocation_tags(qemu: Qemu, tmp_path: Path) -> None:
    """Each access of tags is one operation with its address, and the record says that it accesses tags."""
    path = compiled(tmp_path, TAGS, "-static", "-march=armv8.5-a+memtag")
    output = tmp_path / "perf.data"
    program = QemuProgram(qemu, path)
    operations = np.concatenate([batch.operations for batch in program.batches()])
    if not qemu.exact:  # its CPU has no tags
        assert program.exit_status == 2
        return
    assert program.exit_status == 0
    start = read_symbols(path)["tags"]
    first = operations[(operations["pc"] >= start) & (operations["pc"] < start + 36)][:9]
    facts = [{name for name, bit in FACT.items() if row["facts"] & bit} & {*TAG_FACTS} for row in first]
    tag = {"store", "allocation_tag"}
    load = {"load", "allocation_tag"}
    zero = {"store", "unspecified"}
    assert facts == [tag, tag, tag, zero, load, {"store"}, tag, zero, {"store"}]
    offsets = (first["va"] - first["va"][0]).astype(np.int64).tolist()
    assert offsets == [0, -16, 0, 48, 0, 80, 0, 0, 48]
    emulation = Emulation(qemu=qemu.path)
    sampling = Sampling(interval=256)
    run_profile(CONFIGS["v1p4"], path, [], output=str(output), check=True, emulation=emulation, sampling=sampling)
    types = [record.operation for record in profile_records(output)]
    assert sum(type_ is not None and type_.form == "tag" for type_ in types) > 10


@needs_compiler
@pytest.mark.full
def test_dynamic_libraries(qemu: Qemu, tmp_path: Path) -> None:
    path = compiled(tmp_path, CALLER)
    program = QemuProgram(qemu, path, sysroot=str(SYSROOT))
    mappings = [event.mapping for event in events(program.batches(), Mmap) if isinstance(event, Mmap)]
    assert program.exit_status == 0
    code = {Path(mapping.path).name for mapping in mappings if mapping.executable}
    assert {"program", "libc.so.6", "ld-linux-aarch64.so.1"} <= code
    executed = {pc // 4096 * 4096 for pc in program.instructions}
    ranges = [(mapping.start, mapping.end) for mapping in mappings if mapping.executable]
    assert all(any(start <= page < end for start, end in ranges) for page in executed)
    with pytest.raises(UserError, match=r"needs the dynamic linker /lib/ld-linux-aarch64\.so\.1, .* by --sysroot"):
        QemuProgram(qemu, path, sysroot=str(tmp_path))


@needs_compiler
@pytest.mark.full
def test_runs_are_identical(qemu: Qemu, tmp_path: Path) -> None:
    """Addresses do not depend on what QEMU has mapped for itself, which is at the end of a larger address space."""
    path = compiled(tmp_path, CALLER)
    runs = [
        np.concatenate([batch.operations for batch in QemuProgram(qemu, path, sysroot=str(SYSROOT)).batches()])
        for _ in range(2)
    ]
    assert np.array_equal(*runs)
    assert max(runs[0]["pc"].max(), runs[0]["va"].max()) < 1 << 46


@pytest.mark.parametrize("number", [SIGKILL, SIGTERM])
def test_a_signal_ends_the_program(qemu: Qemu, number: Signals, tmp_path: Path) -> None:
    """The operations before a signal are recorded, also if the reader is behind."""
    program = QemuProgram(qemu, executable(tmp_path / "program", [0x14000000]))
    count = 0
    for batch in program.batches():
        count += len(batch.operations)
        if count > 100_000:
            program.kill(number)
    assert program.exit_status == 128 + number
    assert count > 100_000
    program.kill(number)  # it has ended


@needs_compiler
@pytest.mark.full
@pytest.mark.parametrize("by_terminal", [True, False])
def test_a_program_is_interrupted_once(qemu: Qemu, by_terminal: bool, tmp_path: Path) -> None:
    """A terminal sends SIGINT to QEMU as well, and then the signal is not forwarded."""
    path = compiled(tmp_path, INTERRUPTED, "-static")
    spurtle = Path(sys.executable).with_name("spurtle")
    command = f"exec {spurtle} profile --qemu {qemu.path} -o {tmp_path / 'perf.data'} {path}"
    terminal, end = os.openpty()
    # The leader of a session has the terminal that it opens first.
    name = os.ttyname(end)
    run = subprocess.Popen(
        ["sh", "-c", f"{command} <{name} >{name} 2>&1"],
        start_new_session=True,
        preexec_fn=lambda: signal.signal(SIGINT, SIG_DFL),  # a shell ignores it in the background
    )
    try:
        output = b""
        while b"ready" not in output:
            output += os.read(terminal, 4096)
        if by_terminal:
            os.write(terminal, b"\x03")
        else:
            run.send_signal(SIGINT)
        assert run.wait(timeout=100) == 1, output
    finally:
        run.kill()
        run.wait()
        os.close(terminal)
        os.close(end)


def test_the_command(qemu: Qemu, tmp_path: Path) -> None:
    path = executable(tmp_path / "program", [0x529FFFE2, 0x71000442, 0x54FFFFE1, 0xD2800B20, *EXIT])
    spurtle = str(Path(sys.executable).with_name("spurtle"))
    command = [spurtle, "profile", "--check", "--qemu", qemu.path, "-o", str(tmp_path / "perf.data"), str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 89, run.stderr
    assert f"emulator: {qemu.name}" in run.stderr
    assert ", each one checked: " in run.stderr


def test_a_thread_of_python(qemu: Qemu, tmp_path: Path) -> None:
    """A program can be profiled outside of the main thread."""
    path = executable(tmp_path / "program", [0xD2800B20, *EXIT])
    statuses: list[int] = []
    emulation = Emulation(qemu=qemu.path)
    output = str(tmp_path / "perf.data")

    def profile() -> None:
        statuses.append(run_profile(CONFIGS["neoverse_n1"], path, output=output, emulation=emulation))

    thread = threading.Thread(target=profile)
    thread.start()
    thread.join()
    assert statuses == [89]


def test_a_program_that_qemu_does_not_load(qemu: Qemu, tmp_path: Path) -> None:
    content = bytearray(write_elf(tmp_path / "program", EXIT).read_bytes())
    content[6] = 0  # version of the identification
    program = tmp_path / "other"
    program.write_bytes(content)
    program.chmod(0o755)
    with pytest.raises(UserError, match=f"^{qemu.path} cannot execute {program}$"):
        list(QemuProgram(qemu, program).batches())
