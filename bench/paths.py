"""The critical path in nextpnr's report."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CriticalPath", "critical_path"]


@dataclass(frozen=True)
class CriticalPath:
    """The slowest register-to-register path of one placement.

    Parameters
    ----------
    fmax_mhz : float
    source, sink : str
        Registers, without their bit.
    levels : int
        LUTs in a row; a carry chain counts as one.
    logic_ns, routing_ns : float
        Both add up to the period; setup and clock-to-output are logic.
    """

    fmax_mhz: float
    source: str
    sink: str
    levels: int
    logic_ns: float
    routing_ns: float


def critical_path(report: Mapping[str, Any]) -> CriticalPath:
    """Reads the report of a design with one clock. Raises ValueError if it has another number of clocks."""
    clocks = report["fmax"]
    if len(clocks) != 1:
        raise ValueError(f"its report must have one clock, not {len(clocks)}")
    ((clock, fmax),) = clocks.items()
    edge = f"posedge {clock}"
    (path,) = (path["path"] for path in report["critical_paths"] if path["from"] == path["to"] == edge)
    routing = [hop for hop in path if hop["type"] == "routing"]
    # A hop inside a logic cell or along a carry chain takes no time, or almost none where the chain changes tiles.
    wires = [hop for hop in routing if hop["delay"] > 0 and hop["to"]["port"] not in ("CIN", "FCI")]
    return CriticalPath(
        fmax_mhz=fmax["achieved"],
        source=_register(path[0]["from"]["cell"]),
        sink=_register(path[-1]["to"]["cell"]),
        levels=len(wires) - 1,
        logic_ns=round(sum(hop["delay"] for hop in path if hop["type"] != "routing"), 2),
        routing_ns=round(sum(hop["delay"] for hop in routing), 2),
    )


def _register(cell: str) -> str:
    """What Yosys called the register before it made cells of it."""
    return re.sub(r"_(TRELLIS_FF|SB_DFF|SB_LUT4|SB_CARRY|LUT4|PFUMX|L6MUX21|CCU2C).*", "", cell).removeprefix(
        "component."
    )
