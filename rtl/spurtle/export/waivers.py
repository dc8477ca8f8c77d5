"""Waivers of Verilator's warnings."""

from .banner import comment, title
from .verilog import Verilog

__all__ = ["LINT_WAIVERS", "waivers"]

LINT_WAIVERS = {
    "CASEOVERLAP": "Yosys writes a one-hot multiplexer as a casez whose items overlap for other selections",
    "DECLFILENAME": "a test may give the file another name than the module",
    "PROCASSINIT": "a register has an initial value, which FPGAs load, beside its reset",
    "TIMESCALEMOD": "it has no delays and no timescale, which other files may have",
    "UNUSEDSIGNAL": "struct ports and registers have bits that this configuration does not look at",
    "WIDTH": "Yosys writes constants as short as they can be, and a test for zero as a logical not; every operand is "
    "unsigned",
}
"""What `verilator --lint-only -Wall` may say of the Verilog, and why it may. Newer releases divide WIDTH into several
rules, and take it for all of them.
"""

_MESSAGES = {"PROCASSINIT": "Procedural assignment to declaration with initial value*"}
"""Messages of rules that older releases of Verilator do not know: these refuse a waiver with the name of the rule."""


def waivers(design: Verilog) -> str:
    """What Verilator is not to say of the Verilog, and why, for a command line with -Wall."""
    lines = ["`verilator_config", *comment("//", title(design, "waivers for Verilator"))]
    for rule, reason in LINT_WAIVERS.items():
        lines.append(f"// {rule}: {reason}.")
        if message := _MESSAGES.get(rule):
            lines.append(f'lint_off -file "*{design.module}.v" -match "{message}"')
        else:
            lines.append(f'lint_off -rule {rule} -file "*{design.module}.v"')
    lines += ["// The wrapper.", f'lint_off -rule TIMESCALEMOD -file "*{design.module}_unpacked.v"']
    return "\n".join([*lines, ""])
