"""Timing constraints."""

from .banner import comment, title
from .verilog import Verilog

__all__ = ["constraints"]

PERIOD_NS = 10
"""Of the clock in the constraint files: an example, which any FPGA of the last ten years meets."""


def constraints(design: Verilog) -> dict[str, str]:
    """What to constrain, by the suffix of the file: for Synopsys' and AMD's tools, and for nextpnr and Diamond."""
    reset = design.reset
    note = [
        *title(design, "constraints"),
        "",
        f"clk is the only clock; a period of {PERIOD_NS} ns is an example, put yours. No path takes more than a cycle,",
        "and none is false: all ports belong to clk, and what comes from another clock is synchronized before.",
        "Inside a design the ports need no constraint. If the SPU is the top, give them what the circuits on the",
        "other side take of the period: some outputs depend on inputs of the same cycle.",
    ]
    if reset.asynchronous:
        note.append(f"{reset.port} may begin at any time, and ends with clk: recovery and removal are to be checked.")
    delay = PERIOD_NS * 4 // 10
    inputs = "[remove_from_collection [all_inputs] [get_ports clk]]"
    sdc = [
        f"create_clock -name clk -period {PERIOD_NS} [get_ports clk]",
        f"set_input_delay -clock clk {delay} {inputs}",
        f"set_output_delay -clock clk {delay} [all_outputs]",
    ]
    xdc = [
        f"create_clock -name clk -period {PERIOD_NS} [get_ports clk]",
        "# In a design of your own use -scoped_to_ref, or leave the clock to the module that makes it.",
    ]
    lpf = [f'FREQUENCY PORT "clk" {1000 // PERIOD_NS} MHZ;']
    return {
        suffix: "\n".join([*comment(mark, note), *lines, ""])
        for suffix, mark, lines in (("sdc", "#", sdc), ("xdc", "#", xdc), ("lpf", "#", lpf))
    }
