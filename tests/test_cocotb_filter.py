"""Run cocotb_filter.py in Verilator: the Verilog of record and filter, many copies side by side.

It makes a million decisions of the least and of the most that a configuration can have, and a tenth of that of others.
SPURTLE_DECISIONS in the environment sets another number.
"""

import os

import pytest
from cocotb_filter import COPIES, REGISTERS
from gateware import VARIANTS
from simulator import run_verilator

from formal.proofs.filter import Judged
from spurtle import verilog
from spurtle.config import SPUConfig


def side_by_side(config: SPUConfig) -> verilog.Verilog:
    """A module around `COPIES` of `Judged`: each has a sample of its own, all have the same registers. Of each copy
    `answers` has the verdict in its lowest bit, and the PMU events above.
    """
    design = verilog.generate(Judged(config), "judged")
    (width,) = (port.width for port in design.ports if port.name == "sample")
    answers = 1 + len(config.feed_events)
    outputs = ["collect", *(f"feed_{event}" for event in config.feed_events)]
    ports = [name.lower().removesuffix("_el1") for name in REGISTERS]
    connections = [
        *(f".{name}(registers[{64 * place} +: 64])" for place, name in enumerate(ports)),
        f".sample(samples[{width} * i +: {width}])",
        *(f".{name}(answers[{answers} * i + {bit}])" for bit, name in enumerate(outputs)),
        *(f".{port.name}(1'b0)" for port in design.ports if port.name in ("clk", "rst")),
    ]
    text = f"""\
{design.text}
module side_by_side(
  input [{64 * len(REGISTERS) - 1}:0] registers,
  input [{COPIES * width - 1}:0] samples,
  output [{COPIES * answers - 1}:0] answers
);
  genvar i;
  generate for (i = 0; i < {COPIES}; i = i + 1) begin : copy
    judged one({", ".join(connections)});
  end endgenerate
endmodule
"""
    return verilog.Verilog(module="side_by_side", text=text, ports=(), cells=COPIES * design.cells)


@pytest.mark.parametrize("config", VARIANTS)
def test_filter(config: str, pytestconfig: pytest.Config) -> None:
    decisions = os.environ.get("SPURTLE_DECISIONS", "1000000" if config in ("minimal", "v1p4") else "40000")
    settings = {"SPURTLE_CONFIG": config, "SPURTLE_DECISIONS": decisions}
    run_verilator(side_by_side(VARIANTS[config]), "cocotb_filter", settings, pytestconfig)
