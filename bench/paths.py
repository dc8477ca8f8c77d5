"""Critical path in nextpnr's report."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CriticalPath", "critical_path"]


@dataclass(frozen=True)
class CriticalPath:
    """Slowest register-to-register path of a placement.

    Parameters
    ----------
    fmax_mhz : float
    source, sink : str
        Names of the registers, without the bit index.
    levels : int
        LUTs in series; a carry chain counts as one.
    logic_ns, routing_ns : float
        Delays of logic, including setup and clock-to-output, and of routing. Their sum is the period.
    """

    fmax_mhz: float
    source: str
    sink: str
    levels: int
    logic_ns: float
    routing_ns: float


def critical_path(report: Mapping[str, Any]) -> CriticalPath:
    """Return the critical path in the report of a design with one clock.

    Raises
    ------
    ValueError
        If the design has another number of clocks.
    """
    clocks = report["fmax"]
    if len(clocks) != 1:
        raise ValueError(f"the report must have one clock, not {len(clocks)}")
    ((clock, fmax),) = clocks.items()
    edge = f"posedge {clock}"
    (path,) = (path["path"] for path in report["critical_paths"] if path["from"] == path["to"] == edge)
    routing = [hop for hop in path if hop["type"] == "routing"]
    # A hop inside a logic cell or along a carry chain has no delay, or almost none where the chain changes tiles.
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
    """Return the name of a register without the suffixes that Yosys adds for its cells."""
    return re.sub(r"_(TRELLIS_FF|SB_DFF|SB_LUT4|SB_CARRY|LUT4|PFUMX|L6MUX21|CCU2C).*", "", cell).removeprefix(
        "component."
    )
