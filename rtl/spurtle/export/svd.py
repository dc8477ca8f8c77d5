"""System registers of a configuration as CMSIS-SVD.

Ref: CMSIS-SVD schema 1.3, for the order of elements.
"""

from xml.etree import ElementTree

from ..arch import REGISTER_BITS, Register
from ..config import SPUConfig
from ..support.version import __version__
from . import regmap

__all__ = ["svd"]


def svd(config: SPUConfig) -> str:
    """Return the registers of `config` as CMSIS-SVD, at their offsets."""
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
        version=__version__,
        description=f"Arm SPU (FEAT_SPE), configuration {config.name}",
        licenseText="SPDX-License-Identifier: Apache-2.0",
        addressUnitBits=8,
        width=REGISTER_BITS,
        size=REGISTER_BITS,
    )
    peripheral = ElementTree.SubElement(ElementTree.SubElement(device, "peripherals"), "peripheral")
    _add(
        peripheral,
        name="SPE",
        description=regmap.OFFSETS,
        baseAddress="0x0",
    )
    _add(ElementTree.SubElement(peripheral, "addressBlock"), offset="0x0", size=f"{regmap.SPAN:#x}", usage="registers")
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
        addressOffset=f"{regmap.offset(register):#x}",
        access="read-only" if register.read_only else "read-write",
        resetValue=f"{regmap.reset(config, register):#x}",
    )
    fields = regmap.disjoint_fields(config, register)
    if not fields:
        return
    parent = ElementTree.SubElement(element, "fields")
    for name, field in fields.items():
        bits = regmap.implemented(config, register) & field.mask
        implemented = "" if bits == field.mask else f" Implemented bits: {regmap.bit_ranges(bits)}."
        field_element = ElementTree.SubElement(parent, "field")
        # The schema's bitRange ends at bit 49.
        _add(
            field_element,
            name=name,
            description=field.doc + implemented,
            lsb=field.lsb,
            msb=field.lsb + field.width - 1,
        )
        if named := regmap.values(config, register, field):
            enumerated = ElementTree.SubElement(field_element, "enumeratedValues")
            for value in named:
                _add(ElementTree.SubElement(enumerated, "enumeratedValue"), name=value.name, value=f"{value:#x}")


def _add(parent: ElementTree.Element, **texts: str | int) -> None:
    for tag, text in texts.items():
        ElementTree.SubElement(parent, tag).text = str(text)
