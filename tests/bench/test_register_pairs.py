"""Longest path of each pair of registers: delays in SDF, and a placed circuit."""

from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from rich.console import Console

from bench.blocks import ANY, select
from bench.devices import DEVICES, Device
from bench.flow import Circuit, measure
from bench.harness import Harness, elaborate
from bench.paths import CriticalPath, register_name
from bench.register_pairs import read_sdf, register_pairs
from bench.report import pair_table

# Register a drives b through two LUTs, of which the second has a carry output, and through one LUT. It drives itself
# through one LUT. Nothing clocked drives `pad`.
SDF = r"""
(DELAYFILE
  (TIMESCALE 1ps)
  (CELL (CELLTYPE "top")
    (INSTANCE )
        (INTERCONNECT clk/O a_TRELLIS_FF_Q/CLK (9:9:9) (9:9:9))
        (INTERCONNECT a_TRELLIS_FF_Q/Q one/A (100:200:300) (1:1:1))
        (INTERCONNECT one/F two/B (1:2:500) (1:2:3))
        (INTERCONNECT two/FCO three/FCI (1:1:7) (1:1:7))
        (INTERCONNECT three/F component.b_TRELLIS_FF_Q_1/DI (0:0:0) (0:0:0))
        (INTERCONNECT one/F component.b_TRELLIS_FF_Q_2/DI (10:10:10) (10:10:10))
        (INTERCONNECT one/F a_TRELLIS_FF_Q/DI (0:0:0) (0:0:40))
        (INTERCONNECT pad/O component.b_TRELLIS_FF_Q_2/CE (0:0:0) (0:0:4000))
  )
  (CELL (CELLTYPE "TRELLIS_COMB")
    (INSTANCE one)
        (IOPATH A F (0:0:20) (0:0:25))
  )
  (CELL (CELLTYPE "TRELLIS_COMB")
    (INSTANCE two)
        (IOPATH B FCO (0:0:70) (0:0:70))
  )
  (CELL (CELLTYPE "TRELLIS_COMB")
    (INSTANCE three)
        (IOPATH FCI F (0:0:80) (0:0:80))
  )
  (CELL (CELLTYPE "TRELLIS_FF")
    (INSTANCE a_TRELLIS_FF_Q)
        (IOPATH CLK Q (500:500:500) (510:510:510))
      (SETUPHOLD (posedge DI) (posedge CLK) (3:3:3) (90:90:90))
      (SETUPHOLD (negedge DI) (posedge CLK) (3:3:3) (90:90:90))
  )
  (CELL (CELLTYPE "TRELLIS_FF")
    (INSTANCE component.b_TRELLIS_FF_Q_1)
      (SETUPHOLD (posedge DI) (posedge CLK) (8:8:8) (90:90:90))
  )
  (CELL (CELLTYPE "TRELLIS_FF")
    (INSTANCE component.b_TRELLIS_FF_Q_2)
      (SETUPHOLD (posedge DI) (posedge CLK) (8:8:8) (90:90:90))
      (SETUPHOLD (posedge CE) (posedge CLK) (8:8:8) (90:90:90))
  )
)
"""


def test_longest_path_of_each_pair() -> None:
    # To b: clock to output 510, wires 300, 500 and 7, cells 25, 70 and 80, setup 8.
    assert register_pairs(read_sdf(SDF.splitlines())) == [
        CriticalPath(fmax_mhz=666.67, source="a", sink="b", levels=1, logic_ns=0.69, routing_ns=0.81),
        CriticalPath(fmax_mhz=1138.95, source="a", sink="a", levels=1, logic_ns=0.54, routing_ns=0.34),
    ]


def test_slower_wire_changes_the_longest_path() -> None:
    delays = read_sdf(SDF.replace("(10:10:10)", "(5000:5000:5000)").splitlines())
    slowest, *_ = register_pairs(delays)
    assert slowest == CriticalPath(fmax_mhz=171.14, source="a", sink="b", levels=1, logic_ns=0.54, routing_ns=5.3)


def test_combinational_loop_ends() -> None:
    delays = read_sdf(SDF.splitlines())
    delays.wires["two/B"] = "three/F", 1.0  # the path through the carry chain begins at no register any more
    assert [path.sink for path in register_pairs(delays)] == ["a", "b"]


@pytest.mark.parametrize(
    "cell",
    [
        "component.count_TRELLIS_FF_Q_12",
        "count_SB_DFFESR_Q_30_D_SB_LUT4_O_I2_SB_LUT4_O_LC",
        "component.count_MULT18X18D_P1",
        "component.count.0.12$DPRAM_COMB3",
        "component.count.1.0",
    ],
)
def test_name_of_a_register_has_no_suffix(cell: str) -> None:
    assert register_name(cell) == "count"


def test_name_of_an_element_is_kept() -> None:
    assert register_name("order.storage[0]_SB_DFFE_Q") == "order.storage[0]"


@pytest.mark.full
@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_slowest_pair_is_the_critical_path(device: Device, tmp_path: Path) -> None:
    """The delays of nextpnr's report and those in its SDF file are equal."""
    [counter] = select(["counter"])
    circuit = Circuit(counter.name, counter.config, elaborate(counter.build()), elaborate(Harness(counter.build())))
    measured = measure(circuit, device, tmp_path, 1, pairs=True)
    assert measured.slowest
    slowest, second, *_ = measured.pairs
    assert slowest == replace(measured.slowest, fmax_mhz=round(measured.slowest.fmax_mhz, 2))
    assert (slowest.source, slowest.sink, second.sink) == ("count", "count", "hit")
    assert second.fmax_mhz > slowest.fmax_mhz
    assert len({(pair.source, pair.sink) for pair in measured.pairs}) == len(measured.pairs)
    assert not [path.name for path in tmp_path.rglob("*.sdf")]
    shown = Console(width=120)
    with shown.capture() as capture:
        shown.print(pair_table(device, {counter: measured}, 2))
    lines = [line.split() for line in capture.get().splitlines()]
    assert [line[2:5] for line in lines if line[:1] == ["counter"]] == [
        ["count", "count", f"{slowest.fmax_mhz:.1f}"],
        ["count", "hit", f"{second.fmax_mhz:.1f}"],
    ]


class Queue(wiring.Component):
    """Memory of four words with a combinational read, which is LUT RAM on ECP5."""

    def __init__(self) -> None:
        super().__init__({"address": In(2), "word": In(8), "parity": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.words = words = Memory(shape=8, depth=4, init=[])
        read, write = words.read_port(domain="comb"), words.write_port()
        m.d.comb += [read.addr.eq(self.address), write.addr.eq(self.address), write.data.eq(self.word)]
        m.d.comb += write.en.eq(self.word.any())
        m.d.sync += self.parity.eq(read.data.xor())
        return m


@pytest.mark.full
def test_memory_in_luts_is_written_like_a_register(tmp_path: Path) -> None:
    circuit = Circuit("queue", ANY, elaborate(Queue()), elaborate(Harness(Queue())))
    measured = measure(circuit, DEVICES["ecp5"], tmp_path, 1, pairs=True)
    assert measured.area.cells["TRELLIS_DPR16X4"] == 2
    assert measured.slowest
    assert measured.pairs[0] == replace(measured.slowest, fmax_mhz=round(measured.slowest.fmax_mhz, 2))
    pairs = {(pair.source, pair.sink) for pair in measured.pairs}
    assert {("address", "words"), ("address", "parity")} <= pairs
