"""From a board to its bitstream: Yosys, nextpnr and the packer, as the WebAssembly programs that PyPI has."""

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

__all__ = ["BuildError", "Built", "bitstream_of", "build", "measure", "plan", "write_plan"]

_REPORT = "report.json"
"""nextpnr's, in the folder of the build."""

_SUFFIX_TOOL = "dfu-suffix"
"""Adds the USB numbers of the OrangeCrab to its bitstream, which loads without them. PyPI does not have it."""


class BuildError(Exception):
    """A tool failed: a sentence that names it and its log."""


@dataclass(frozen=True)
class Built:
    """A bitstream and what nextpnr says of it.

    Parameters
    ----------
    bitstream : Path
    lut4, ff : int
        LUTs and flip-flops. Of an iCE40, carries without a LUT are not counted.
    cells, cells_available : int
        iCE40 logic cells, which hold one of each; ECP5 LUTs.
    block_rams, block_rams_available : int
    fmax_mhz, clock_mhz : float
        What the clock could be, and what it is.
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
    """Amaranth's build plan for `board`: every file that the tools need, and their commands. No tool runs."""
    platform = board.make_platform()
    if board.vendor_tool is not None:
        # Amaranth itself runs it: Vivado reads Verilog.
        os.environ.setdefault("YOSYS", _program("yosys"))
    return platform.build(Top(board), name=_name(board), do_build=False, nextpnr_opts=["--report", _REPORT])


def write_plan(board: Board, output: Path) -> Path:
    """The files for a tool that PyPI does not have, in a folder of the board's name: the script that runs it.

    Raises UserError if Yosys is not installed, or the folder cannot be written.
    """
    planned = plan(board)
    return _extract(planned, board, output) / f"{planned.script}.sh"


def bitstream_of(board: Board, output: Path) -> Path:
    """Where it will be."""
    return output / board.name / f"{_name(board)}{board.suffix}"


def build(board: Board, output: Path, note: Callable[[str], None]) -> Built:
    """Builds in a folder of the board's name in `output`. `note` is told what is being done.

    Raises
    ------
    UserError
        If a tool is not installed, or the folder cannot be written.
    BuildError
        If a tool fails; nextpnr does, too, when the clock is too fast. Then there is no bitstream.
    """
    note("elaborating")
    planned = plan(board)
    commands = [command for command in _commands(planned) if command[0] != _SUFFIX_TOOL]
    programs = [_program(tool) for tool, *_ in commands]
    folder = _extract(planned, board, output)
    bitstream = bitstream_of(board, output)
    for number, (program, command) in enumerate(zip(programs, commands, strict=True), 1):
        note(f"[{number}/{len(commands)}] {command[0]}")
        try:
            _run(board, program, command, folder)
        except BuildError:
            bitstream.resolve().unlink(missing_ok=True)
            raise
    report = json.loads((folder / _REPORT).read_text())
    return measure(bitstream, report, (folder / f"{_name(board)}.tim").read_text())


def measure(bitstream: Path, report: Mapping[str, Any], log: str) -> Built:
    """Reads nextpnr's report, and its log for what the report does not tell apart."""
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
    return Built(
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
    """The folder, with the files of the plan and without a bitstream of an earlier one."""
    folder = output / board.name
    bitstream = bitstream_of(board, output)
    write_folder(folder, planned.files)
    check_files([bitstream])
    try:
        bitstream.resolve().unlink(missing_ok=True)  # a link stays
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror}") from error
    return folder


def _commands(planned: Any) -> list[list[str]]:
    return json.loads(planned.files[f"{planned.script}.json"])["commands"]


def _name(board: Board) -> str:
    return f"spurtle_{board.name}"


def _program(tool: str) -> str:
    """The program of this Python's environment."""
    name = f"yowasp-{tool}"
    beside = Path(sys.executable).with_name(name)
    program = str(beside) if beside.exists() else shutil.which(name)
    if program is None:
        raise UserError(f"{name} is not installed: `pip install -e .[boards]` brings it")
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
