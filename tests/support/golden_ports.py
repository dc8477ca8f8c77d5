"""Golden files of the top-level ports of each named configuration.

`python -m tests.support.golden_ports [NAME ...]` writes the files of the named configurations, by default all.
"""

import argparse
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
    """Write the golden files of the named configurations."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.golden_ports", description=main.__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(CONFIGS)}; default: all")
    names = parser.parse_args().names
    if unknown := sorted({*names} - {*CONFIGS}):
        parser.error(f"NAME must be one of {', '.join(CONFIGS)}, not {unknown[0]!r}")
    for name in names or CONFIGS:
        golden_file(name).write_text(port_list(ports(SPU(CONFIGS[name]))))


if __name__ == "__main__":
    main()
