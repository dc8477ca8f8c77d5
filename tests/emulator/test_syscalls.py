"""System calls do what Linux does, or fail and say so."""

import errno
import os
import random
import re
import signal
import stat
import struct
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
from unicorn import UC_ARCH_ARM64, UC_MODE_ARM, UC_PROT_ALL, UC_PROT_READ
from unicorn.unicorn import Uc

from spurtle_sim.emulator.linux.guest import Guest
from spurtle_sim.emulator.linux.names import NAMES
from spurtle_sim.emulator.program import Program
from spurtle_sim.emulator.syscalls import PAGE, Kernel
from tests.support.elf import EXIT, write_elf
from tests.support.seeds import SEED

NUMBERS = {name: number for number, name in NAMES.items()}
PATH, BUFFER, CODE_PAGE = 0x1000, 0x1800, 0x4000
HERE = -100  # AT_FDCWD
SIGUSR1, SIG_IGN, HANDLER = 10, 1, 0x400000
EMPTY_PATH, NO_FOLLOW = 0x1000, 0x100


class Caller:
    """A kernel with one page at PATH to pass structures in, and a page of code; each errno is checked by its name."""

    def __init__(self) -> None:
        self.uc = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        self.uc.mem_map(0x1000, PAGE, UC_PROT_ALL)
        self.uc.mem_map(CODE_PAGE, PAGE, UC_PROT_READ)
        self.instructions = 2_000_000_007
        self.kernel = Kernel(self.uc, path=Path("/bin/program"), end=0x5345, now=lambda: self.instructions, seed=1)

    def __call__(self, name: str, *arguments: int) -> int:
        values = tuple(argument % 2**64 for argument in arguments)
        return self.kernel.call(NUMBERS[name], (*values, *[0] * (6 - len(arguments))))

    def fails(self, name: str, *arguments: int) -> str:
        """Return the name of the error."""
        return errno.errorcode[-self(name, *arguments)]

    def path(self, name: str | Path) -> int:
        """Return the address of a path."""
        self.uc.mem_write(PATH, os.fsencode(name) + b"\0")
        return PATH

    def put(self, layout: str, *fields: int, at: int = BUFFER) -> int:
        self.uc.mem_write(at, struct.pack("<" + layout, *fields))
        return at

    def get(self, layout: str, at: int = BUFFER) -> tuple[int, ...]:
        return struct.unpack("<" + layout, self.uc.mem_read(at, struct.calcsize("<" + layout)))

    def bytes(self, length: int, at: int = BUFFER) -> bytes:
        return bytes(self.uc.mem_read(at, length))

    def open(self, path: Path, flags: int = 0) -> int:
        return self("openat", HERE, self.path(path), flags)


@pytest.fixture
def call() -> Caller:
    return Caller()


# What is not emulated.


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


def test_each_call_that_is_emulated_has_a_number(call: Caller) -> None:
    emulated = call.kernel._calls  # pyright: ignore[reportPrivateUsage]
    assert emulated.keys() <= NUMBERS.keys()


def test_each_missing_call_is_named_once(call: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    emulated = call.kernel._calls  # pyright: ignore[reportPrivateUsage]
    missing = [name for name in NUMBERS if name not in emulated]
    assert len(missing) > 200
    for name in missing * 2:
        assert call.fails(name) == "ENOSYS"
    assert call.kernel.call(1234, (0,) * 6) == -errno.ENOSYS
    expected = [f"{name} (system call {NUMBERS[name]})" for name in missing] + ["system call 1234"]
    lines = [f"spurtle: {what} is not emulated: the program gets ENOSYS" for what in expected]
    assert capsys.readouterr().err.splitlines() == lines


# Call, arguments, error, what is not emulated. BUFFER has two words of 1, PATH an empty string.
REFUSED = [
    ("openat", (HERE, PATH, 0o101), "EROFS", "to write a file"),
    ("openat", (HERE, PATH, 0o1000), "EROFS", "to write a file"),
    ("openat", (HERE, PATH, 0o200000), "EINVAL", "with O_DIRECT"),
    ("pipe2", (BUFFER, 0o200000), "EINVAL", "with O_DIRECT"),
    ("fcntl", (0, 6), "EINVAL", "with command 6"),
    ("fcntl", (0, 4, 0o20000), "EINVAL", "with O_DIRECT or O_ASYNC"),
    ("ioctl", (0, 0x541B), "ENOTTY", "with command 0x541b"),
    ("mmap", (0, PAGE, 3, 0x32), "EINVAL", "at a fixed address"),
    ("mmap", (0, PAGE, 3, 0x2), "ENODEV", "of a file"),
    ("mmap", (0, PAGE, 7, 0x22), "EACCES", "for memory that can be executed"),
    ("mmap", (0, 1 << 40, 3, 0x22), "ENOMEM", "beyond 1024 MiB"),
    ("mprotect", (0x1000, PAGE, 5), "EACCES", "for memory that can be executed"),
    ("madvise", (0x1000, PAGE, 9), "EINVAL", "with advice 9"),
    ("madvise", (0x1000, PAGE, 4), "EINVAL", "with MADV_DONTNEED on other than private anonymous memory"),
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


@pytest.mark.parametrize(("name", "arguments", "error", "what"), REFUSED)
def test_each_error_of_ours_is_reported_once(
    call: Caller,
    capsys: pytest.CaptureFixture[str],
    name: str,
    arguments: tuple[int, ...],
    error: str,
    what: str,
) -> None:
    call.put("2Q", 1, 1)
    assert call.fails(name, *arguments) == call.fails(name, *arguments) == error
    number = NUMBERS[name]
    expected = f"spurtle: {name} (system call {number}) {what} is not emulated: the program gets {error}\n"
    assert capsys.readouterr().err == expected


# Call, arguments, error of Linux.
ERRORS = [
    ("openat", (HERE, 0x9000_0000, 0), "EFAULT"),
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
    ("mmap", (0, PAGE, 3, 0x20), "EINVAL"),
    ("munmap", (0x1001, PAGE), "EINVAL"),
    ("munmap", (0x1000, 0), "EINVAL"),
    ("mprotect", (0x9000_0000, PAGE, 1), "ENOMEM"),
    ("mprotect", (0x1001, PAGE, 1), "EINVAL"),
    ("madvise", (0x9000_0000, PAGE, 0), "ENOMEM"),
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
def test_errors_of_linux_are_silent(
    call: Caller, capsys: pytest.CaptureFixture[str], name: str, arguments: tuple[int, ...], error: str
) -> None:
    call.put("2Q", 1, 1)
    assert call.fails(name, *arguments) == error
    assert capsys.readouterr().err == ""


def test_arguments_have_their_types(call: Caller) -> None:
    # What is above the bits of an int does not count.
    assert call("fcntl", 1 << 32 | 1, 1 << 40 | 1) == 0
    assert call("openat", 0xFFFF_FF9C, call.path("/dev/null"), 1 << 33) == 3
    assert call.kernel.call(1 << 32 | NUMBERS["getpid"], (0,) * 6) == 1000


# Memory.


def test_heap(call: Caller) -> None:
    start = call("brk", 0)
    assert start == 0x6000
    assert call("brk", start + 5000) == start + 5000
    call.uc.mem_write(start + 4999, b"x")
    assert call("brk", 1) == call("brk", start + (2 << 30)) == start + 5000
    assert call("brk", start + 1) == start + 1
    assert call.fails("write", 1, start + 4999, 1) == "EFAULT"
    assert call("brk", start + 5000) == start + 5000
    assert call.bytes(1, start + 4999) == b"\0"


def test_mappings(call: Caller) -> None:
    first, second = (call("mmap", 0, 8000, 3, 0x22, -1) for _ in range(2))
    assert second >= first + 8192 + PAGE
    call.uc.mem_write(first + 8191, b"x")
    assert call("mprotect", first, PAGE, 1) == 0
    assert call.fails("getrandom", first, 1) == "EFAULT"
    assert call("munmap", first, 8000) == call("munmap", first, 8000) == 0
    assert call("munmap", second, PAGE) == 0
    assert call.fails("mprotect", second, 2 * PAGE, 1) == "ENOMEM"
    assert call("mprotect", second + PAGE, PAGE, 2) == 0
    assert call("getrandom", second + PAGE, 1, 0) == 1
    most = (1 << 30) - PAGE
    assert call("munmap", call("mmap", 0, most, 3, 0x22), most) == 0
    assert call("mmap", 0, most, 3, 0x22) > 0


def test_discarded_memory_is_zero(call: Caller) -> None:
    start = call("mmap", 0, 2 * PAGE, 3, 0x22)
    for address in (start, start + PAGE):
        call.uc.mem_write(address, b"x")
    assert call("mprotect", start, PAGE, 0) == 0
    assert call("madvise", start, PAGE, 4) == 0
    assert call.bytes(1, start) == b"\0"
    assert call.bytes(1, start + PAGE) == b"x"
    assert call.fails("getrandom", start, 1) == "EFAULT"
    assert call("madvise", start, 2 * PAGE, 3) == 0
    shared = call("mmap", 0, PAGE, 3, 0x21)
    assert call.fails("madvise", shared, PAGE, 4) == "EINVAL"


def test_what_is_mapped_is_known(call: Caller) -> None:
    generator = random.Random(SEED)
    start = call("mmap", 0, 16 * PAGE, 3, 0x22)
    guest = Guest(call.uc)
    guest.map(start - 4 * PAGE, 4 * PAGE, 1)
    for _ in range(100):
        first, count = start + PAGE * generator.randrange(16), generator.randint(1, 4)
        parts = [*guest.regions(first, first + count * PAGE)]
        if not parts:
            guest.map(first, count * PAGE, generator.choice([0, 1, 3]))
        elif generator.random() < 0.5:
            for part_start, part_end, _ in parts:
                guest.unmap(part_start, part_end - part_start)
        elif guest.covers(first, first + count * PAGE):
            guest.protect(first, count * PAGE, generator.choice([0, 1, 3]))
        expected = {page: allowed for a, b, allowed in call.uc.mem_regions() for page in range(a, b, PAGE)}
        found = {page: allowed for a, b, allowed in guest.regions(0, 1 << 64) for page in range(a, b, PAGE)}
        assert found == expected


def test_a_transfer_ends_where_the_memory_does(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(100)))
    descriptor = call.open(tmp_path / "file")
    last = call("mmap", 0, PAGE, 3, 0x22) + PAGE - 10
    assert call.fails("read", descriptor, last + 10, 100) == "EFAULT"
    assert call("read", descriptor, last, 1 << 40) == 10
    assert call.bytes(10, last) == bytes(range(10))
    assert call("read", descriptor, BUFFER, 1) == 1
    assert call.bytes(1) == bytes([10])
    assert call("getrandom", last, 1 << 40) == 10


def test_the_kernel_writes_no_code(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    assert call.fails("read", call.open(tmp_path / "file"), CODE_PAGE, 1) == "EFAULT"
    assert call.bytes(1, CODE_PAGE) == b"\0"


# Signals.


def act(call: Caller, number: int, handler: int) -> int:
    return call("rt_sigaction", number, call.put("4Q", handler, 0, 0, 0), 0, 8)


def test_a_signal_is_fatal_unless_it_is_ignored(call: Caller) -> None:
    for number in (SIGUSR1, 17, 18, 23, 28):
        assert act(call, SIGUSR1, SIG_IGN) == 0
        assert call("kill", 1000, number) == call("tkill", 1000, number) == call("tgkill", 1000, 1000, number) == 0
    assert call("kill", 0, 0) == 0
    assert call.kernel.exit_status is None
    assert call("rt_sigaction", SIGUSR1, 0, BUFFER, 8) == 0
    assert call.get("4Q") == (SIG_IGN, 0, 0, 0)
    assert act(call, SIGUSR1, 0) == 0
    assert call("kill", -1000, SIGUSR1) == 0
    assert call.kernel.exit_status == 128 + SIGUSR1


def test_a_signal_waits_while_it_is_blocked(call: Caller) -> None:
    mask = 1 << SIGUSR1 - 1
    assert call("rt_sigprocmask", 0, call.put("Q", mask | 1 << 9 - 1), 0, 8) == 0
    assert call("rt_sigprocmask", 0, 0, BUFFER, 8) == 0
    assert call.get("Q") == (mask,)
    assert call("tgkill", 1000, 1000, SIGUSR1) == 0
    assert call.kernel.exit_status is None
    assert call("rt_sigprocmask", 2, call.put("Q", 0), BUFFER + 8, 8) == 0
    assert call.get("Q", BUFFER + 8) == (mask,)
    assert call.kernel.exit_status == 128 + SIGUSR1


def test_a_blocked_signal_may_be_ignored_later(call: Caller) -> None:
    mask = call.put("Q", 1 << SIGUSR1 - 1, at=BUFFER + 64)
    assert call("rt_sigprocmask", 0, mask, 0, 8) == call("kill", 1000, SIGUSR1) == 0
    assert act(call, SIGUSR1, SIG_IGN) == call("rt_sigprocmask", 1, mask, 0, 8) == 0
    assert call.kernel.exit_status is None


def test_a_handler_can_be_set_and_does_not_run(call: Caller, capsys: pytest.CaptureFixture[str]) -> None:
    assert act(call, SIGUSR1, HANDLER) == 0
    assert call.fails("kill", 1000, SIGUSR1) == "ENOSYS"
    assert "kill (system call 129) with a handler of signal 10 is not emulated" in capsys.readouterr().err
    assert call.kernel.exit_status is None


def test_a_broken_pipe_ends_the_program(call: Caller) -> None:
    assert call("pipe2", BUFFER, 0) == 0
    reader, writer = call.get("2i")
    assert call("close", reader) == 0
    assert call.fails("write", writer, BUFFER, 1) == "EPIPE"
    assert call.kernel.exit_status == 128 + signal.SIGPIPE


def test_the_alternate_stack_is_kept(call: Caller) -> None:
    assert call("sigaltstack", 0, BUFFER) == 0
    assert call.get("QI4xQ") == (0, 2, 0)
    assert call("sigaltstack", call.put("QI4xQ", 0x7000, 0, 8192), 0) == 0
    assert call.fails("sigaltstack", call.put("QI4xQ", 0x7000, 0, 100), 0) == "ENOMEM"
    assert call("sigaltstack", 0, BUFFER) == 0
    assert call.get("QI4xQ") == (0x7000, 0, 8192)


def mov(register: int, value: int) -> int:
    return 0xD2800000 | value << 5 | register


def test_a_program_that_ignores_a_signal_goes_on(tmp_path: Path) -> None:
    # x1 = DATA, *x1 = SIG_IGN; rt_sigaction(10, x1, 0, 8); kill(1000, 10); exit_group(7).
    words = [0xD2A00821, mov(9, SIG_IGN), 0xF9000029, mov(0, SIGUSR1), mov(2, 0), mov(3, 8), mov(8, 134), EXIT[1]]
    words += [mov(0, 1000), mov(1, SIGUSR1), mov(8, 129), EXIT[1], mov(0, 7), *EXIT]
    program = Program(write_elf(tmp_path / "ignore", words))
    executed = sum(len(operations) for operations in program.run())
    assert program.exit_status == 7
    assert executed == len(words)


# Descriptors.


def test_descriptors_are_those_that_are_free(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert call.open(tmp_path / "file") == 3
    assert call("fcntl", 3, 0, 10) == 10
    assert call("fcntl", 3, 1030, 10) == 11
    assert call("dup", 3) == 4
    assert call("dup3", 3, 20, 0o2000000) == 20
    assert call("dup3", 3, 0, 0) == 0
    assert [call("fcntl", descriptor, 1) for descriptor in (3, 10, 11, 4, 20, 0)] == [0, 0, 1, 0, 1, 0]
    assert call("fcntl", 3, 2, 1) == 0
    assert call("fcntl", 3, 1) == 1
    # They share the offset of one file.
    assert call("read", 3, BUFFER, 4) == 4
    assert call("read", 20, BUFFER, 2) == 2
    assert call.bytes(2) == b"45"
    assert call("lseek", 0, 0, 1) == 6
    assert call("close", 0) == 0
    assert call("dup", 3) == 0
    assert call("close", 1) == 0
    assert call.fails("write", 1, BUFFER, 1) == "EBADF"
    call.kernel.close()
    assert os.fstat(1)  # the host's own are open


def test_no_more_descriptors_than_the_limit(call: Caller) -> None:
    assert call("prlimit64", 0, 7, 0, BUFFER) == 0
    most, _ = call.get("2Q")
    assert [call("dup", 0) for _ in range(most - 3)][-1] == most - 1
    assert call.fails("dup", 0) == "EMFILE"
    call.kernel.close()


def test_status_flags(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    descriptor = call.open(tmp_path / "file", 0o4000)
    assert call("fcntl", descriptor, 3) == 0o4000
    assert call("fcntl", descriptor, 4, 0o2000) == 0
    assert call("fcntl", descriptor, 3) == 0o2000
    writer = call.open(Path("/dev/null"), 1)
    assert call("fcntl", writer, 3) == 1


def test_pipe_and_poll(call: Caller) -> None:
    assert call("pipe2", BUFFER, 0o2004000) == 0
    reader, writer = call.get("2i")
    assert call("fcntl", reader, 1) == 1
    assert call.fails("read", reader, BUFFER, 1) == "EAGAIN"
    entries = call.put("i2H i2H i2H i2H", reader, 1, 9, writer, 4, 9, -1, 1, 9, reader, 4, 9)
    assert call("ppoll", entries, 4, 0, 0) == 1
    assert call.get("i2H i2H i2H i2H")[2::3] == (0, 4, 0, 0)
    assert call("write", writer, PATH, 5) == 5
    assert call("ppoll", entries, 4, 0, 0) == 2
    assert call.get("i2H i2H i2H i2H")[2::3] == (1, 4, 0, 0)
    assert call("ppoll", call.put("i2H", 99, 1, 0), 1, 0, 0) == 1
    assert call.get("i2H") == (99, 1, 0x20)


def test_a_poll_that_times_out_takes_its_time(call: Caller) -> None:
    timeout = call.put("2q", 3, 5)
    assert call("ppoll", 0, 0, timeout, 0) == 0
    assert call.get("2q", timeout) == (0, 0)
    assert call("clock_gettime", 1, BUFFER) == 0
    assert call.get("2q") == (5, 12)


# Transfers.


def test_files_are_read(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    descriptor = call.open(tmp_path / "file")
    assert call("lseek", descriptor, 4, 0) == 4
    assert call("read", descriptor, BUFFER, 100) == 6
    assert call.bytes(6) == b"456789"
    assert call("pread64", descriptor, BUFFER, 3, 1) == 3
    assert call.bytes(3) == b"123"
    assert call("lseek", descriptor, -2, 1) == 8
    vectors = call.put("4Q", BUFFER, 1, BUFFER + 100, 100, at=BUFFER + 200)
    assert call("readv", descriptor, vectors, 2) == 2
    assert (call.bytes(1), call.bytes(1, BUFFER + 100)) == (b"8", b"9")
    assert call.fails("write", descriptor, BUFFER, 1) == "EBADF"
    assert call("fadvise64", descriptor, 0, 0, 2) == 0


def test_gathered_and_copied_output(call: Caller, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    descriptor = call.open(tmp_path / "file")
    call.uc.mem_write(PATH, b"abcd")
    assert call("writev", 1, call.put("4Q", PATH, 3, PATH + 3, 1), 2) == 4
    assert call("sendfile", 1, descriptor, 0, 4) == 4
    assert call("sendfile", 1, descriptor, call.put("q", 8), 4) == 2
    assert call.get("q") == (10,)
    assert call("sendfile", 1, descriptor, 0, 100) == 6
    assert call("sendfile", 1, descriptor, 0, 100) == 0
    assert capfd.readouterr().out == "abcd012389456789"


# Paths.


def test_files_cannot_be_written(call: Caller, tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert call.fails("openat", HERE, call.path(path), 0o101) == "EROFS"
    assert not path.exists()
    path.touch()
    for flags in (1, 2, 0o100, 0o1000):
        assert call.fails("openat", HERE, call.path(path), flags) == "EROFS"
    assert call.fails("faccessat", HERE, call.path(path), os.W_OK) == "EROFS"
    assert call.fails("faccessat", HERE, call.path(path), os.X_OK) == "EACCES"
    assert call("faccessat", HERE, call.path(path), os.R_OK) == 0
    assert call.fails("faccessat2", HERE, call.path(tmp_path / "absent"), os.R_OK, NO_FOLLOW) == "ENOENT"
    assert call("faccessat", HERE, call.path("/dev/null"), os.W_OK) == 0
    null = call.open(Path("/dev/null"), 0o1101)
    assert call("write", null, BUFFER, 10) == 10


def test_stat_is_the_hosts(call: Caller, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(5000))
    os.utime(path, ns=(1_000_000_007, 2_000_000_009))
    (tmp_path / "hard").hardlink_to(path)
    (tmp_path / "soft").symlink_to("file")
    host = path.stat()
    expected = (host.st_dev, host.st_ino, host.st_mode, 2, host.st_uid, host.st_gid, 0, 5000, host.st_blksize)
    expected += (host.st_blocks, 1, 7, 2, 9, *divmod(host.st_ctime_ns, 10**9))
    descriptor = call.open(path)
    for name in ("file", "hard", "soft"):
        assert call("newfstatat", HERE, call.path(tmp_path / name), BUFFER, 0) == 0
        assert call.get("2Q4IQ8xqi4xq6q") == expected
    for found in (call("fstat", descriptor, BUFFER), call("newfstatat", descriptor, call.path(""), BUFFER, EMPTY_PATH)):
        assert found == 0
        assert call.get("2Q4IQ8xqi4xq6q") == expected
    assert call("newfstatat", HERE, call.path(tmp_path / "soft"), BUFFER, NO_FOLLOW) == 0
    assert stat.S_ISLNK(call.get("16xI")[0])
    assert call("statx", HERE, call.path(path), 0, 0xFFF, BUFFER) == 0
    mask, _, links, _, _, mode, inode, size = call.get("2I8x3IH2x2Q")
    assert (mask, links, mode, inode, size) == (0x7FF, 2, host.st_mode, host.st_ino, 5000)
    assert call.get("qI4x qI4x qI4x qI4x 4I", BUFFER + 64) == (
        *(1, 7, 0, 0, *divmod(host.st_ctime_ns, 10**9), 2, 9, 0, 0),
        *(os.major(host.st_dev), os.minor(host.st_dev)),
    )


def test_standard_streams_are_the_hosts(call: Caller) -> None:
    for descriptor in range(3):
        assert call("fstat", descriptor, BUFFER) == 0
        host = os.fstat(descriptor)
        assert call.get("2QI") == (host.st_dev, host.st_ino, host.st_mode)


def test_directories(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "link").symlink_to("target")
    directory = call.open(tmp_path, 0o40000)
    assert call.fails("openat", directory, call.path("sub/link"), 0o100000) == "ELOOP"
    count = call("getdents64", directory, BUFFER, 1000)
    entries, content = set[tuple[int, bytes, int]](), call.bytes(count)
    while content:
        inode, _, length, kind = struct.unpack_from("<QqHB", content)
        entries.add((inode, content[19:length].split(b"\0")[0], kind))
        content = content[length:]
    assert {(name, kind) for _, name, kind in entries} == {(b".", 4), (b"..", 4), (b"sub", 4)}
    assert ((tmp_path / "sub").stat().st_ino, b"sub", 4) in entries
    assert call("getdents64", directory, BUFFER, 1000) == 0
    assert call("readlinkat", directory, call.path("sub/link"), BUFFER, 100) == 6
    assert call.bytes(6) == b"target"
    assert call.fails("readlinkat", directory, call.path("sub"), BUFFER, 100) == "EINVAL"
    assert call.fails("getdents64", 0, BUFFER, 100) == "ENOTDIR"


def test_the_working_directory_is_the_programs_own(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").touch()
    before = Path.cwd()

    def working() -> str:
        return os.fsdecode(call.bytes(call("getcwd", BUFFER, 1000))[:-1])

    assert working() == str(before)
    assert call("chdir", call.path(tmp_path)) == 0
    assert working() == str(tmp_path)
    directory = call.open(Path("sub"), 0o40000)
    assert call("fchdir", directory) == 0
    assert working() == str(tmp_path / "sub")
    assert call.open(Path("file")) > directory
    assert call.fails("chdir", call.path("file")) == "ENOTDIR"
    assert call.fails("getcwd", BUFFER, 3) == "ERANGE"
    assert Path.cwd() == before
    call.kernel.close()


def test_proc_self_is_the_program(call: Caller, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_bytes(b"x")
    descriptor = call.open(tmp_path / "file")
    assert call("dup3", descriptor, 0, 0) == 0
    program = os.fsencode(Path("/bin/program").resolve())
    assert call("readlinkat", HERE, call.path("/proc/self/exe"), BUFFER, 100) == len(program)
    assert call.bytes(len(program)) == program
    for name in ("/dev/stdin", "/dev/fd/0", f"/proc/1000/fd/{descriptor}"):
        assert call("read", call.open(Path(name)), BUFFER, 9) == 1
    assert call.fails("openat", HERE, call.path("/dev/fd/77"), 0) == "ENOENT"
    assert capsys.readouterr().err == ""
    assert call.fails("openat", HERE, call.path("/proc/self/maps"), 0) == "ENOENT"
    assert "openat (system call 56) on /proc/self/maps is not emulated" in capsys.readouterr().err
    assert call("chdir", call.path("/proc")) == 0
    assert call.fails("newfstatat", HERE, call.path("self/../self/status"), BUFFER, 0) == "ENOENT"
    assert "newfstatat (system call 79) on /proc/self/../self/status is not emulated" in capsys.readouterr().err
    call.kernel.close()


# Time, and the process.


def test_a_sleep_takes_its_time_at_once(call: Caller) -> None:
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


def test_randomness_can_be_repeated(call: Caller) -> None:
    assert call("getrandom", BUFFER, 16) == 16
    assert call.bytes(16).hex() == "f5b165224a58b791df6af1d8303e61cd"


def test_facts_of_the_process(call: Caller) -> None:
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
    "SPURTLE_BUSYBOX" not in os.environ, reason="SPURTLE_BUSYBOX does not name an arm64 busybox-static"
)


def busybox(*arguments: str) -> int | None:
    """Run an applet and return its exit status."""
    program = Program(os.environ["SPURTLE_BUSYBOX"], arguments)
    for _ in program.run():
        pass
    return program.exit_status


@BUSYBOX
def test_a_shell_runs_its_script(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script"
    script.write_text('cd "$1"; pwd; echo * > /dev/stderr\nread line < file; echo "$line" $((6 * 7)); exit 5\n')
    (tmp_path / "file").write_text("content\n")
    assert busybox("ash", str(script), str(tmp_path)) == 5
    out, err = capfd.readouterr()
    assert out == f"{tmp_path}\ncontent 42\n"
    assert "to write a file is not emulated" in err


@BUSYBOX
def test_tar_makes_a_true_archive(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
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
    assert "spurtle: clone (system call 220) is not emulated: the program gets ENOSYS\n" in capfd.readouterr().err


@BUSYBOX
def test_a_shell_ignores_a_signal(capfd: pytest.CaptureFixture[str]) -> None:
    assert busybox("ash", "-c", "trap '' USR1; kill -USR1 $$; echo alive") == 0
    assert capfd.readouterr() == ("alive\n", "")
    assert busybox("ash", "-c", "kill -USR1 $$; echo alive") == 128 + SIGUSR1
    assert capfd.readouterr() == ("", "")
