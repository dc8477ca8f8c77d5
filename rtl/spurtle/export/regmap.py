"""What software is told of the System registers of a configuration: CMSIS-SVD and a C header."""

# Ref: CMSIS-SVD schema 1.3 for the order of elements.

from collections.abc import Iterator
from enum import IntEnum
from importlib.metadata import version
from xml.etree import ElementTree

from .. import arch
from ..arch import BSC, Field, Register
from ..config import LFSR_ACCESS_RESET, LFSR_RESET, SPUConfig

__all__ = [
    "OFFSETS",
    "SPAN",
    "bit_ranges",
    "fields",
    "header",
    "implemented",
    "offset",
    "reset",
    "svd",
    "values",
    "whole_fields",
]

OFFSETS = "System registers. Offset: op1 in [16:14], CRn in [13:10], CRm in [9:6], op2 in [5:3]; op0 is 3."
"""Where a register is found that has an encoding and no address."""

SPAN = 1 << 17
"""Bytes that the offsets span."""


def offset(register: Register) -> int:
    """Its encoding times the eight bytes that it takes."""
    return register.encoding << 3


def implemented(config: SPUConfig, register: Register) -> int:
    """Bits of `register` that mean something in `config`. All others are RES0."""
    if register.read_only:
        return sum(field.mask for field in register.fields.values())
    return _writable(config, register) | config.fixed(register)


def _writable(config: SPUConfig, register: Register) -> int:
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


def svd(config: SPUConfig) -> str:
    """The registers of `config` as CMSIS-SVD, at their offsets."""
    device = ElementTree.Element(
        "device",
        {
            "schemaVersion": "1.3",
            "{http://www.w3.org/2001/XMLSchema-instance}noNamespaceSchemaLocation": "CMSIS-SVD.xsd",
        },
    )
    _add(
        device,
        name=config.module,
        version=version("spurtle"),
        description=f"Arm SPU (FEAT_SPE), configuration {config.name}",
        licenseText="SPDX-License-Identifier: Apache-2.0",
        addressUnitBits=8,
        width=64,
        size=64,
    )
    peripheral = ElementTree.SubElement(ElementTree.SubElement(device, "peripherals"), "peripheral")
    _add(
        peripheral,
        name="SPE",
        description=OFFSETS,
        baseAddress="0x0",
    )
    _add(ElementTree.SubElement(peripheral, "addressBlock"), offset="0x0", size=f"{SPAN:#x}", usage="registers")
    registers = ElementTree.SubElement(peripheral, "registers")
    for register in config.accessors:
        _add_register(registers, config, register)
    ElementTree.indent(device)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(device, encoding="unicode")}\n'


def _add_register(registers: ElementTree.Element, config: SPUConfig, register: Register) -> None:
    element = ElementTree.SubElement(registers, "register")
    _add(
        element,
        name=register.name,
        description=register.purpose,
        addressOffset=f"{offset(register):#x}",
        access="read-only" if register.read_only else "read-write",
        resetValue=f"{reset(config, register):#x}",
    )
    whole = whole_fields(config, register)
    if not whole:
        return
    parent = ElementTree.SubElement(element, "fields")
    for name, field in whole.items():
        bits = implemented(config, register) & field.mask
        partly = "" if bits == field.mask else f" Bits that are there: {bit_ranges(bits)}."
        one = ElementTree.SubElement(parent, "field")
        # The schema's bitRange ends at bit 49.
        _add(one, name=name, description=field.doc + partly, lsb=field.lsb, msb=field.lsb + field.width - 1)
        if named := values(config, register, field):
            enumerated = ElementTree.SubElement(one, "enumeratedValues")
            for value in named:
                _add(ElementTree.SubElement(enumerated, "enumeratedValue"), name=value.name, value=f"{value:#x}")


def _has_parts(field: Field, others: dict[str, Field]) -> bool:
    return any(other.mask & field.mask == other.mask < field.mask for other in others.values())


def _add(parent: ElementTree.Element, **texts: str | int) -> None:
    for tag, text in texts.items():
        ElementTree.SubElement(parent, tag).text = str(text)


def header(config: SPUConfig) -> str:
    """The registers of `config` as a C header, for C99 and later. Each macro begins with the name of the module:
    other configurations and kernels define the same registers.
    """
    guard = f"{config.module.upper()}_H"
    lines = [
        "/*",
        f" * Spurtle {version('spurtle')}: System registers of an Arm SPU (FEAT_SPE), configuration {config.name}",
        " * SPDX-License-Identifier: Apache-2.0",
        " * Generated; the source is spurtle.arch and spurtle.config.",
        " *",
        f" * Each name begins with {config.module.upper()}_.",
        " * Of a register: _NAME for the assembler, _SYSREG its number as Linux writes it; _WRITABLE bits, or _VALUE",
        " * if it is read-only (of PMBIDR_EL1 with P = 0). Of a field: _SHIFT, _MASK in place, values.",
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
        "/* ID_AA64DFR0_EL1.PMSVer. */",
        _define(config, "ID_AA64DFR0_EL1_PMSVER", f"{config.version:d}"),
    ]
    for register in config.accessors:
        lines += ["", *_defines(config, register)]
    return "\n".join([*lines, "", "#endif", ""])


def _defines(config: SPUConfig, register: Register) -> Iterator[str]:
    name = register.name
    yield f"/* {register.purpose} */"
    yield _define(config, f"{name}_NAME", f'"{register.assembler_name}"')
    # op0, op1, CRn, CRm and op2, where they stand in the instruction.
    number = 3 << 19 | register.op1 << 16 | register.crn << 12 | register.crm << 8 | register.op2 << 5
    yield _define(config, f"{name}_SYSREG", f"UINT32_C({number:#x})")
    if register.read_only:
        yield _define(config, f"{name}_VALUE", _constant(reset(config, register)))
    else:
        yield _define(config, f"{name}_WRITABLE", _constant(_writable(config, register)))
    for field_name, field in fields(config, register).items():
        yield f"/* {field_name}: {field.doc} */"
        yield _define(config, f"{name}_{field_name}_SHIFT", f"{field.lsb}")
        yield _define(config, f"{name}_{field_name}_MASK", _constant(field.mask))
        for value in values(config, register, field):
            yield _define(config, f"{name}_{field_name}_{value.name}", _constant(value))
    if register is arch.PMBSR_EL1:
        yield "/* MSS[5:0] if EC is 0. */"
        for code in BSC:
            yield _define(config, f"{name}_BSC_{code.name}", _constant(code))


def _define(config: SPUConfig, name: str, value: str) -> str:
    return f"#define {config.module.upper()}_{name:<40} {value}"


def _constant(value: int) -> str:
    return f"UINT64_C({value:#x})"
