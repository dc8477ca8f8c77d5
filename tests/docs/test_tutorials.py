"""README and the tutorials: their commands run, and print what the pages show of it."""

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from amaranth.back import rtlil

from spurtle.config import CONFIGS
from tests.support.golden_ports import golden_file
from tests.support.paths import ROOT
from tests.support.perf_versions import VERSIONS, Perf
from tests.support.reader import Reader, ShownCommand, code_blocks, reader_in_checkout, shown_commands
from tests.support.tiers import tiers

README = ROOT / "README.md"
PROFILE, INTEGRATE, BOARD = (ROOT / "docs" / "tutorial" / f"{name}.md" for name in ("profile", "integrate", "board"))
REPORT = ROOT / "docs" / "howto" / "report.md"

COMPILER = "aarch64-linux-gnu-gcc"


def requires(shown: ShownCommand) -> set[str]:
    """Return the tools that a command requires, and that are optional or slow."""
    tools: set[str] = set()
    if shown.command.startswith("perf "):
        tools.add("perf")
    if re.search(r"columns|misses|aarch64", shown.command):
        tools.add(COMPILER)
    if shown.command.startswith("make -C examples"):
        tools.add("iverilog")
    elif shown.command.startswith("make "):
        tools.add("make")
    if shown.command.startswith("python -m boards hx8k"):
        tools.add("nextpnr")
    return tools


def run_page(page: Path, folder: Path, tools: set[str], perf: Perf | None = None, compiler: str = "") -> None:
    """Run the commands of a page that require these tools at most."""
    with reader_in_checkout(folder, perf and perf.path) as reader:
        reader.save_programs(page)
        for shown in shown_commands(page):
            if requires(shown) <= tools:
                compare = not shown.note or shown.note == compiler
                reader.check(shown, compare=compare)


@pytest.mark.parametrize("page", [README, PROFILE], ids=lambda page: page.stem)
def test_commands_without_optional_tools(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path, set())


@pytest.mark.full
def test_reports(tmp_path: Path) -> None:
    run_page(REPORT, tmp_path, set())


@pytest.mark.full
def test_integration(tmp_path: Path) -> None:
    if shutil.which("iverilog") is None:
        pytest.skip("Icarus Verilog (iverilog) is not installed")
    run_page(INTEGRATE, tmp_path, {"iverilog"})


@pytest.mark.full
def test_profile_with_perf(perf: Perf, tmp_path: Path) -> None:
    run_page(PROFILE, tmp_path, {"perf"}, perf)


@pytest.mark.parametrize("perf", tiers(full=["newest"], long=VERSIONS), indirect=True)
def test_profile_of_a_compiled_program(perf: Perf, tmp_path: Path) -> None:
    if shutil.which(COMPILER) is None:
        pytest.skip(f"{COMPILER} is not installed")
    with reader_in_checkout(tmp_path) as reader:
        [release] = re.findall(r"^gcc version (\d+\.\d+)", reader.run(f"{COMPILER} -v"), re.MULTILINE)
    (tmp_path / "page").mkdir()
    run_page(PROFILE, tmp_path / "page", {"perf", COMPILER}, perf, f"gcc {release}")


@pytest.fixture(scope="module")
def board_profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the commands of the tutorial that need no perf, and return the folder with their outputs."""
    folder = tmp_path_factory.mktemp("board")
    run_page(BOARD, folder, set())
    return folder


@pytest.mark.full
def test_board(board_profiles: Path) -> None:
    assert {path.name for path in board_profiles.glob("*.data")} == {"board.data", "loads.data", "riscv.data"}


@pytest.mark.full
def test_board_with_perf(perf: Perf, board_profiles: Path, tmp_path: Path) -> None:
    for path in board_profiles.glob("*.data"):
        (tmp_path / path.name).symlink_to(path)
    reader = Reader(tmp_path, perf.path)
    for shown in shown_commands(BOARD):
        if requires(shown) == {"perf"}:
            reader.check(shown)


@pytest.mark.long
def test_bitstream(tmp_path: Path) -> None:
    """Run one command: placement takes minutes."""
    [shown] = [each for each in shown_commands(BOARD) if "nextpnr" in requires(each)]
    with reader_in_checkout(tmp_path) as reader:
        reader.check(shown)


def test_make_verilog_shows_the_ports_of_each_configuration() -> None:
    [shown] = [each for each in shown_commands(README) if each.command == "make verilog"]
    ports = {name: len(golden_file(name).read_text().splitlines()) for name in CONFIGS}
    assert shown.lines == [f"spurtle_{name}: {count} ports, ..." for name, count in ports.items()]


def test_the_component_of_the_readme_elaborates() -> None:
    [block] = code_blocks(README, "python")
    names: dict[str, Any] = {}
    exec(block, names)
    assert "module \\top" in rtlil.convert(names["m"], ports=[names["dispatched"]])


@pytest.mark.parametrize("page", [README, PROFILE, INTEGRATE, BOARD], ids=lambda page: page.stem)
def test_installation_names_extras_and_the_lock(page: Path) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [install] = re.findall(r"^pip install --constraint (\S+) '\.\[(\w+)\]'$", page.read_text(), re.MULTILINE)
    assert (ROOT / install[0]).is_file() and install[1] in extras


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.stem)
def test_links_name_files(page: Path) -> None:
    """Check the pages that are not part of the site."""
    links = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
