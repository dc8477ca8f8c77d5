"""Spec components proved, or covered, by sby."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from amaranth.back import rtlil
from amaranth.lib import wiring

from .proof import Result, Verdict
from .tools import BUILD, SBY, SOLVER, YOSYS, ToolError, require, run

__all__ = ["check"]

SECONDS = 600
"""What one run may take; a solver that hangs ends here."""

_PURPOSE = {"prove": "assert", "cover": "cover"}


def check(
    spec: wiring.Component,
    name: str,
    *,
    mode: Literal["prove", "cover"],
    depth: int,
    inside: Mapping[str, str] | None = None,
) -> Verdict:
    """Prove every assertion of `spec` by k-induction, or reach every one of its covers.

    Parameters
    ----------
    spec : wiring.Component
        The circuit under test and the properties around it. Its ports are free in every cycle, and so is `rst`.
    name : str
        Folder under build/formal that keeps the design, sby's log and its traces.
    depth : int
        k, or the cycles within which a cover must be met.
    inside : mapping of str to str
        Input ports of `spec` that are not free but show a signal inside a submodule, named as in the flat design: the
        gateware needs no port that only a proof reads.

    Raises
    ------
    ToolError
        If sby itself fails, or is not done in time.
    ValueError
        If `spec` has nothing of the kind that the mode is about: an empty proof would pass.
    """
    design = rtlil.convert(spec, name="spec", platform="formal")
    require(SBY, YOSYS, SOLVER)
    purpose = _PURPOSE[mode]
    if f'parameter \\FLAVOR "{purpose}"' not in design:
        raise ValueError(f"spec of {name} must have at least one {purpose}")

    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "spec.il").write_text(design)
    peek = "".join(
        f"delete -input spec/w:{port}\nconnect -set {port} {signal}\n" for port, signal in (inside or {}).items()
    )
    (folder / "spec.sby").write_text(
        f"[options]\nmode {mode}\ndepth {depth}\n[engines]\nsmtbmc {SOLVER}\n[script]\nread_rtlil spec.il\n"
        f"hierarchy -top spec\nproc\nflatten\ncd spec\n{peek}cd ..\nprep -top spec\n[files]\nspec.il\n"
    )
    # Statuses 1, 2, 4 and 8 tell what came of the proof; 16 and above that there was none.
    log = run(
        [SBY, "--yosys", YOSYS, "--smtbmc", f"{YOSYS}-smtbmc", "--witness", f"{YOSYS}-witness", "-f", "spec.sby"],
        folder=folder,
        seconds=SECONDS,
        allowed=(0, 1, 2, 4, 8),
    )
    status = re.search(r"DONE \((\w+), rc=\d+\)", log)
    if status is None:
        raise ToolError(f"{SBY} did not say how it ended: see {folder / 'spec' / 'logfile.txt'}")
    result = Result(status[1]) if status[1] in Result.__members__ else Result.ERROR
    return Verdict(result, depth, "" if result is Result.PASS else _evidence(log, folder))


def _evidence(log: str, folder: Path) -> str:
    """What failed, by its place in the spec, and where the traces are."""
    told = [
        line.split("] ", 1)[-1]
        for line in log.splitlines()
        if re.search(r"Assert failed|Unreached cover|counterexample trace|Temporal induction failed", line)
    ]
    return "\n".join(f"  {line}" for line in [*dict.fromkeys(told), f"log and traces: {folder / 'spec'}"])
