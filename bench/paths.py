"""Critical path in nextpnr's report."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CARRY_INPUTS", "CriticalPath", "critical_path", "register_name"]

CARRY_INPUTS = ("CIN", "FCI")
"""Inputs of a carry chain. Their wires have no delay, or almost none where the chain changes tiles."""


_CELLS = (
    *("TRELLIS_FF", "LUT4", "PFUMX", "L6MUX21", "CCU2C", "MULT18X18D"),
    *("SB_DFF", "SB_LUT4", "SB_CARRY"),
)
"""Types of cells in the names that Yosys gives."""


@dataclass(frozen=True)
class CriticalPath:
    """Path from register to register of a placement.

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
    # A hop inside a logic cell has no delay.
    wires = [hop for hop in routing if hop["delay"] > 0 and hop["to"]["port"] not in CARRY_INPUTS]
    return CriticalPath(
        fmax_mhz=fmax["achieved"],
        source=register_name(path[0]["from"]["cell"]),
        sink=register_name(path[-1]["to"]["cell"]),
        levels=len(wires) - 1,
        logic_ns=round(sum(hop["delay"] for hop in path if hop["type"] != "routing"), 2),
        routing_ns=round(sum(hop["delay"] for hop in routing), 2),
    )


def register_name(cell: str) -> str:
    """Return the name of a register or a memory without the suffixes that Yosys and nextpnr add for its cells."""
    # A memory is mapped to a grid of cells: `memory.0.12`.
    return re.sub(rf"(_({'|'.join(_CELLS)})|\.\d+\.\d+(\$|$)).*", "", cell).removeprefix("component.")
