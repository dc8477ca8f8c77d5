"""IP-XACT component of a module: ports, bus interfaces, registers and files.

Ref: IEEE 1685-2014, for the order of elements.
"""

from collections.abc import Iterator
from xml.etree import ElementTree

from ..arch import REGISTER_BITS, Field, Register
from ..config import SPUConfig
from ..support.version import __version__
from . import regmap
from .ports import Port
from .verilog import Verilog

__all__ = ["component"]

_SCHEMA = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
_PREFIX = "ipxact"
_MAP = "SPE"

_BUSES = {"m_axi_": ("AXI4", "master"), "s_apb_": ("APB4", "slave")}
"""Bus and role for each prefix of port names."""


def component(config: SPUConfig, design: Verilog) -> str:
    """Return the text of the IP-XACT file."""
    root = _Element("component")
    root.set("xmlns:" + _PREFIX, _SCHEMA)
    _identify(root, design)
    _add_buses(root, design)
    _add_registers(root, config)
    _add_model(root, design)
    _add_files(root, design)
    root.add("description", f"Arm SPU (FEAT_SPE), configuration {config.name}, options {design.options}")
    ElementTree.indent(root.element)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root.element, encoding="unicode")}\n'


class _Element:
    """Element in the name space of the standard."""

    def __init__(self, tag: str, parent: ElementTree.Element | None = None):
        name = f"{_PREFIX}:{tag}"
        self.element = ElementTree.Element(name) if parent is None else ElementTree.SubElement(parent, name)

    def set(self, name: str, value: str) -> None:
        self.element.set(name, value)

    def add(self, tag: str, text: str | int | None = None, **attributes: str) -> "_Element":
        """Append a child element, and return it."""
        child = _Element(tag, self.element)
        if text is not None:
            child.element.text = str(text)
        for name, value in attributes.items():
            child.set(name, value)
        return child


def _identify(root: _Element, design: Verilog) -> None:
    for tag, text in (("vendor", "spurtle"), ("library", "spe"), ("name", design.module)):
        root.add(tag, text)
    root.add("version", __version__)


def _add_buses(root: _Element, design: Verilog) -> None:
    present = {
        prefix: ports for prefix in _BUSES if (ports := [port for port in design.ports if port.name.startswith(prefix)])
    }
    if not present:
        return
    interfaces = root.add("busInterfaces")
    for prefix, ports in present.items():
        bus, role = _BUSES[prefix]
        interface = interfaces.add("busInterface")
        interface.add("name", prefix.strip("_"))
        vlnv = {"vendor": "amba.com", "library": "AMBA4", "version": "r0p0_0"}
        interface.add("busType", name=bus, **vlnv)
        abstraction = interface.add("abstractionTypes").add("abstractionType")
        abstraction.add("abstractionRef", name=f"{bus}_rtl", **vlnv)
        port_maps = abstraction.add("portMaps")
        for port in ports:
            port_map = port_maps.add("portMap")
            port_map.add("logicalPort").add("name", port.name.removeprefix(prefix).upper())
            port_map.add("physicalPort").add("name", port.name)
        role_element = interface.add(role)
        if role == "slave":
            role_element.add("memoryMapRef", memoryMapRef=_MAP)


def _add_registers(root: _Element, config: SPUConfig) -> None:
    memory_map = root.add("memoryMaps").add("memoryMap")
    memory_map.add("name", _MAP)
    block = memory_map.add("addressBlock")
    block.add("name", "registers")
    block.add("description", regmap.OFFSETS)
    block.add("baseAddress", "0")
    block.add("range", _hex(regmap.SPAN))
    block.add("width", REGISTER_BITS)
    for register in config.accessors:
        _add_register(block, config, register)
    memory_map.add("addressUnitBits", 8)


def _add_register(block: _Element, config: SPUConfig, register: Register) -> None:
    element = block.add("register")
    element.add("name", register.name)
    element.add("description", register.purpose)
    element.add("addressOffset", _hex(regmap.offset(register)))
    element.add("size", REGISTER_BITS)
    element.add("access", "read-only" if register.read_only else "read-write")
    reset_value = regmap.reset(config, register)
    for name, field in _fields(config, register):
        field_element = element.add("field")
        field_element.add("name", name)
        field_element.add("description", field.doc)
        field_element.add("bitOffset", field.lsb)
        field_element.add("resets").add("reset").add("value", _hex(reset_value >> field.lsb & (1 << field.width) - 1))
        field_element.add("bitWidth", field.width)
        if named := regmap.values(config, register, field):
            enumerated = field_element.add("enumeratedValues")
            for value in named:
                member = enumerated.add("enumeratedValue")
                member.add("name", value.name)
                member.add("value", _hex(value))


def _fields(config: SPUConfig, register: Register) -> Iterator[tuple[str, Field]]:
    """Yield fields that do not overlap. A register without fields has one field of all bits."""
    fields = regmap.disjoint_fields(config, register) or {register.name: Field(0, REGISTER_BITS, register.purpose)}
    yield from fields.items()


def _hex(value: int) -> str:
    return f"'h{value:x}"


def _add_model(root: _Element, design: Verilog) -> None:
    model = root.add("model")
    view = model.add("views").add("view")
    view.add("name", "rtl")
    view.add("envIdentifier", ":*Synthesis:")
    view.add("componentInstantiationRef", "rtl")
    instantiation = model.add("instantiations").add("componentInstantiation")
    instantiation.add("name", "rtl")
    instantiation.add("language", "Verilog")
    instantiation.add("moduleName", design.module)
    instantiation.add("fileSetRef").add("localName", "rtl")
    ports = model.add("ports")
    for port in design.ports:
        _add_port(ports, port)


def _add_port(ports: _Element, port: Port) -> None:
    element = ports.add("port")
    element.add("name", port.name)
    wire = element.add("wire")
    wire.add("direction", port.direction)
    if port.width > 1:
        vector = wire.add("vectors").add("vector")
        vector.add("left", port.width - 1)
        vector.add("right", 0)


def _add_files(root: _Element, design: Verilog) -> None:
    sets = root.add("fileSets").add("fileSet")
    sets.add("name", "rtl")
    for name in (f"{design.module}.v",):
        file = sets.add("file")
        file.add("name", name)
        file.add("fileType", "verilogSource")
