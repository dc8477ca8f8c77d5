"""Timing constraints."""

from .banner import comment, title
from .verilog import Verilog

__all__ = ["constraints"]

PERIOD_NS = 10
"""Clock period in the constraint files. It is an example that any FPGA of the last ten years meets."""


def constraints(design: Verilog) -> dict[str, str]:
    """Return constraint files by suffix: SDC, XDC for AMD tools, LPF for nextpnr and Diamond."""
    reset = design.reset
    note = [
        *title(design, "constraints"),
        "",
        f"clk is the only clock. Its period of {PERIOD_NS} ns is an example: replace it by yours. There are no",
        "multicycle paths and no false paths: all ports are synchronous to clk. Synchronize other signals outside.",
        "Within a design the ports need no constraints. If the SPU is the top module, set the input and output delays",
        "to those of the circuits outside: some outputs depend on inputs of the same cycle.",
    ]
    if reset.asynchronous:
        note.append(
            f"{reset.port} can be asserted at any time and must be deasserted with clk: check recovery and removal."
        )
    delay = PERIOD_NS * 4 // 10  # an example, as the period is
    inputs = "[remove_from_collection [all_inputs] [get_ports clk]]"
    sdc = [
        f"create_clock -name clk -period {PERIOD_NS} [get_ports clk]",
        f"set_input_delay -clock clk {delay} {inputs}",
        f"set_output_delay -clock clk {delay} [all_outputs]",
    ]
    xdc = [
        f"create_clock -name clk -period {PERIOD_NS} [get_ports clk]",
        "# Within a design, use -scoped_to_ref, or constrain the clock in the module that generates it.",
    ]
    lpf = [f'FREQUENCY PORT "clk" {1000 // PERIOD_NS} MHZ;']
    return {
        suffix: "\n".join([*comment(mark, note), *lines, ""])
        for suffix, mark, lines in (("sdc", "#", sdc), ("xdc", "#", xdc), ("lpf", "#", lpf))
    }
