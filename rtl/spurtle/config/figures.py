"""Area and clock of the named configurations, as `make bench` measured them last."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["FILE", "Figures", "figures"]

FILE = "figures.json"
"""Name of the file in this package. It holds the members of `Figures` for each configuration and device."""


@dataclass(frozen=True)
class Figures:
    """Area and clock of an SPU on a device.

    Parameters
    ----------
    lut4 : int
        Lookup tables with four inputs.
    fmax_mhz : float or None
        Maximum clock frequency in MHz. None if the circuit does not fit the device.
    """

    lut4: int
    fmax_mhz: float | None


def figures(config: str, device: str) -> Figures | None:
    """Return the figures of a named configuration on `ecp5` or `ice40`, or None if they were not measured."""
    row = _measured().get(config, {}).get(device)
    return None if row is None else Figures(**row)


@cache
def _measured() -> dict[str, dict[str, dict[str, Any]]]:
    return json.loads((resources.files("spurtle.config") / FILE).read_text(encoding="utf-8"))
