"""The commands of docs/howto/recipes.md with each version of perf: they print the output that the page shows."""

import re
import shutil
from pathlib import Path

import pytest

from tests.support.paths import ROOT, WORKLOADS
from tests.support.perf_versions import VERSIONS, Perf, require_perf
from tests.support.reader import Reader, ShownCommand, shown_commands
from tests.support.tiers import tiers

PAGE = ROOT / "docs" / "howto" / "recipes.md"

RECIPES = shown_commands(PAGE)
TOOLS = {
    "aarch64-linux-gnu-objdump": ("aarch64-linux-gnu-objdump",),
    "go tool pprof": ("go", "perf_to_profile"),
    "perf2bolt-22": ("perf2bolt-22",),
}
"""The programs that must be installed for the recipes whose commands contain the text."""


def _profiles(recipe: ShownCommand) -> bool:
    return recipe.command.startswith("spurtle profile")


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the workloads and their profiles, which do not depend on the version of perf."""
    folder = tmp_path_factory.mktemp("profiles")
    for name in ("sort", "chase"):
        shutil.copy(WORKLOADS / f"{name}.elf", folder)
    reader = Reader(folder)
    for recipe in filter(_profiles, RECIPES):
        reader.check(recipe)
    return folder


@pytest.fixture(scope="module")
def reader(perf: Perf, profiles: Path, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Return a reader in a copy of the folder `profiles`."""
    folder = tmp_path_factory.mktemp("recipes") / "folder"
    shutil.copytree(profiles, folder)
    return Reader(folder, perf.path)


def recipes_with(version: str, tool: str | None) -> list[ShownCommand]:
    """Return the recipes for a version of perf that need a tool, or with None those that need no tool."""
    return [
        recipe
        for recipe in RECIPES
        if not _profiles(recipe)
        and (not recipe.note or version in recipe.note.removeprefix("perf ").split(", "))
        and (tool in recipe.command if tool else not any(tool in recipe.command for tool in TOOLS))
    ]


CASES = [(version, tool) for version in VERSIONS for tool in (None, *TOOLS) if recipes_with(version, tool)]


@pytest.mark.parametrize(
    ("perf", "tool"),
    tiers(full=[(version, tool) for version, tool in CASES if tool is None or version == "newest"], long=CASES),
    indirect=["perf"],
)
def test_each_recipe_prints_the_shown_output(perf: Perf, reader: Reader, tool: str | None):
    for program in TOOLS[tool] if tool else ():
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: the recipes with {tool} do not run")
    for recipe in recipes_with(perf.version, tool):
        reader.check(recipe)


def test_each_tool_has_a_recipe():
    for tool in TOOLS:
        assert any(tool in recipe.command for recipe in RECIPES), tool


def test_perf_runs_in_recipes_and_tutorials_alone():
    """`perf record` is exempt: it needs an Arm machine."""
    for page in (ROOT / "docs").rglob("*.md"):
        commands = re.findall(r"^(?:    |\$ )perf (?!record).*", page.read_text(), re.MULTILINE)
        assert not commands or page == PAGE or page.parent.name == "tutorial", commands


def test_an_archive_has_the_executable(tmp_path: Path):
    """Use perf 6.1: the test's perf 6.12 is built without the script."""
    from spurtle_sim.emulator.program import Program
    from spurtle_sim.perf.events import process_events
    from spurtle_sim.perf.writer import Recording
    from spurtle_sim.profile import outputs
    from tests.support.elf import write_with_build_id
    from tests.support.perf_records import branch

    write_with_build_id(WORKLOADS / "sort.elf", tmp_path / "program", bytes(range(20)))
    process = Program(tmp_path / "program").process
    aux = outputs.aux_event(process.pid, branch(0x40_0300, 0x40_0310, 2, 5))
    outputs.write(tmp_path / "perf.data", Recording(argv=process.argv, events=process_events(process, [aux])))
    reader = Reader(tmp_path, require_perf("6.1").path)
    reader.run('perf --buildid-dir "$PWD/cache" buildid-cache --add program')
    reader.run('perf --buildid-dir "$PWD/cache" archive perf.data')
    assert f"{bytes(range(20)).hex()}/elf" in reader.run("tar --list --file perf.data.tar.bz2")
