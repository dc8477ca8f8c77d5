"""System registers of a configuration as software sees them: fields, values, offsets and reset values."""

from enum import IntEnum

from .. import arch
from ..arch import ENCODING_BITS, REGISTER_BITS, Field, Register
from ..config import LFSR_ACCESS_RESET, LFSR_RESET, SPUConfig

__all__ = [
    "OFFSETS",
    "SPAN",
    "bit_ranges",
    "disjoint_fields",
    "fields",
    "implemented",
    "offset",
    "reset",
    "values",
    "writable",
]

OFFSETS = "System registers. Offset: op1 in [16:14], CRn in [13:10], CRm in [9:6], op2 in [5:3]; op0 is 3."
"""Description of the offsets, because a System register has an encoding and no address."""

SPAN = REGISTER_BITS // 8 << ENCODING_BITS
"""Range of the offsets in bytes."""


def offset(register: Register) -> int:
    """Return the encoding of a register times its size of eight bytes."""
    return register.encoding << 3


def implemented(config: SPUConfig, register: Register) -> int:
    """Return the mask of the implemented bits of `register` in `config`. All others are RES0."""
    if register.read_only:
        return sum(field.mask for field in register.fields.values())
    return writable(config, register) | config.fixed(register)


def writable(config: SPUConfig, register: Register) -> int:
    """Return the mask of the bits of `register` that software can write. PMSCR_EL12 is another name of PMSCR_EL1."""
    return config.writable(arch.PMSCR_EL1 if register is arch.PMSCR_EL12 else register)


def fields(config: SPUConfig, register: Register) -> dict[str, Field]:
    """Return the fields of `register` of which `config` implements at least one bit."""
    bits = implemented(config, register)
    return {name: field for name, field in register.fields.items() if field.mask & bits}


def disjoint_fields(config: SPUConfig, register: Register) -> dict[str, Field]:
    """Return the fields without those that contain smaller fields, so that no two fields overlap."""
    present = fields(config, register)
    return {name: field for name, field in present.items() if not _has_parts(field, present)}


def values(config: SPUConfig, register: Register, field: Field) -> list[IntEnum]:
    """Return the named values of `field` that its implemented bits can hold."""
    bits, ones = implemented(config, register) >> field.lsb, config.fixed(register) >> field.lsb
    return [value for value in field.values or () if value & ~bits == 0 and ones & ~value == 0]


def reset(config: SPUConfig, register: Register) -> int:
    """Return the reset value of `register`. That of PMBIDR_EL1 is for the owner of the Profiling Buffer (P = 0)."""
    access = LFSR_ACCESS_RESET if config.access_bits else 0
    others = {
        arch.PMSIDR_EL1.name: config.pmsidr,
        arch.PMBIDR_EL1.name: config.pmbidr,
        arch.IMP_PMSRNDR_EL1.name: arch.IMP_PMSRNDR_EL1.pack(STATE=LFSR_RESET, ACCESS=access),
    }
    return others.get(register.name, config.fixed(register))


def bit_ranges(mask: int) -> str:
    """Return the bits of `mask` as text, highest first, such as `63:48, 7`."""
    ranges: list[str] = []
    while mask:
        msb = mask.bit_length() - 1
        lsb = msb
        while lsb and mask >> lsb - 1 & 1:
            lsb -= 1
        ranges.append(f"{msb}:{lsb}" if msb > lsb else f"{msb}")
        mask &= (1 << lsb) - 1
    return ", ".join(ranges)


def _has_parts(field: Field, others: dict[str, Field]) -> bool:
    return any(other.mask & field.mask == other.mask < field.mask for other in others.values())
