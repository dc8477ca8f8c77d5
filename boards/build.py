"""Build of a bitstream with Yosys, nextpnr and the packer, which PyPI provides as WebAssembly programs."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from spurtle.support.errors import UserError
from spurtle.support.files import check_files, write_folder

from .board import Board
from .top import Top

__all__ = ["BuildError", "BuildResult", "bitstream_path", "build", "plan", "read_report", "write_plan"]

_REPORT = "report.json"
"""Name of nextpnr's report in the folder of the build."""

_SUFFIX_TOOL = "dfu-suffix"
"""Tool that appends the USB IDs of the OrangeCrab to its bitstream.

It is not on PyPI, and it is not run: the bitstream loads without the IDs.
"""


class BuildError(Exception):
    """Failure of a tool. The message is a sentence that names the tool and its log."""


@dataclass(frozen=True)
class BuildResult:
    """A bitstream with nextpnr's figures.

    Parameters
    ----------
    bitstream : Path
    lut4, ff : int
        LUTs and flip-flops. On an iCE40, carry cells without a LUT are not counted.
    cells, cells_available : int
        Used and available logic cells: on an iCE40 one LUT and one flip-flop each, on an ECP5 LUTs.
    block_rams, block_rams_available : int
        Used and available block RAMs.
    fmax_mhz, clock_mhz : float
        Maximum and required frequency of the clock with the smallest margin.
    """

    bitstream: Path
    lut4: int
    ff: int
    cells: int
    cells_available: int
    block_rams: int
    block_rams_available: int
    fmax_mhz: float
    clock_mhz: float


def plan(board: Board) -> Any:
    """Return Amaranth's build plan: all input files of the tools, and the commands. Only Vivado's plan runs Yosys."""
    platform = board.make_platform()
    if board.vendor_tool is not None:
        # Vivado reads Verilog, which Amaranth generates with Yosys.
        os.environ.setdefault("YOSYS", _program("yosys"))
    return platform.build(Top(board), name=_name(board), do_build=False, nextpnr_opts=["--report", _REPORT])


def write_plan(board: Board, output: Path) -> Path:
    """Write the input files of a vendor tool to the folder `output`/NAME, and return the script that runs the tool.

    Raises
    ------
    UserError
        If Yosys is not installed, or the folder cannot be written.
    """
    planned = plan(board)
    return _extract(planned, board, output) / f"{planned.script}.sh"


def bitstream_path(board: Board, output: Path) -> Path:
    """Return the path to which the bitstream is written."""
    return output / board.name / f"{_name(board)}{board.suffix}"


def build(board: Board, output: Path, note: Callable[[str], None]) -> BuildResult:
    """Build the bitstream in the folder `output`/NAME.

    Parameters
    ----------
    board : Board
    output : Path
    note : function
        Receives a description of each step before the step runs.

    Raises
    ------
    UserError
        If a tool is not installed, or the folder cannot be written.
    BuildError
        If a tool fails; nextpnr fails also if the design does not meet timing. No bitstream remains then.
    """
    note("elaborating")
    planned = plan(board)
    commands = [command for command in _commands(planned) if command[0] != _SUFFIX_TOOL]
    programs = [_program(tool) for tool, *_ in commands]
    folder = _extract(planned, board, output)
    bitstream = bitstream_path(board, output)
    for number, (program, command) in enumerate(zip(programs, commands, strict=True), 1):
        note(f"[{number}/{len(commands)}] {command[0]}")
        try:
            _run(board, program, command, folder)
        except BuildError:
            bitstream.resolve().unlink(missing_ok=True)
            raise
    report = json.loads((folder / _REPORT).read_text())
    return read_report(bitstream, report, (folder / f"{_name(board)}.tim").read_text())


def read_report(bitstream: Path, report: Mapping[str, Any], log: str) -> BuildResult:
    """Return the figures of nextpnr's report; for an iCE40, the log says how many cells have a LUT or a flip-flop."""
    used = report["utilization"]
    if "TRELLIS_COMB" in used:
        cells = used["TRELLIS_COMB"]
        lut4, ff = cells["used"], used["TRELLIS_FF"]["used"]
        rams = used["DP16KD"]
    else:
        cells = used["ICESTORM_LC"]
        lut_only, both, ff_only = (
            sum(int(count) for count in re.findall(rf"(\d+) LCs used as {kind}", log))
            for kind in ("LUT4 only", "LUT4 and DFF", "DFF only")
        )
        lut4, ff = lut_only + both, both + ff_only
        rams = used["ICESTORM_RAM"]
    slowest = min(report["fmax"].values(), key=lambda clock: clock["achieved"] / clock["constraint"])
    return BuildResult(
        bitstream=bitstream,
        lut4=lut4,
        ff=ff,
        cells=cells["used"],
        cells_available=cells["available"],
        block_rams=rams["used"],
        block_rams_available=rams["available"],
        fmax_mhz=slowest["achieved"],
        clock_mhz=slowest["constraint"],
    )


def _extract(planned: Any, board: Board, output: Path) -> Path:
    """Write the files of the plan to the folder of the board, delete an earlier bitstream, and return the folder."""
    folder = output / board.name
    bitstream = bitstream_path(board, output)
    write_folder(folder, planned.files)
    check_files([bitstream])
    try:
        bitstream.resolve().unlink(missing_ok=True)  # deletes the target of a link, and keeps the link
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}") from error
    return folder


def _commands(planned: Any) -> list[list[str]]:
    return json.loads(planned.files[f"{planned.script}.json"])["commands"]


def _name(board: Board) -> str:
    return f"spurtle_{board.name}"


def _program(tool: str) -> str:
    """Return the path of a tool: in the environment of this Python, or else in PATH."""
    name = f"yowasp-{tool}"
    beside = Path(sys.executable).with_name(name)
    program = str(beside) if beside.exists() else shutil.which(name)
    if program is None:
        raise UserError(f"{name} is not installed: run `pip install -e .[boards]`")
    return program


def _run(board: Board, program: str, command: list[str], folder: Path) -> None:
    tool, *arguments = command
    done = subprocess.run(
        [program, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode == 0:
        return
    own_log = (value for option, value in pairwise(command) if option in ("-l", "--log"))
    log = folder / next(own_log, f"{tool}.log")
    with log.open("ab") as file:
        file.write(done.stdout)
    raise BuildError(f"{tool} failed on {board.name}; see {log}")
