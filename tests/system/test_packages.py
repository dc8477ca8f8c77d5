"""Contents of wheel and sdist, and each verb of an installation outside the repository."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from spurtle.config import CONFIGS
from spurtle.support.version import __version__
from tests.support.paths import ROOT, WORKLOADS
from tests.support.tiers import tiers

SORT = WORKLOADS / "sort.elf"
EXTRA = "install the extra `profile` (pip install 'spurtle[profile]')"
NEEDED = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "rtl", "sim", "tests")
"""Files and folders that setuptools reads."""


def run(*command: str | Path, folder: Path, status: int = 0) -> str:
    """Return the output of a command, which must exit with `status`. It cannot import modules of the repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def environment(python: str | Path, folder: Path) -> Path:
    """Return the folder of the commands of a new virtual environment."""
    run(python, "-m", "venv", folder / "venv", folder=folder)
    return folder / "venv" / "bin"


def install(bin_: Path, *packages: str | Path, folder: Path) -> None:
    run(bin_ / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages, folder=folder)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the sdist from a copy of the sources, and the wheel from the sdist."""
    folder = tmp_path_factory.mktemp("packages")
    source = folder / "source"
    source.mkdir()
    for name in NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(ROOT / name, source)
    bin_ = environment(sys.executable, folder)
    try:
        install(bin_, "build", folder=folder)
    except AssertionError as error:
        if re.search("No matching distribution|Connection|resolution", str(error)):
            pytest.skip("PyPI cannot be reached")
        raise
    run(bin_ / "python", "-m", "build", "--outdir", folder, source, folder=folder)
    return {"wheel": next(folder.glob("*.whl")), "sdist": next(folder.glob("*.tar.gz"))}


@pytest.fixture(scope="module")
def constraints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Constraints to the releases of this environment: another release of Yosys would be compiled for a minute."""
    path = tmp_path_factory.mktemp("constraints") / "constraints.txt"
    releases = run(sys.executable, "-m", "pip", "freeze", "--exclude-editable", folder=path.parent)
    path.write_text("".join(line + "\n" for line in releases.splitlines() if "==" in line))
    return path


@pytest.mark.long
def test_contents_of_the_packages(packages: dict[str, Path]) -> None:
    """Wheel and sdist have the files of the two packages, the sdist also the metadata, and nothing else."""
    files = [path.relative_to(ROOT) for top in ("rtl", "sim") for path in (ROOT / top).glob("spurtle*/**/*")]
    files = [path for path in files if path.suffix in (".py", ".json", ".cpp", ".h", ".toml", ".typed")]
    assert len(files) > 80
    with ZipFile(packages["wheel"]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == {str(path.relative_to(path.parts[0])) for path in files}
    with tarfile.open(packages["sdist"]) as sdist:
        names = {member.name.partition("/")[2] for member in sdist if member.isfile()}
    described = {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
    names = {name for name in names if ".egg-info/" not in name}
    assert names == described | {str(path) for path in files}


def check_verbs(spurtle: Path, folder: Path, *, extras: bool) -> None:
    """Run each verb in `folder`. Without the extras, those that need one name it."""
    assert run(spurtle, "--version", folder=folder) == f"spurtle {__version__}\n"
    assert all(name in run(spurtle, "configs", folder=folder) for name in CONFIGS)
    assert "PMSCR_EL1" in run(spurtle, "registers", "--config", "minimal", folder=folder)
    written = run(spurtle, "verilog", "--config", "minimal", "-o", "verilog", folder=folder)
    assert written.startswith("spurtle_minimal: ") and (folder / "verilog/minimal/spurtle_minimal.v").is_file()
    facts = {"pc": {"address": 4096, "el": 0, "ns": 1}, "operation": {"kind": "other"}, "events": [1]}
    (folder / "facts.jsonl").write_text(json.dumps(facts | {"issue": 1, "total": 2}))

    def encode(engine: str, status: int = 0) -> str:
        return run(
            spurtle, "encode", "--config", "minimal", "--engine", engine, "-o", f"{engine}.spe", "facts.jsonl",
            folder=folder, status=status,
        )  # fmt: skip

    encode("reference")
    assert "PC 0x1000 el0 ns=1" in run(spurtle, "decode", "reference.spe", folder=folder)
    profile = spurtle, "profile", "--config", "minimal", "--check", "-o", "perf.data", SORT
    if extras:
        encode("rtl")
        assert (folder / "rtl.spe").read_bytes() == (folder / "reference.spe").read_bytes()
        assert "each one checked: perf.data.spe" in run(*profile, folder=folder)
        assert "PC 0x" in run(spurtle, "decode", "perf.data", folder=folder)
        assert "Lines by cycles" in run(spurtle, "report", "perf.data", folder=folder)
    else:
        assert EXTRA in encode("rtl", status=2)
        assert EXTRA in run(*profile, folder=folder, status=125)
        assert "install the extra `report`" in run(spurtle, "report", "reference.spe", folder=folder, status=2)


@pytest.mark.parametrize("kind", tiers(long=["wheel", "sdist"]))
def test_an_installation(kind: str, packages: dict[str, Path], constraints: Path, tmp_path: Path) -> None:
    bin_ = environment(sys.executable, tmp_path)
    for extras in ("", "[profile]"):
        install(bin_, "--constraint", constraints, f"{packages[kind]}{extras}", folder=tmp_path)
        check_verbs(bin_ / "spurtle", tmp_path, extras=bool(extras))


def pythons(version: str) -> Iterator[Path]:
    """Yield each Python of a version on this machine: the one in PATH, and those of pyenv."""
    if found := shutil.which(f"python{version}"):
        yield Path(found)
    yield from Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}")


def works(python: Path) -> bool:
    """Return whether `python` runs. It may be a shim of pyenv for a version that is not installed."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("version", tiers(long=["3.11", "3.12", "3.13", "3.14"]))
def test_other_pythons(version: str, packages: dict[str, Path], constraints: Path, tmp_path: Path) -> None:
    python = next(filter(works, pythons(version)), None)
    if python is None:
        pytest.skip(f"Python {version} is not installed")
    bin_ = environment(python, tmp_path)
    install(bin_, "--constraint", constraints, f"{packages['wheel']}[profile]", folder=tmp_path)
    check_verbs(bin_ / "spurtle", tmp_path, extras=True)
