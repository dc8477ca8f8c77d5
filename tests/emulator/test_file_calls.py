"""Tests of system calls on descriptors, files and paths, whose results are those of Linux."""

import os
import stat
import struct
from pathlib import Path

import pytest

from tests.support.system_calls import AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW, BUFFER, PATH, Caller


@pytest.fixture
def call() -> Caller:
    return Caller()


# Descriptors.


def test_the_lowest_free_descriptor_is_assigned(call: Caller, tmp_path: Path) -> None:
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
    # The descriptors share one file offset.
    assert call("read", 3, BUFFER, 4) == 4
    assert call("read", 20, BUFFER, 2) == 2
    assert call.bytes(2) == b"45"
    assert call("lseek", 0, 0, 1) == 6
    assert call("close", 0) == 0
    assert call("dup", 3) == 0
    assert call("close", 1) == 0
    assert call.fails("write", 1, BUFFER, 1) == "EBADF"
    call.kernel.close()
    assert os.fstat(1)  # the standard streams of the host stay open


def test_the_number_of_descriptors_is_limited(call: Caller) -> None:
    assert call("prlimit64", 0, 7, 0, BUFFER) == 0
    limit, _ = call.get("2Q")
    assert [call("dup", 0) for _ in range(limit - 3)][-1] == limit - 1
    assert call.fails("dup", 0) == "EMFILE"
    call.kernel.close()


def test_status_flags_can_be_read_and_changed(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    descriptor = call.open(tmp_path / "file", 0o4000)
    assert call("fcntl", descriptor, 3) == 0o4000
    assert call("fcntl", descriptor, 4, 0o2000) == 0
    assert call("fcntl", descriptor, 3) == 0o2000
    writer = call.open(Path("/dev/null"), 1)
    assert call("fcntl", writer, 3) == 1


def test_poll_reports_the_state_of_a_pipe(call: Caller) -> None:
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


def test_a_poll_that_times_out_advances_the_clock(call: Caller) -> None:
    timeout = call.put("2q", 3, 5)
    assert call("ppoll", 0, 0, timeout, 0) == 0
    assert call.get("2q", timeout) == (0, 0)
    assert call("clock_gettime", 1, BUFFER) == 0
    assert call.get("2q") == (5, 12)


# Transfers.


def test_files_can_be_read(call: Caller, tmp_path: Path) -> None:
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


def test_writev_and_sendfile_write_to_standard_output(
    call: Caller, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
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
    assert call.fails("openat", AT_FDCWD, call.path(path), 0o101) == "EROFS"
    assert not path.exists()
    path.touch()
    for flags in (1, 2, 0o100, 0o1000):
        assert call.fails("openat", AT_FDCWD, call.path(path), flags) == "EROFS"
    assert call.fails("faccessat", AT_FDCWD, call.path(path), os.W_OK) == "EROFS"
    assert call.fails("faccessat", AT_FDCWD, call.path(path), os.X_OK) == "EACCES"
    assert call("faccessat", AT_FDCWD, call.path(path), os.R_OK) == 0
    assert call.fails("faccessat2", AT_FDCWD, call.path(tmp_path / "absent"), os.R_OK, AT_SYMLINK_NOFOLLOW) == "ENOENT"
    assert call("faccessat", AT_FDCWD, call.path("/dev/null"), os.W_OK) == 0
    null = call.open(Path("/dev/null"), 0o1101)
    assert call("write", null, BUFFER, 10) == 10


def test_stat_reports_the_status_of_the_host_file(call: Caller, tmp_path: Path) -> None:
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
        assert call("newfstatat", AT_FDCWD, call.path(tmp_path / name), BUFFER, 0) == 0
        assert call.get("2Q4IQ8xqi4xq6q") == expected
    for found in (
        call("fstat", descriptor, BUFFER),
        call("newfstatat", descriptor, call.path(""), BUFFER, AT_EMPTY_PATH),
    ):
        assert found == 0
        assert call.get("2Q4IQ8xqi4xq6q") == expected
    assert call("newfstatat", AT_FDCWD, call.path(tmp_path / "soft"), BUFFER, AT_SYMLINK_NOFOLLOW) == 0
    assert stat.S_ISLNK(call.get("16xI")[0])
    assert call("statx", AT_FDCWD, call.path(path), 0, 0xFFF, BUFFER) == 0
    mask, _, links, _, _, mode, inode, size = call.get("2I8x3IH2x2Q")
    assert (mask, links, mode, inode, size) == (0x7FF, 2, host.st_mode, host.st_ino, 5000)
    assert call.get("qI4x qI4x qI4x qI4x 4I", BUFFER + 64) == (
        *(1, 7, 0, 0, *divmod(host.st_ctime_ns, 10**9), 2, 9, 0, 0),
        *(os.major(host.st_dev), os.minor(host.st_dev)),
    )


def test_standard_streams_are_those_of_the_host(call: Caller) -> None:
    for descriptor in range(3):
        assert call("fstat", descriptor, BUFFER) == 0
        host = os.fstat(descriptor)
        assert call.get("2QI") == (host.st_dev, host.st_ino, host.st_mode)


def test_directories_can_be_read(call: Caller, tmp_path: Path) -> None:
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


def test_the_program_has_its_own_working_directory(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").touch()
    before = Path.cwd()

    def working_directory() -> str:
        return os.fsdecode(call.bytes(call("getcwd", BUFFER, 1000))[:-1])

    assert working_directory() == str(before)
    assert call("chdir", call.path(tmp_path)) == 0
    assert working_directory() == str(tmp_path)
    directory = call.open(Path("sub"), 0o40000)
    assert call("fchdir", directory) == 0
    assert working_directory() == str(tmp_path / "sub")
    assert call.open(Path("file")) > directory
    assert call.fails("chdir", call.path("file")) == "ENOTDIR"
    assert call.fails("getcwd", BUFFER, 3) == "ERANGE"
    assert Path.cwd() == before
    call.kernel.close()


def test_proc_self_refers_to_the_program(call: Caller, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_bytes(b"x")
    descriptor = call.open(tmp_path / "file")
    assert call("dup3", descriptor, 0, 0) == 0
    program = os.fsencode(Path("/bin/program").resolve())
    assert call("readlinkat", AT_FDCWD, call.path("/proc/self/exe"), BUFFER, 100) == len(program)
    assert call.bytes(len(program)) == program
    for name in ("/dev/stdin", "/dev/fd/0", f"/proc/1000/fd/{descriptor}"):
        assert call("read", call.open(Path(name)), BUFFER, 9) == 1
    assert call.fails("openat", AT_FDCWD, call.path("/dev/fd/77"), 0) == "ENOENT"
    assert capsys.readouterr().err == ""
    assert call.fails("openat", AT_FDCWD, call.path("/proc/self/maps"), 0) == "ENOENT"
    assert "openat (system call 56) on /proc/self/maps is not emulated" in capsys.readouterr().err
    assert call("chdir", call.path("/proc")) == 0
    assert call.fails("newfstatat", AT_FDCWD, call.path("self/../self/status"), BUFFER, 0) == "ENOENT"
    assert "newfstatat (system call 79) on /proc/self/../self/status is not emulated" in capsys.readouterr().err
    call.kernel.close()
