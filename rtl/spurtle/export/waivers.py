"""Waivers for warnings of Verilator."""

from .banner import comment, title
from .verilog import Verilog

__all__ = ["LINT_WAIVERS", "waivers"]

LINT_WAIVERS = {
    "CASEOVERLAP": "Yosys writes a one-hot multiplexer as a casez whose items overlap if several bits are set",
    "DECLFILENAME": "the file can have another name than the module",
    "PROCASSINIT": "registers have a reset, and an initial value that FPGAs load",
    "TIMESCALEMOD": "the module has no delays and no timescale, but other files may have one",
    "UNUSEDSIGNAL": "struct ports and registers have bits that this configuration does not use",
    "WIDTH": "Yosys writes the shortest constants, and a logical not for a test for zero; all operands are unsigned",
}
"""Warnings of `verilator --lint-only -Wall` that are waived for the Verilog, with the reason.

Newer releases divide WIDTH into several rules, and accept WIDTH for all of them.
"""

_MESSAGES = {"PROCASSINIT": "Procedural assignment to declaration with initial value*"}
"""Messages of rules that older releases of Verilator do not know, and whose names they refuse in a waiver."""


def waivers(design: Verilog) -> str:
    """Return the waivers for a command line with -Wall, with the reason for each."""
    lines = ["`verilator_config", *comment("//", title(design, "Verilator waivers"))]
    for rule, reason in LINT_WAIVERS.items():
        lines.append(f"// {rule}: {reason}.")
        if message := _MESSAGES.get(rule):
            lines.append(f'lint_off -file "*{design.module}.v" -match "{message}"')
        else:
            lines.append(f'lint_off -rule {rule} -file "*{design.module}.v"')
    lines += ["// The wrapper.", f'lint_off -rule TIMESCALEMOD -file "*{design.module}_unpacked.v"']
    return "\n".join([*lines, ""])
