"""Test output files: they are replaced atomically, links are preserved, special files and inputs are not replaced."""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spurtle.support.errors import UserError
from spurtle.support.files import check_files, check_folder, check_stream, write_files, write_folder, write_stream
from spurtle_sim import cli
from tests.support.elf import EXIT, write_elf

RECORD = '{"events": [], "timestamp": 5}\n'
ENCODE = ("encode", "--config", "minimal", "--engine", "reference")


def fifo(folder: Path) -> Path:
    path = folder / "fifo"
    os.mkfifo(path)
    return path


def device(folder: Path) -> Path:
    """Return a new character device, a null device."""
    path = folder / "device"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root may make a device")
    return path


def names_in(folder: Path) -> set[str]:
    """Return the names of the files in a folder."""
    return {path.name for path in folder.iterdir()}


def test_a_link_is_preserved_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "target", tmp_path / "link"
    link.symlink_to(target)
    for content in b"first", b"second":  # the first time the target does not exist
        check_files([link])
        before = target.stat().st_ino if target.exists() else None
        write_files({link: content})
        assert link.is_symlink() and link.readlink() == target
        assert target.read_bytes() == content
        assert target.stat().st_ino != before, "the file must be replaced, not overwritten"
    assert names_in(tmp_path) == {"elsewhere", "link"} and names_in(target.parent) == {"target"}


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "private"
    path.write_bytes(b"")
    path.chmod(0o600)
    write_files({path: b"content"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    new = tmp_path / "new"
    umask = os.umask(0o027)
    try:
        write_files({new: b"content"})
    finally:
        os.umask(umask)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


@pytest.mark.parametrize("make", [fifo, device])
def test_a_special_file_is_not_replaced(make: Callable[[Path], Path], tmp_path: Path) -> None:
    special = make(tmp_path)
    kind = special.stat().st_mode
    link = tmp_path / "link"
    link.symlink_to(special)
    for name in special, link:
        for write in (
            lambda name=name: check_files([tmp_path / "regular", name]),
            lambda name=name: write_files({tmp_path / "regular": b"", name: b""}),
            lambda name=name: write_folder(tmp_path, {"regular": "", name.name: ""}),
        ):
            with pytest.raises(UserError) as rejected:
                write()
            assert str(rejected.value) == f"cannot write {name}: it must be a regular file, not a special one"
    assert special.stat().st_mode == kind
    assert names_in(tmp_path) == {special.name, "link"}


@pytest.mark.parametrize("check", [check_folder, check_stream, lambda name: check_files([name])])
def test_an_empty_name_is_not_the_current_folder(check: Callable[[str], None]) -> None:
    with pytest.raises(UserError, match="the name of an output must not be empty"):
        check("")


def test_a_device_takes_a_stream(tmp_path: Path) -> None:
    special = device(tmp_path)
    check_stream(special)
    write_stream(special, b"content")
    assert stat.S_ISCHR(special.stat().st_mode)


def test_a_fifo_takes_the_records_of_encode(tmp_path: Path) -> None:
    path = fifo(tmp_path)
    source = tmp_path / "in.jsonl"
    source.write_text(RECORD)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    reader.start()
    assert cli.main([*ENCODE, str(source), "-o", str(path)]) == 0
    reader.join(20)
    assert [len(content) for content in found] == [64]
    assert stat.S_ISFIFO(path.stat().st_mode)


def run(*arguments: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the command `spurtle`."""
    command = [str(Path(sys.executable).with_name("spurtle")), *arguments]
    return subprocess.run(command, check=False, timeout=120, stderr=subprocess.PIPE, **streams)


def test_standard_output_as_a_file(tmp_path: Path) -> None:
    arguments = (*ENCODE, "-o", "/dev/stdout")
    piped = run(*arguments, input=RECORD.encode(), stdout=subprocess.PIPE)
    assert (piped.returncode, len(piped.stdout)) == (0, 64)
    path = tmp_path / "out"
    with path.open("wb") as out:
        out.write(b"before")
        out.flush()
        assert run(*arguments, input=RECORD.encode(), stdout=out).returncode == 0
        out.write(b"after")
    assert path.read_bytes() == b"before" + piped.stdout + b"after"


def test_an_output_that_is_an_input_is_rejected(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text(RECORD)
    names = [source, tmp_path / "link", tmp_path / "hard"]
    names[1].symlink_to(source)
    names[2].hardlink_to(source)
    for name in names:
        with pytest.raises(UserError, match=f"^cannot write {name}: it is the same file as the input {source}$"):
            check_files([name], [source])
    assert source.read_text() == RECORD
    check_stream(os.devnull, [os.devnull])  # a device may be both


def test_a_file_that_is_written_twice_is_rejected(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    other.symlink_to(one)
    for write in (lambda: check_files([one, other]), lambda: write_files({one: b"", other: b""})):
        with pytest.raises(UserError) as rejected:
            write()
        assert str(rejected.value) == f"cannot write {other}: it is the same file as {one}, which is written as well"
    assert names_in(tmp_path) == {"other"}


def test_all_files_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "absent" / "second"
    first.write_bytes(b"before")
    with pytest.raises(UserError, match=f"^cannot write {second}: No such file or directory$"):
        write_files({first: b"after", second: b""})
    assert first.read_bytes() == b"before" and names_in(tmp_path) == {"first"}


def test_invalid_names(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    file = tmp_path / "file"
    file.touch()
    for name, reason in (
        (loop, "Too many levels of symbolic links"),
        (file / "x", "Not a directory"),
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path, "it is a directory"),
        ("nul\0", "embedded null byte"),
    ):
        with pytest.raises(UserError, match=f"^cannot write .*: {reason}$"):
            check_files([name])
    for name in loop, file, fifo(tmp_path):
        with pytest.raises(UserError, match=r" is not a directory$"):
            check_folder(name)


@pytest.mark.parametrize("content", [None, RECORD])
def test_encode_rejects_its_input_as_output(content: str | None, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(RECORD)
    with source.open("rb") as standard_input:
        named = () if content is None else (str(source),)
        done = run(*ENCODE, *named, "-o", str(source), stdin=standard_input)
    same = "standard input" if content is None else f"the input {source}"
    assert done.returncode == 2
    assert done.stderr.decode() == f"spurtle: cannot write {source}: it is the same file as {same}\n"
    assert source.read_text() == RECORD


def test_an_output_that_is_standard_output_is_rejected(tmp_path: Path) -> None:
    """Other writers of standard output would otherwise write to a deleted file."""
    path = tmp_path / "out"
    with path.open("wb") as out:
        done = run("profile", "-o", str(path), str(write_elf(tmp_path / "program", EXIT)), stdout=out)
    assert done.returncode == 125
    assert done.stderr.decode() == f"spurtle: cannot write {path}: it is open as standard output\n"
