"""Page of each System register, from `spurtle.arch` and the named configurations."""

import re
import textwrap
from collections.abc import Iterator

from docs.markdown import table
from spurtle import arch
from spurtle.arch import Field, FineGrainedTrap, Register, Trap
from spurtle.config import CONFIGS, SPUConfig
from spurtle.export import regmap

__all__ = ["REGISTERS", "listed", "page"]

REGISTERS = (*arch.REGISTERS, arch.PMSCR_EL12)

_NAMES = re.compile("|".join(rf"\b{register.name}\b" for register in REGISTERS))
_TRAPS = {Trap.TPMS: "MDCR_EL2.TPMS is 1", Trap.E2PB: "MDCR_EL2.E2PB[0] is 0"}


def listed() -> str:
    """Return a table of the registers, with a link to the page of each."""
    rows = ((f"[{register.name}](registers/{register.name}.md)", register.purpose) for register in REGISTERS)
    return table(("register", "purpose"), *rows)


def page(register: Register) -> str:
    """Return the page of `register` in Markdown."""
    where = f"op0 3, op1 {register.op1}, CRn {register.crn}, CRm {register.crm}, op2 {register.op2}"
    parts = (
        f"# {register.name}",
        textwrap.fill(_linked(register, register.purpose), 120, break_on_hyphens=False),
        f"`{register.assembler_name}`: {where}. 64 bits, {'read-only' if register.read_only else 'read-write'}.",
        "## Bits",
        *(table(*zip(*_runs(register, half), strict=True)) for half in (1, 0)),
        "## Fields",
        table(*_fields(register)),
        "## Access",
        "The first row that applies decides: see [access](../registers.md#access).",
        table(("from", "if", "then"), *_access(register)),
        "## Configurations",
        table(*_configurations(register)),
    )
    return "\n\n".join(parts) + "\n"


def _linked(register: Register, text: str) -> str:
    """Return `text` with a link to the page of each other register that it names."""

    def link(match: re.Match[str]) -> str:
        name = match[0]
        return name if name == register.name else f"[{name}]({name}.md)"

    return _NAMES.sub(link, text)


def _runs(register: Register, half: int) -> Iterator[tuple[str, str]]:
    """Yield bit ranges and field names of the upper (1) or lower (0) half, from the highest bit down.

    If two fields share bits, the smaller one is named.
    """
    bit = 32 * half + 31
    while bit >= 32 * half:
        name, run = _innermost(register, bit), bit
        while bit >= 32 * half and _innermost(register, bit) == name:
            bit -= 1
        yield (f"{run}:{bit + 1}" if run > bit + 1 else f"{run}"), name


def _innermost(register: Register, bit: int) -> str:
    widths = {name: field.width for name, field in register.fields.items() if field.mask >> bit & 1}
    return min(widths, key=lambda name: widths[name]) if widths else "RES0"


def _fields(register: Register) -> Iterator[tuple[str, ...]]:
    has = () if register.read_only else ("configurations",)
    yield ("bits", "field", "meaning", *has)
    for name, field in register.fields.items():
        values = ", ".join(f"{value:#x} {value.name}" for value in field.values or ())
        meaning = _linked(register, field.doc) + (f" {values}." if values else "")
        where = () if register.read_only else (_where(register, field),)
        yield (regmap.bit_ranges(field.mask), name, meaning, *where)


def _where(register: Register, field: Field) -> str:
    owners = [config for config in CONFIGS.values() if register in config.accessors]
    names = [config.name for config in owners if regmap.implemented(config, register) & field.mask]
    if not names:
        return "none: RES0"
    return "all" if len(names) == len(owners) else ", ".join(names)


def _access(register: Register) -> Iterator[tuple[str, str, str]]:
    """Yield Exception level, condition and outcome of an access, in order of precedence."""
    from_el1 = register.op1 == arch.PMSCR_EL1.op1
    yield "EL0" if from_el1 else "EL0, EL1", "", "UNDEFINED"
    if register is arch.PMSCR_EL12:
        yield "EL2, EL3", "EL2 is not enabled, or HCR_EL2.E2H is 0", "UNDEFINED"
    if register.read_only:
        yield "EL1, EL2, EL3", "MSR", "UNDEFINED"
    if register.fine_grained:
        yield "EL1", _fine_grained(register.fine_grained, register.read_only), "trap to EL2"
    if register.trap:
        yield "EL1", _TRAPS[register.trap], "trap to EL2"
    below_el3 = "EL1, EL2" if from_el1 else "EL2"
    if register.owned:
        condition = "another Security state owns the Profiling Buffer, or MDCR_EL3.NSPB[0] is 0"
        yield below_el3, condition, "trap to EL3"
    if register.enable:
        yield below_el3, f"MDCR_EL3.{register.enable} is 0", "trap to EL3"
    if register is arch.PMSCR_EL1:
        yield "EL2", "EL2 is enabled, and HCR_EL2.E2H is 1", _linked(register, "access to PMSCR_EL2")
    means = "access to PMSCR_EL1" if register is arch.PMSCR_EL12 else "access"
    yield "any other", "", _linked(register, means)


def _fine_grained(trap: FineGrainedTrap, read_only: bool) -> str:
    number = "2" if trap.second else ""
    field = f"HDFGRTR{number}_EL2.{trap.name}"
    if not read_only:
        field += f" for MRS, HDFGWTR{number}_EL2.{trap.name} for MSR"
    if trap.second:
        return f"{field} is 0, or SCR_EL3.FGTEn2 is 0"
    return f"{field} is {0 if trap.inverted else 1}, and SCR_EL3.FGTEn is 1"


def _configurations(register: Register) -> Iterator[tuple[str, ...]]:
    if register.read_only:
        yield ("configuration", "value", "fields that are not zero")
    else:
        yield ("configuration", "bits that are not RES0", "after reset")
    for config in CONFIGS.values():
        if register in config.accessors:
            yield (config.name, *_bits(config, register))
        else:
            yield (config.name, "not implemented: UNDEFINED", "")


def _bits(config: SPUConfig, register: Register) -> tuple[str, str]:
    after_reset = regmap.reset(config, register)
    if not register.read_only:
        return regmap.bit_ranges(regmap.implemented(config, register)) or "none", f"{after_reset:#x}"
    values = vars(register.unpack(after_reset))
    return f"{after_reset:#x}", ", ".join(f"{name} {value}" for name, value in values.items() if value)
