"""FPGAs on which circuits are measured, and the calculation of the area on each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["DEVICES", "Area", "Device", "cell_counts", "constant_outputs"]

Module = Mapping[str, Any]
"""Type of a module in a Yosys JSON netlist."""


_ANNOTATION = "$scopeinfo"
"""Type of a cell that holds the name of a flattened module. It is not in the circuit."""


@dataclass(frozen=True)
class Area:
    """Area of a mapped netlist.

    Parameters
    ----------
    lut4 : int
        LUT4s, including carry cells and LUT RAM.
    ff : int
        Flip-flops.
    cells : mapping of str to int
        Number of cells of each type, without flip-flops.
    """

    lut4: int
    ff: int
    cells: Mapping[str, int]


@dataclass(frozen=True)
class Device:
    """An FPGA and its tools.

    Parameters
    ----------
    name : str
        Value of `--device`, and Yosys' name of the family.
    title : str
        Device, package and speed grade.
    place_options : tuple of str
        Options of nextpnr that select the device.
    cells : int
        Logic cells of the device, with one LUT4 and one flip-flop each.
    lut4 : mapping of str to int
        LUT4s that a cell of each type of logic cell occupies.
    flip_flop : str
        Prefix of the types of flip-flop cells.
    blocks : frozenset of str
        Types of cells that tables list by their numbers: memories and multipliers. A memory in LUTs is also in `lut4`.
    """

    name: str
    title: str
    place_options: tuple[str, ...]
    cells: int
    lut4: Mapping[str, int]
    flip_flop: str
    blocks: frozenset[str]

    @property
    def synthesize(self) -> str:
        """Synthesis command of Yosys."""
        return f"synth_{self.name} -top top"

    @property
    def place_tool(self) -> str:
        """Name of the nextpnr program for this family."""
        return f"yowasp-nextpnr-{self.name}"

    def area(self, module: Module) -> Area:
        """Return the area of a mapped netlist.

        Raises
        ------
        ValueError
            If the type of a cell is unknown: its area would not be counted.
        """
        counts = cell_counts(module)
        counts.pop(_ANNOTATION, None)
        ff = sum(counts.pop(kind) for kind in list(counts) if kind.startswith(self.flip_flop))
        if unknown := sorted(counts.keys() - self.lut4.keys() - self.blocks):
            known = ", ".join(sorted({*self.lut4, *self.blocks, f"{self.flip_flop}*"}))
            raise ValueError(f"the type of a cell must be one of {known}, not {', '.join(unknown)}")
        lut4 = sum(self.lut4.get(kind, 0) * count for kind, count in counts.items()) + _lone_carries(module)
        return Area(lut4, ff, dict(sorted(counts.items())))


def cell_counts(module: Module) -> dict[str, int]:
    """Return the number of cells of each type in a module of a JSON netlist."""
    counts: dict[str, int] = {}
    for cell in module["cells"].values():
        counts[cell["type"]] = counts.get(cell["type"], 0) + 1
    return counts


def constant_outputs(module: Module) -> list[str]:
    """Return the output ports of which each bit is a constant."""
    return [
        name
        for name, port in module["ports"].items()
        if port["direction"] == "output" and all(isinstance(bit, str) for bit in port["bits"])
    ]


def _lone_carries(module: Module) -> int:
    """Return the number of iCE40 carry cells that do not share a logic cell with a LUT.

    The LUT of a shared cell has the operands of the carry at I1 and I2, and its carry-in at I3.
    """
    cells = [(cell["type"], cell["connections"]) for cell in module["cells"].values()]
    luts = {tuple(nets[pin][0] for pin in ("I1", "I2", "I3")) for kind, nets in cells if kind == "SB_LUT4"}
    carries = [tuple(nets[pin][0] for pin in ("I0", "I1", "CI")) for kind, nets in cells if kind == "SB_CARRY"]
    return sum(carry not in luts for carry in carries)


DEVICES: Mapping[str, Device] = {
    device.name: device
    for device in (
        Device(
            name="ecp5",
            title="ECP5 LFE5U-85F, CABGA756, speed 6",
            place_options=("--85k", "--package", "CABGA756", "--speed", "6"),
            cells=83_640,
            # A CCU2C is two LUT4s with a carry chain. 16x4 bits of LUT RAM take four LUT4s, and two for the write port.
            # PFUMX and L6MUX21 are multiplexers in the slices of the LUTs that they select.
            lut4={"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6, "PFUMX": 0, "L6MUX21": 0},
            flip_flop="TRELLIS_FF",
            blocks=frozenset({"TRELLIS_DPR16X4", "DP16KD", "PDPW16KD", "MULT18X18D"}),
        ),
        Device(
            name="ice40",
            title="iCE40 HX8K, ct256",
            place_options=("--hx8k", "--package", "ct256", "--pcf-allow-unconstrained"),
            cells=7_680,
            # A carry cell counts only if it shares its logic cell with no LUT.
            lut4={"SB_LUT4": 1, "SB_CARRY": 0},
            flip_flop="SB_DFF",
            # The suffixes stand for a negative edge of the clock of a port.
            blocks=frozenset(f"SB_RAM40_4K{suffix}" for suffix in ("", "NR", "NW", "NRNW")),
        ),
    )
}
