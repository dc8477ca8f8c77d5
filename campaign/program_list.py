"""List of programs that `spurtle profile` must run as QEMU does, in `programs.toml`: their input, and runs of them."""

import os
import random
import shlex
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["COMPILERS", "FOLDER", "Listed", "ProgramOutcome", "compile_source", "listed", "run_in", "write_input"]

FOLDER = Path(__file__).with_name("programs")
"""Sources of the programs that are compiled."""
COMPILERS = {"C": "aarch64-linux-gnu-gcc", "C++": "aarch64-linux-gnu-g++", "Go": "go"}
_LANGUAGES = {".c": "C", ".cpp": "C++", ".go": "Go"}
_TIMES = (1_700_000_000, 1_700_000_000)
"""Times of access and modification of each file of the input."""
_TIMEOUT = 900.0  # seconds


@dataclass(frozen=True)
class Listed:
    """A program of the list.

    Parameters
    ----------
    group : str
    file : str
        Path of the program in the sysroot, or source in `FOLDER` if it ends with the suffix of one.
    arguments : tuple of str
        Arguments of the program, or options of the compiler for a source.
    input : str
        File of standard input in the working directory. Empty if there is none.
    """

    group: str
    file: str
    arguments: tuple[str, ...]
    input: str = ""

    @property
    def language(self) -> str:
        """Language of the source. Empty for a program of a package."""
        return _LANGUAGES.get(Path(self.file).suffix, "")

    @property
    def name(self) -> str:
        """Command as in the list, with the name of the program."""
        return shlex.join([Path(self.file).name, *self.arguments, *(["<", self.input] if self.input else [])])


@dataclass(frozen=True)
class ProgramOutcome:
    """Outcome of a run of a program.

    Parameters
    ----------
    status : int
    out : bytes
        Standard output.
    err : bytes
        Standard error.
    files : dict of str to bytes
        Content of the files in the working directory at the end. The content of a symbolic link is its target.
    """

    status: int
    out: bytes
    err: bytes
    files: Mapping[str, bytes]


@cache
def listed() -> tuple[Listed, ...]:
    """Return the programs of `programs.toml`, in order."""
    groups = tomllib.loads(FOLDER.with_suffix(".toml").read_text())["groups"]
    return tuple(
        _parse(name, group.get("program", ""), command)
        for name, group in groups.items()
        for command in group["commands"]
    )


def _parse(group: str, program: str, command: str) -> Listed:
    words = shlex.split(command)
    words, file = (words[:-2], words[-1]) if words[-2:-1] == ["<"] else (words, "")
    return Listed(group, *((program, tuple(words)) if program else (words[0], tuple(words[1:]))), file)


def compile_source(program: Listed, folder: Path) -> Path:
    """Compile a source of the list. Return the executable, which is in `folder`."""
    source, output = FOLDER / program.file, folder / Path(program.file).stem
    if program.language == "Go":
        command = ["go", "build", *program.arguments, "-o", output, source]
    else:
        command = [COMPILERS[program.language], "-O2", "-pthread", *program.arguments, "-o", output, source]
    environment = {**os.environ, "GOARCH": "arm64", "CGO_ENABLED": "0"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return output


def write_input(folder: Path) -> None:
    """Write the input of the programs into the new folder `folder`. It is the same on every machine."""
    generator = random.Random(1)
    words = ["".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=generator.randint(2, 14))) for _ in range(150)]
    tree = folder / "tree"
    (tree / "inner" / "empty").mkdir(parents=True)
    files = {
        "words.txt": "".join(f"{word}\n" for word in words),
        "numbers.txt": "".join(f"{generator.randrange(100_000)}\n" for _ in range(60)),
        "table.csv": "".join(
            f"{word},{index * 7 % 31},{index * 0.37:.2f}\n" for index, word in enumerate(sorted(words))
        ),
        "sums.bc": "scale = 20\n1 / 7 + 22 / 3\nx = 1\nfor (i = 1; i < 20; i = i + 1) { x = x * i }\nx\n",
        "page.css": "".join(
            f".{word} {{\n  margin: 0px 0px;  /* {word} */\n  color: #ff0000;\n}}\n" for word in words[:20]
        ),
        "tree/short.txt": "short\n",
        "tree/long.txt": "long line\n" * 200,
        "tree/objects.json": "["
        + ", ".join(
            f'{{"name": "{word}", "values": [{index}, {index * index}]}}' for index, word in enumerate(words[:25])
        )
        + "]\n",
        "tree/inner/deep.txt": "".join(f"{word[::-1]}\n" for word in words[:40]),
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "data.bin").write_bytes(generator.randbytes(2000) + bytes(500) + b"abc" * 300)
    (tree / "link").symlink_to("short.txt")
    for path in (*sorted(folder.rglob("*"), reverse=True), folder):
        os.utime(path, _TIMES, follow_symlinks=False)
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)


def run_in(folder: Path, program: Listed, command: Sequence[str | Path]) -> ProgramOutcome:
    """Run a command for a program of the list. The working directory is a new folder with the input."""
    folder.mkdir()
    write_input(folder)
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    if "XDG_CACHE_HOME" in os.environ:  # the compiled libraries of Spurtle
        environment["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"]
    with (folder / program.input if program.input else Path(os.devnull)).open("rb") as file:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=file, capture_output=True, check=False, timeout=_TIMEOUT
        )
    return ProgramOutcome(done.returncode, done.stdout, done.stderr, _contents(folder))


def _contents(folder: Path) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            contents[name] = os.fsencode(path.readlink())
        else:
            contents[name] = path.read_bytes() if path.is_file() else b""
    return contents
