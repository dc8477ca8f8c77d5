"""Proofs and cover checks of spec components by sby."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from amaranth.back import rtlil
from amaranth.lib import wiring

from .proof import Result, Verdict
from .signals import signal_names
from .tools import BUILD, SBY, SOLVER, YOSYS, ToolError, require, run

__all__ = ["check"]

SECONDS = 600
"""Time limit of one run, for a solver that hangs."""

_PURPOSE = {"prove": "assert", "cover": "cover"}


def check(
    spec: wiring.Component,
    name: str,
    *,
    mode: Literal["prove", "cover"],
    depth: int,
    probes: Mapping[str, str] | None = None,
) -> Verdict:
    """Prove every assertion of `spec` by k-induction, or reach every cover statement.

    Parameters
    ----------
    spec : wiring.Component
        The circuit under test and its properties. The input ports and `rst` are unconstrained in every cycle.
    name : str
        Folder under build/formal for the design, sby's log and its traces.
    depth : int
        k, or the number of cycles within which each cover statement must be reached.
    probes : mapping of str to str
        Input ports of `spec` that are connected to internal signals of submodules, named as in the flattened design.
        Components list them as `proof_signals`. The gateware therefore needs no port that only a proof reads.

    Raises
    ------
    ToolError
        If sby itself fails or exceeds the time limit.
    UnlistedSignal
        If a component does not list a signal of `probes`.
    ValueError
        If `spec` has no statement of the kind that the mode checks: an empty proof would pass.
    """
    design = rtlil.convert(spec, name="spec", platform="formal")
    peek = _peek(spec, probes or {})
    require(SBY, YOSYS, SOLVER)
    purpose = _PURPOSE[mode]
    if f'parameter \\FLAVOR "{purpose}"' not in design:
        raise ValueError(f"spec of {name} must have at least one {purpose}")

    folder = BUILD / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "spec.il").write_text(design)
    (folder / "spec.sby").write_text(
        f"[options]\nmode {mode}\ndepth {depth}\n[engines]\nsmtbmc {SOLVER}\n[script]\nread_rtlil spec.il\n"
        f"hierarchy -top spec\nproc\nflatten\ncd spec\n{peek}cd ..\nprep -top spec\n[files]\nspec.il\n"
    )
    # Exit statuses 0, 1, 2, 4 and 8 report the result of a proof; 16 and above mean that sby itself failed.
    log = run(
        [SBY, "--yosys", YOSYS, "--smtbmc", f"{YOSYS}-smtbmc", "--witness", f"{YOSYS}-witness", "-f", "spec.sby"],
        folder=folder,
        seconds=SECONDS,
        allowed=(0, 1, 2, 4, 8),
    )
    status = re.search(r"DONE \((\w+), rc=\d+\)", log)
    if status is None:
        raise ToolError(f"{SBY} printed no status: see {folder / 'spec' / 'logfile.txt'}")
    result = Result(status[1]) if status[1] in Result.__members__ else Result.ERROR
    return Verdict(result, depth, "" if result is Result.PASS else _evidence(log, folder))


def _peek(spec: wiring.Component, probes: Mapping[str, str]) -> str:
    """Return the Yosys commands that connect input ports of the spec to internal signals."""
    names = signal_names(spec, platform="formal")
    for signal in probes.values():
        names.check(signal)
    return "".join(f"delete -input spec/w:{port}\nconnect -set {port} {signal}\n" for port, signal in probes.items())


def _evidence(log: str, folder: Path) -> str:
    """Return the lines of the log that locate each failure in the spec, and the folder of the traces."""
    failures = [
        line.split("] ", 1)[-1]
        for line in log.splitlines()
        if re.search(r"Assert failed|Unreached cover|counterexample trace|Temporal induction failed", line)
    ]
    return "\n".join(f"  {line}" for line in [*dict.fromkeys(failures), f"log and traces: {folder / 'spec'}"])
