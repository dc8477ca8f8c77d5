"""The commands of docs/howto/recipes.md with each version of perf: they print the output that the page shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.paths import ROOT, WORKLOADS
from tests.support.perf_versions import VERSIONS, Perf, require_perf

PAGE = ROOT / "docs" / "howto" / "recipes.md"

pytestmark = pytest.mark.full


class Recipe(NamedTuple):
    """A command, the versions of perf that it is for, and lines of its output."""

    command: str
    versions: str
    shown: list[str]


def recipes() -> list[Recipe]:
    found: list[Recipe] = []
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *shown = part.splitlines()
            command, _, versions = line.partition(" # perf ")
            found.append(Recipe(command, versions, [each for each in shown if each != "..."]))
    return found


RECIPES = recipes()
TOOLS = {
    "aarch64-linux-gnu-objdump": ("aarch64-linux-gnu-objdump",),
    "go tool pprof": ("go", "perf_to_profile"),
    "perf2bolt-22": ("perf2bolt-22",),
}
"""The programs that must be installed for the recipes whose commands contain the text."""


@pytest.fixture(scope="module")
def kitchen(perf: Perf, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the workloads and their profiles, and with perf and spurtle in `bin`."""
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "bin").mkdir()
    (folder / "bin" / "perf").symlink_to(perf.path)
    (folder / "bin" / "spurtle").symlink_to(Path(sys.executable).with_name("spurtle"))
    for name in ("sort", "chase"):
        shutil.copy(WORKLOADS / f"{name}.elf", folder)
    for recipe in RECIPES:
        if recipe.command.startswith("spurtle profile"):
            show(folder, recipe)
    return folder


def cooked(folder: Path, command: str) -> str:
    """Return the output of a command; its exit status must be zero."""
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PAGER": "cat"}
    run = subprocess.run(
        ["bash", "-c", command],
        cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600, env=environment, check=False,
    )  # fmt: skip
    assert run.returncode == 0, f"{command}: {run.stderr}"
    return run.stdout + run.stderr


def plain(line: str) -> str:
    """Return the words of a line. perf 6.1 writes a memory level twice."""
    return re.sub(r"(\bL\d|\bN/A) or (?=\1)", "", " ".join(line.split()))


def show(folder: Path, recipe: Recipe) -> None:
    """Run a recipe. Its output must contain each line that the page shows."""
    output = "\n".join(map(plain, cooked(folder, recipe.command).splitlines()))
    for line in recipe.shown:
        start = plain(line.removesuffix("..."))
        assert re.search(f"^{re.escape(start)}{'' if line.endswith('...') else '$'}", output, re.MULTILINE), recipe


def recipes_with(version: str, tool: str | None) -> list[Recipe]:
    """Return the recipes for a version of perf that need a tool, or with None those that need no tool."""
    return [
        recipe
        for recipe in RECIPES
        if (not recipe.versions or version in recipe.versions.split(", "))
        and (tool in recipe.command if tool else not any(tool in recipe.command for tool in TOOLS))
    ]


@pytest.mark.parametrize(
    ("perf", "tool"),
    [(version, tool) for version in VERSIONS for tool in (None, *TOOLS) if recipes_with(version, tool)],
    indirect=["perf"],
)
def test_each_recipe_prints_the_shown_output(perf: Perf, kitchen: Path, tool: str | None):
    for program in TOOLS[tool] if tool else ():
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: the recipes with {tool} do not run")
    for recipe in recipes_with(perf.version, tool):
        show(kitchen, recipe)


def test_each_tool_has_a_recipe():
    for tool in TOOLS:
        assert any(tool in recipe.command for recipe in RECIPES), tool


def test_no_other_page_runs_perf():
    """`perf record` is exempt: it needs an Arm machine."""
    for page in (ROOT / "docs").rglob("*.md"):
        commands = re.findall(r"^(?:    |\$ )perf (?!record).*", page.read_text(), re.MULTILINE)
        assert not commands or page == PAGE, commands


def test_an_archive_has_the_executable(tmp_path: Path):
    """Use perf 6.1: the test's perf 6.12 is built without the script."""
    from spurtle_sim.emulator.program import Program
    from spurtle_sim.perf.events import process_events
    from spurtle_sim.perf.writer import Recording
    from spurtle_sim.profile import outputs
    from spurtle_sim.profile.run import process_of
    from tests.support.elf import write_with_build_id
    from tests.support.perf_records import branch

    write_with_build_id(WORKLOADS / "sort.elf", tmp_path / "program", bytes(range(20)))
    process = process_of(Program(tmp_path / "program"))
    aux = outputs.aux_event(process.pid, branch(0x40_0300, 0x40_0310, 2, 5))
    outputs.write(tmp_path / "perf.data", Recording(argv=process.argv, events=process_events(process, [aux])))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "perf").symlink_to(require_perf("6.1").path)
    cooked(tmp_path, 'perf --buildid-dir "$PWD/cache" buildid-cache --add program')
    cooked(tmp_path, 'perf --buildid-dir "$PWD/cache" archive perf.data')
    assert f"{bytes(range(20)).hex()}/elf" in cooked(tmp_path, "tar --list --file perf.data.tar.bz2")
