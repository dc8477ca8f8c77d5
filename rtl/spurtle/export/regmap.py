"""The System registers of a configuration as software finds them: fields, values, offsets and reset values."""

from enum import IntEnum

from .. import arch
from ..arch import ENCODING_BITS, REGISTER_BITS, Field, Register
from ..config import LFSR_ACCESS_RESET, LFSR_RESET, SPUConfig

__all__ = [
    "OFFSETS",
    "SPAN",
    "bit_ranges",
    "fields",
    "implemented",
    "offset",
    "reset",
    "values",
    "whole_fields",
    "writable",
]

OFFSETS = "System registers. Offset: op1 in [16:14], CRn in [13:10], CRm in [9:6], op2 in [5:3]; op0 is 3."
"""Where a register is found that has an encoding and no address."""

SPAN = REGISTER_BITS // 8 << ENCODING_BITS
"""Bytes that the offsets span."""


def offset(register: Register) -> int:
    """Its encoding times the eight bytes that it takes."""
    return register.encoding << 3


def implemented(config: SPUConfig, register: Register) -> int:
    """Bits of `register` that mean something in `config`. All others are RES0."""
    if register.read_only:
        return sum(field.mask for field in register.fields.values())
    return writable(config, register) | config.fixed(register)


def writable(config: SPUConfig, register: Register) -> int:
    """Return the bits of `register` that hold what software writes, by either of its names."""
    return config.writable(arch.PMSCR_EL1 if register is arch.PMSCR_EL12 else register)


def fields(config: SPUConfig, register: Register) -> dict[str, Field]:
    """The fields of `register` that `config` has, if only some of their bits."""
    bits = implemented(config, register)
    return {name: field for name, field in register.fields.items() if field.mask & bits}


def whole_fields(config: SPUConfig, register: Register) -> dict[str, Field]:
    """The same without those that are there as their parts alone: no two of them overlap."""
    there = fields(config, register)
    return {name: field for name, field in there.items() if not _has_parts(field, there)}


def values(config: SPUConfig, register: Register, field: Field) -> list[IntEnum]:
    """The values of `field` that have a name, as far as its bits can hold them."""
    bits, ones = implemented(config, register) >> field.lsb, config.fixed(register) >> field.lsb
    return [value for value in field.values or () if value & ~bits == 0 and ones & ~value == 0]


def reset(config: SPUConfig, register: Register) -> int:
    """What `register` is after reset; of PMBIDR_EL1 to whoever can program the Profiling Buffer."""
    access = LFSR_ACCESS_RESET if config.access_bits else 0
    others = {
        arch.PMSIDR_EL1.name: config.pmsidr,
        arch.PMBIDR_EL1.name: config.pmbidr,
        arch.IMP_PMSRNDR_EL1.name: arch.IMP_PMSRNDR_EL1.pack(STATE=LFSR_RESET, ACCESS=access),
    }
    return others.get(register.name, config.fixed(register))


def bit_ranges(mask: int) -> str:
    """The bits of `mask`, highest first: `63:48, 7`."""
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
