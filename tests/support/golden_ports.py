"""Golden files of the top-level ports of each named configuration.

`python -m tests.support.golden_ports [NAME ...]` writes the files of the named configurations, by default all.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

from spurtle.config import CONFIGS
from spurtle.export.ports import Port, ports
from spurtle.gateware.spu import SPU
from tests.support.paths import ROOT

__all__ = ["golden_file", "port_list"]


def golden_file(name: str) -> Path:
    """Return the file with the published ports of a named configuration."""
    return ROOT / "tests" / "export" / "golden" / f"{name}.ports"


def port_list(ports: Iterable[Port]) -> str:
    """Return the ports, one per line: direction, width in bits and name."""
    return "".join(f"{port.direction:3} {port.width:4} {port.name}\n" for port in ports)


def main() -> None:
    for name in sys.argv[1:] or CONFIGS:
        golden_file(name).write_text(port_list(ports(SPU(CONFIGS[name]))))


if __name__ == "__main__":
    main()
