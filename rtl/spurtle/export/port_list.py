"""Ports and their fields as JSON."""

import json
from dataclasses import asdict

from ..config import SPUConfig
from ..support.version import INTERFACE_VERSION, __version__
from .ports import Port
from .verilog import Verilog

__all__ = ["port_list"]


def port_list(config: SPUConfig, design: Verilog) -> str:
    """Return the ports and their fields as JSON."""
    content = {
        "spurtle": __version__,
        "interface": INTERFACE_VERSION,
        "module": design.module,
        "configuration": config.name,
        "options": design.options,
        "clock": "clk",
        "reset": {"port": design.reset.port, **asdict(design.reset)},
        "ports": [_port(port) for port in design.ports],
    }
    return json.dumps(content, indent=1) + "\n"


def _port(port: Port) -> dict[str, object]:
    described: dict[str, object] = {"name": port.name, "direction": port.direction, "width": port.width}
    if port.values:
        described["values"] = dict(port.values)
    if port.fields:
        described["fields"] = [
            {"name": field.name, "lsb": field.lsb, "width": field.width}
            | ({"values": dict(field.values)} if field.values else {})
            for field in port.fields
        ]
    return described
