"""Tests of system calls: their results are those of Linux, or they fail and are reported."""

import errno
import os
import random
import re
import signal
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from spurtle_sim.emulator.linux.guest import Guest
from spurtle_sim.emulator.linux.names import NAMES
from spurtle_sim.emulator.program import Program
from spurtle_sim.perf.process import PAGE_BYTES
from tests.support.elf import EXIT, write_elf
from tests.support.seeds import SEED
from tests.support.system_calls import (
    AT_FDCWD,
    BUFFER,
    CODE_PAGE,
    HANDLER,
    NUMBERS,
    PATH,
    SIG_IGN,
    SIGUSR1,
    Caller,
)


@pytest.fixture
def call() -> Caller:
    return Caller()


# System calls that are not emulated.


def test_names_are_those_of_linux() -> None:
    header = Path("/usr/include/asm-generic/unistd.h")
    if not header.exists():
        pytest.skip("the headers of Linux are not installed")
    found = re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)$", header.read_text(), re.MULTILINE)
    aliases = {"fstatat": "newfstatat", "sync_file_range2": "sync_file_range"}
    numbers = {int(number): aliases.get(name, name) for name, number in found if name != "syscalls"}
    assert len(numbers) > 300
    common = numbers.keys() & NAMES.keys()
    assert len(common) > 300
    assert {number: numbers[number] for number in common} == {number: NAMES[number] for number in common}


def test_emulated_calls_have_a_number(call: Caller) -> None:
    emulated = call.kernel._calls  # pyright: ignore[reportPrivateUsage]
    assert emulated.keys() <= NUMBERS.keys()


def test_missing_calls_are_reported_once(call: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    emulated = call.kernel._calls  # pyright: ignore[reportPrivateUsage]
    missing = [name for name in NUMBERS if name not in emulated]
    assert len(missing) > 200
    for name in missing * 2:
        assert call.fails(name) == "ENOSYS"
    assert call.kernel.call(1234, (0,) * 6) == -errno.ENOSYS
    expected = [f"{name} (system call {NUMBERS[name]})" for name in missing] + ["system call 1234"]
    lines = [f"spurtle: {call_} is not emulated: the program receives ENOSYS" for call_ in expected]
    assert capsys.readouterr().err.splitlines() == lines


# Call, arguments, error, feature that is not emulated. BUFFER contains two words of 1, PATH an empty string.
NOT_EMULATED = [
    ("openat", (AT_FDCWD, PATH, 0o101), "EROFS", "to write a file"),
    ("openat", (AT_FDCWD, PATH, 0o1000), "EROFS", "to write a file"),
    ("openat", (AT_FDCWD, PATH, 0o200000), "EINVAL", "with O_DIRECT"),
    ("pipe2", (BUFFER, 0o200000), "EINVAL", "with O_DIRECT"),
    ("fcntl", (0, 6), "EINVAL", "with command 6"),
    ("fcntl", (0, 4, 0o20000), "EINVAL", "with O_DIRECT or O_ASYNC"),
    ("ioctl", (0, 0x541B), "ENOTTY", "with command 0x541b"),
    ("mmap", (0, PAGE_BYTES, 3, 0x32), "EINVAL", "at this fixed address"),
    ("mmap", (1 << 47, PAGE_BYTES, 3, 0x32), "EINVAL", "at this fixed address"),
    ("mmap", (0x9000_0000, PAGE_BYTES, 3, 0x10_0022), "EINVAL", "at this fixed address"),
    ("mmap", (0, PAGE_BYTES, 3, 0x2), "ENODEV", "of a file"),
    ("mmap", (0, PAGE_BYTES, 7, 0x22), "EACCES", "for executable memory"),
    ("mmap", (0, 1 << 40, 3, 0x22), "ENOMEM", "beyond 1024 MiB"),
    ("mprotect", (0x1000, PAGE_BYTES, 5), "EACCES", "for executable memory"),
    ("madvise", (0x1000, PAGE_BYTES, 9), "EINVAL", "with advice 9"),
    ("madvise", (0x1000, PAGE_BYTES, 4), "EINVAL", "with MADV_DONTNEED on other than private anonymous memory"),
    ("futex", (BUFFER, 0, 1, 0), "ENOSYS", "to wait for another thread"),
    ("futex", (BUFFER, 3, 1, 0), "ENOSYS", "with operation 3"),
    ("kill", (1000, 19), "ENOSYS", "to stop the program"),
    ("prlimit64", (0, 7, BUFFER, 0), "EPERM", "to change limit 7"),
    ("prctl", (4, 1), "EINVAL", "with option 4"),
    ("setuid", (os.getuid() + 1,), "EPERM", "for another user"),
    ("setgid", (os.getgid() + 1,), "EPERM", "for another group"),
    ("clock_gettime", (-6, BUFFER), "EINVAL", "on the clock of a process or device"),
    ("clock_nanosleep", (2, 0, BUFFER), "ENOTSUP", "on clock 2"),
]


@pytest.mark.parametrize(("name", "arguments", "error", "feature"), NOT_EMULATED)
def test_features_that_are_not_emulated_are_reported_once(
    call: Caller,
    capsys: pytest.CaptureFixture[str],
    name: str,
    arguments: tuple[int, ...],
    error: str,
    feature: str,
) -> None:
    call.put("2Q", 1, 1)
    assert call.fails(name, *arguments) == call.fails(name, *arguments) == error
    number = NUMBERS[name]
    expected = f"spurtle: {name} (system call {number}) {feature} is not emulated: the program receives {error}\n"
    assert capsys.readouterr().err == expected


# Call, arguments, error that Linux returns.
ERRORS = [
    ("openat", (AT_FDCWD, 0x9000_0000, 0), "EFAULT"),
    ("openat", (9, PATH, 0), "EBADF"),
    ("fcntl", (9, 1), "EBADF"),
    ("fcntl", (0, 0, 2000), "EINVAL"),
    ("ioctl", (9, 0x5401), "EBADF"),
    ("ioctl", (1, 0x5401), "ENOTTY"),
    ("dup", (9,), "EBADF"),
    ("dup3", (1, 1, 0), "EINVAL"),
    ("dup3", (1, 5, 1), "EINVAL"),
    ("dup3", (1, 1024, 0), "EBADF"),
    ("close", (9,), "EBADF"),
    ("read", (9, BUFFER, 1), "EBADF"),
    ("write", (1, 0x9000_0000, 1), "EFAULT"),
    ("write", (1, BUFFER, -1), "EFAULT"),
    ("writev", (1, BUFFER, -1), "EINVAL"),
    ("mmap", (0, 0, 3, 0x22), "EINVAL"),
    ("mmap", (0, PAGE_BYTES, 3, 0x20), "EINVAL"),
    ("mmap", (0x9000_0001, PAGE_BYTES, 3, 0x32), "EINVAL"),
    ("munmap", (0x1001, PAGE_BYTES), "EINVAL"),
    ("munmap", (0x1000, 0), "EINVAL"),
    ("mprotect", (0x9000_0000, PAGE_BYTES, 1), "ENOMEM"),
    ("mprotect", (0x1001, PAGE_BYTES, 1), "EINVAL"),
    ("madvise", (0x9000_0000, PAGE_BYTES, 0), "ENOMEM"),
    ("futex", (BUFFER, 0, 2, 0), "EAGAIN"),
    ("futex", (BUFFER + 1, 0, 0, 0), "EINVAL"),
    ("kill", (1000, 65), "EINVAL"),
    ("kill", (2, 9), "ESRCH"),
    ("kill", (1, 9), "EPERM"),
    ("tgkill", (1000, 0, 9), "EINVAL"),
    ("rt_sigaction", (9, BUFFER, 0, 8), "EINVAL"),
    ("rt_sigaction", (10, BUFFER, 0, 16), "EINVAL"),
    ("rt_sigprocmask", (3, BUFFER, 0, 8), "EINVAL"),
    ("sched_getaffinity", (0, 4, BUFFER), "EINVAL"),
    ("getpgid", (7,), "ESRCH"),
    ("prlimit64", (0, 16, 0, 0), "EINVAL"),
    ("clock_gettime", (10, BUFFER), "EINVAL"),
    ("rseq", (BUFFER, 32, 0, 0), "ENOSYS"),
]


@pytest.mark.parametrize(("name", "arguments", "error"), ERRORS)
def test_errors_of_linux_are_not_reported(
    call: Caller, capsys: pytest.CaptureFixture[str], name: str, arguments: tuple[int, ...], error: str
) -> None:
    call.put("2Q", 1, 1)
    assert call.fails(name, *arguments) == error
    assert capsys.readouterr().err == ""


def test_arguments_are_converted_to_their_types(call: Caller) -> None:
    # Bits above the width of an int are ignored.
    assert call("fcntl", 1 << 32 | 1, 1 << 40 | 1) == 0
    assert call("openat", 0xFFFF_FF9C, call.path("/dev/null"), 1 << 33) == 3
    assert call.kernel.call(1 << 32 | NUMBERS["getpid"], (0,) * 6) == 1000


# Memory.


def test_the_heap_grows_and_shrinks(call: Caller) -> None:
    start = call("brk", 0)
    assert start == 0x6000
    assert call("brk", start + 5000) == start + 5000
    call.uc.mem_write(start + 4999, b"x")
    assert call("brk", 1) == call("brk", start + (2 << 30)) == start + 5000
    assert call("brk", start + 1) == start + 1
    assert call.fails("write", 1, start + 4999, 1) == "EFAULT"
    assert call("brk", start + 5000) == start + 5000
    assert call.bytes(1, start + 4999) == b"\0"


def test_mappings_are_created_protected_and_removed(call: Caller) -> None:
    first, second = (call("mmap", 0, 8000, 3, 0x22, -1) for _ in range(2))
    assert second >= first + 8192 + PAGE_BYTES
    call.uc.mem_write(first + 8191, b"x")
    assert call("mprotect", first, PAGE_BYTES, 1) == 0
    assert call.fails("getrandom", first, 1) == "EFAULT"
    assert call("munmap", first, 8000) == call("munmap", first, 8000) == 0
    assert call("munmap", second, PAGE_BYTES) == 0
    assert call.fails("mprotect", second, 2 * PAGE_BYTES, 1) == "ENOMEM"
    assert call("mprotect", second + PAGE_BYTES, PAGE_BYTES, 2) == 0
    assert call("getrandom", second + PAGE_BYTES, 1, 0) == 1
    size = (1 << 30) - PAGE_BYTES
    assert call("munmap", call("mmap", 0, size, 3, 0x22), size) == 0
    assert call("mmap", 0, size, 3, 0x22) > 0


def test_a_mapping_at_a_fixed_address_replaces_others(call: Caller) -> None:
    start = call("brk", 0)
    assert call("brk", start + 3 * PAGE_BYTES) == start + 3 * PAGE_BYTES
    for address in (start, start + PAGE_BYTES, start + 2 * PAGE_BYTES):
        call.uc.mem_write(address, b"x")
    assert call("mmap", start + PAGE_BYTES, PAGE_BYTES, 0, 0x32) == start + PAGE_BYTES
    assert call.bytes(1, start) == call.bytes(1, start + 2 * PAGE_BYTES) == b"x"
    assert call.fails("getrandom", start + PAGE_BYTES, 1) == "EFAULT"
    other = call("mmap", 0, 2 * PAGE_BYTES, 3, 0x22)
    call.uc.mem_write(other, b"x")
    assert call("sysinfo", BUFFER) == 0
    free = call.get("6Q")[5]
    assert call("mmap", other, PAGE_BYTES, 3, 0x32) == other
    assert call.bytes(1, other) == b"\0"
    assert call("sysinfo", BUFFER) == 0
    assert call.get("6Q")[5] == free == (1 << 30) - 2 * PAGE_BYTES
    assert call("mmap", 0x9000_0000, PAGE_BYTES, 3, 0x32) == 0x9000_0000


def test_unmapping_the_heap_does_not_free_mappings(call: Caller) -> None:
    def free() -> int:
        assert call("sysinfo", BUFFER) == 0
        return call.get("6Q")[5]

    start = call("brk", 0)
    assert call("brk", start + PAGE_BYTES) == start + PAGE_BYTES
    assert free() == 1 << 30
    assert call("munmap", start, PAGE_BYTES) == 0
    assert free() == 1 << 30
    first = call("mmap", 0, 3 * PAGE_BYTES, 3, 0x22)
    assert free() == (1 << 30) - 3 * PAGE_BYTES
    assert call("munmap", first + PAGE_BYTES, 1 << 40) == 0
    assert free() == (1 << 30) - PAGE_BYTES


def test_madvise_dontneed_clears_private_memory(call: Caller) -> None:
    start = call("mmap", 0, 2 * PAGE_BYTES, 3, 0x22)
    for address in (start, start + PAGE_BYTES):
        call.uc.mem_write(address, b"x")
    assert call("mprotect", start, PAGE_BYTES, 0) == 0
    assert call("madvise", start, PAGE_BYTES, 4) == 0
    assert call.bytes(1, start) == b"\0"
    assert call.bytes(1, start + PAGE_BYTES) == b"x"
    assert call.fails("getrandom", start, 1) == "EFAULT"
    assert call("madvise", start, 2 * PAGE_BYTES, 3) == 0
    shared = call("mmap", 0, PAGE_BYTES, 3, 0x21)
    assert call.fails("madvise", shared, PAGE_BYTES, 4) == "EINVAL"


def test_the_regions_of_the_guest_match_the_emulator(call: Caller) -> None:
    generator = random.Random(SEED)
    start = call("mmap", 0, 16 * PAGE_BYTES, 3, 0x22)
    guest = Guest(call.uc)
    guest.map(start - 4 * PAGE_BYTES, 4 * PAGE_BYTES, 1)
    for _ in range(100):
        first, count = start + PAGE_BYTES * generator.randrange(16), generator.randint(1, 4)
        parts = [*guest.regions(first, first + count * PAGE_BYTES)]
        if not parts:
            guest.map(first, count * PAGE_BYTES, generator.choice([0, 1, 3]))
        elif generator.random() < 0.5:
            for part_start, part_end, _ in parts:
                guest.unmap(part_start, part_end - part_start)
        elif guest.is_mapped(first, first + count * PAGE_BYTES):
            guest.protect(first, count * PAGE_BYTES, generator.choice([0, 1, 3]))
        expected = {page: protection for a, b, protection in call.uc.mem_regions() for page in range(a, b, PAGE_BYTES)}
        found = {page: protection for a, b, protection in guest.regions(0, 1 << 64) for page in range(a, b, PAGE_BYTES)}
        assert found == expected


def test_a_transfer_ends_at_the_end_of_mapped_memory(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(100)))
    descriptor = call.open(tmp_path / "file")
    last = call("mmap", 0, PAGE_BYTES, 3, 0x22) + PAGE_BYTES - 10
    assert call.fails("read", descriptor, last + 10, 100) == "EFAULT"
    assert call("read", descriptor, last, 1 << 40) == 10
    assert call.bytes(10, last) == bytes(range(10))
    assert call("read", descriptor, BUFFER, 1) == 1
    assert call.bytes(1) == bytes([10])
    assert call("getrandom", last, 1 << 40) == 10


def test_system_calls_do_not_write_to_code(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    assert call.fails("read", call.open(tmp_path / "file"), CODE_PAGE, 1) == "EFAULT"
    assert call.bytes(1, CODE_PAGE) == b"\0"


# Signals.


def set_action(call: Caller, number: int, handler: int) -> int:
    return call("rt_sigaction", number, call.put("4Q", handler, 0, 0, 0), 0, 8)


def test_a_signal_is_fatal_unless_it_is_ignored(call: Caller) -> None:
    for number in (SIGUSR1, 17, 18, 23, 28):
        assert set_action(call, SIGUSR1, SIG_IGN) == 0
        assert call("kill", 1000, number) == call("tkill", 1000, number) == call("tgkill", 1000, 1000, number) == 0
    assert call("kill", 0, 0) == 0
    assert call.kernel.exit_status is None
    assert call("rt_sigaction", SIGUSR1, 0, BUFFER, 8) == 0
    assert call.get("4Q") == (SIG_IGN, 0, 0, 0)
    assert set_action(call, SIGUSR1, 0) == 0
    assert call("kill", -1000, SIGUSR1) == 0
    assert call.kernel.exit_status == 128 + SIGUSR1


def test_a_blocked_signal_is_pending_until_it_is_unblocked(call: Caller) -> None:
    mask = 1 << SIGUSR1 - 1
    assert call("rt_sigprocmask", 0, call.put("Q", mask | 1 << 9 - 1), 0, 8) == 0
    assert call("rt_sigprocmask", 0, 0, BUFFER, 8) == 0
    assert call.get("Q") == (mask,)
    assert call("tgkill", 1000, 1000, SIGUSR1) == 0
    assert call.kernel.exit_status is None
    assert call("rt_sigprocmask", 2, call.put("Q", 0), BUFFER + 8, 8) == 0
    assert call.get("Q", BUFFER + 8) == (mask,)
    assert call.kernel.exit_status == 128 + SIGUSR1


def test_a_pending_signal_that_is_ignored_has_no_effect(call: Caller) -> None:
    mask = call.put("Q", 1 << SIGUSR1 - 1, at=BUFFER + 64)
    assert call("rt_sigprocmask", 0, mask, 0, 8) == call("kill", 1000, SIGUSR1) == 0
    assert set_action(call, SIGUSR1, SIG_IGN) == call("rt_sigprocmask", 1, mask, 0, 8) == 0
    assert call.kernel.exit_status is None


def test_a_signal_with_a_handler_is_not_emulated(call: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    assert set_action(call, SIGUSR1, HANDLER) == 0
    assert call.fails("kill", 1000, SIGUSR1) == "ENOSYS"
    assert "kill (system call 129) with a handler of signal 10 is not emulated" in capsys.readouterr().err
    assert call.kernel.exit_status is None


def test_a_write_to_a_broken_pipe_ends_the_program(call: Caller) -> None:
    assert call("pipe2", BUFFER, 0) == 0
    reader, writer = call.get("2i")
    assert call("close", reader) == 0
    assert call.fails("write", writer, BUFFER, 1) == "EPIPE"
    assert call.kernel.exit_status == 128 + signal.SIGPIPE


def test_the_alternate_stack_is_stored(call: Caller) -> None:
    assert call("sigaltstack", 0, BUFFER) == 0
    assert call.get("QI4xQ") == (0, 2, 0)
    assert call("sigaltstack", call.put("QI4xQ", 0x7000, 0, 8192), 0) == 0
    assert call.fails("sigaltstack", call.put("QI4xQ", 0x7000, 0, 100), 0) == "ENOMEM"
    assert call("sigaltstack", 0, BUFFER) == 0
    assert call.get("QI4xQ") == (0x7000, 0, 8192)


def mov(register: int, value: int) -> int:
    return 0xD2800000 | value << 5 | register


def test_a_program_continues_after_an_ignored_signal(tmp_path: Path) -> None:
    # x1 = DATA, *x1 = SIG_IGN; rt_sigaction(10, x1, 0, 8); kill(1000, 10); exit_group(7).
    words = [0xD2A00821, mov(9, SIG_IGN), 0xF9000029, mov(0, SIGUSR1), mov(2, 0), mov(3, 8), mov(8, 134), EXIT[1]]
    words += [mov(0, 1000), mov(1, SIGUSR1), mov(8, 129), EXIT[1], mov(0, 7), *EXIT]
    program = Program(write_elf(tmp_path / "ignore", words))
    executed = sum(len(operations) for operations in program.run())
    assert program.exit_status == 7
    assert executed == len(words)


# Time and process.


def test_a_sleep_advances_the_clock(call: Caller) -> None:
    def time(clock: int) -> tuple[int, ...]:
        assert call("clock_gettime", clock, BUFFER) == 0
        return call.get("2q")

    assert call("nanosleep", call.put("2q", 10, 1), 0) == 0
    assert call("clock_nanosleep", 1, 0, call.put("2q", 10, 1), 0) == 0
    assert (time(0), time(1), time(2)) == ((22, 9), (22, 9), (2, 7))
    assert call("clock_nanosleep", 1, 1, call.put("2q", 30, 0), 0) == 0
    assert call("clock_nanosleep", 1, 1, call.put("2q", 1, 0), 0) == 0
    assert time(1) == (30, 0)
    assert call.fails("nanosleep", call.put("2q", 0, 10**9), 0) == "EINVAL"
    assert call.fails("futex", PATH, 0, call.get("I", PATH)[0], call.put("2q", 1, 0)) == "ETIMEDOUT"
    assert time(1) == (31, 0)
    assert call("gettimeofday", BUFFER, 0) == 0
    assert call.get("2q") == (31, 0)
    assert call("times", BUFFER) == 3100
    assert call.get("4q") == (200, 0, 0, 0)


def test_random_bytes_are_reproducible(call: Caller) -> None:
    assert call("getrandom", BUFFER, 16) == 16
    assert call.bytes(16).hex() == "f5b165224a58b791df6af1d8303e61cd"


def test_attributes_of_the_process(call: Caller) -> None:
    for name, value in (("getpid", 1000), ("gettid", 1000), ("getppid", 1), ("getuid", os.getuid()), ("rseq", -38)):
        assert call(name) == value
    assert call("getpgid", 0) == call("getpgid", 1000) == 1000
    assert call("sched_getaffinity", 0, 128, BUFFER) == 8
    assert call.get("Q") == (1,)
    assert call("umask", 0o777) == 0o022
    assert call("umask", 0) == 0o777
    assert call("prctl", 16, BUFFER) == 0
    assert call.bytes(8) == b"program\0"
    assert call("setuid", os.getuid()) == call("setgid", os.getgid()) == 0
    assert call("prlimit64", 0, 3, call.put("2Q", 8 << 20, 8 << 20), 0) == 0
    call("exit_group", 0x1FF)
    assert call.kernel.exit_status == 0xFF


# Real programs.

BUSYBOX = pytest.mark.skipif(
    "SPURTLE_BUSYBOX" not in os.environ, reason="SPURTLE_BUSYBOX does not name a static AArch64 busybox"
)


def busybox(*arguments: str) -> int | None:
    """Run an applet. Return its exit status."""
    program = Program(os.environ["SPURTLE_BUSYBOX"], arguments)
    for _ in program.run():
        pass
    return program.exit_status


@BUSYBOX
def test_a_shell_runs_a_script(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script"
    script.write_text('cd "$1"; pwd; echo * > /dev/stderr\nread line < file; echo "$line" $((6 * 7)); exit 5\n')
    (tmp_path / "file").write_text("content\n")
    assert busybox("ash", str(script), str(tmp_path)) == 5
    out, err = capfd.readouterr()
    assert out == f"{tmp_path}\ncontent 42\n"
    assert "to write a file is not emulated" in err


@BUSYBOX
def test_tar_writes_a_valid_archive(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(bytes(range(256)) * 5)
    (folder / "hard").hardlink_to(folder / "file")
    (folder / "soft").symlink_to("file")
    assert busybox("tar", "cf", "-", "-C", str(tmp_path), "folder") == 0
    out, err = capfdbinary.readouterr()
    assert err == b""
    with tarfile.open(fileobj=BytesIO(out)) as archive:
        members = {member.name: member for member in archive}
        assert members.keys() == {"folder", "folder/file", "folder/hard", "folder/soft"}
        assert members["folder/file"].islnk() != members["folder/hard"].islnk()
        assert members["folder/soft"].linkname == "file"
        assert members["folder"].isdir()
        content = archive.extractfile("folder/hard")
        assert content and content.read() == (folder / "file").read_bytes()
        assert members["folder/soft"].uid == folder.stat().st_uid


@BUSYBOX
def test_a_shell_cannot_fork(capfd: pytest.CaptureFixture[str]) -> None:
    assert busybox("ash", "-c", "echo $(true)") == 2
    assert "spurtle: clone (system call 220) is not emulated: the program receives ENOSYS\n" in capfd.readouterr().err


@BUSYBOX
def test_a_shell_ignores_a_signal(capfd: pytest.CaptureFixture[str]) -> None:
    assert busybox("ash", "-c", "trap '' USR1; kill -USR1 $$; echo alive") == 0
    assert capfd.readouterr() == ("alive\n", "")
    assert busybox("ash", "-c", "kill -USR1 $$; echo alive") == 128 + SIGUSR1
    assert capfd.readouterr() == ("", "")
