"""Interface versions of the releases, and fingerprints of the interface.

`tests/export/golden/releases.json` has the interface version and the fingerprints of each release.
`python -m tests.support.interface_versions` adds the current release.
"""

import gc
import hashlib
import json
import warnings
from dataclasses import asdict, dataclass
from itertools import product

import yaml
from amaranth.hdl import UnusedElaboratable

from docs import timing
from spurtle.config import CONFIGS, NO_SHELL, SHELLS, SPUConfig
from spurtle.export.ports import Port, ports
from spurtle.gateware.spu import SPU
from spurtle.shell.shell import Shell
from spurtle.support.version import INTERFACE_VERSION, __version__
from tests.support.paths import ROOT

__all__ = ["RELEASES", "Release", "fingerprints", "releases", "with_release"]

RELEASES = ROOT / "tests" / "export" / "golden" / "releases.json"


@dataclass(frozen=True)
class Release:
    """Interface of a release.

    Parameters
    ----------
    version : str
        Version of the release.
    interface : int
        Interface version.
    fingerprints : dict of str to str
        Result of `fingerprints`.
    """

    version: str
    interface: int
    fingerprints: dict[str, str]


def releases() -> list[Release]:
    """Return the releases, the oldest first."""
    return [Release(**row) for row in json.loads(RELEASES.read_text())]


def fingerprints() -> dict[str, str]:
    """Return a hash of each part of the interface, by its name.

    The parts are the ports of each named configuration, with and without a shell, with their fields and values and the
    latency of the answer to the sampling point; and the waves of each timing diagram, which a test compares with the
    RTL.
    """
    parts: dict[str, object] = {}
    with warnings.catch_warnings(action="ignore", category=UnusedElaboratable):
        for (name, config), shell in product(CONFIGS.items(), (NO_SHELL, *SHELLS)):
            described = [asdict(port) for port in _ports(config, shell)]
            parts[f"ports of {name}, shell {shell}"] = described, config.answer_latency
        gc.collect()  # Amaranth warns when it frees a component that was not elaborated
    for path in sorted(timing.FOLDER.glob("*.yaml")):
        drawn = yaml.safe_load(path.read_text())
        parts[f"timing diagram {path.stem}"] = drawn["head"]["text"], drawn["signal"]
    return {name: hashlib.sha256(json.dumps(part).encode()).hexdigest()[:16] for name, part in parts.items()}


def _ports(config: SPUConfig, shell: str) -> tuple[Port, ...]:
    return ports(SPU(config) if shell == NO_SHELL else Shell(config, shell))


def with_release(known: list[Release], release: Release) -> list[Release]:
    """Return the releases and another one.

    Raises
    ------
    ValueError
        If the release is known, or its interface version is wrong. It must be one more than in the last release if a
        part of the interface has changed. Otherwise it can also be the same number, because the fingerprints do
        not cover all of the timing. A new configuration or shell is no change.
    """
    if not known:
        return [release]
    if release.version in {other.version for other in known}:
        raise ValueError(f"the release must be another one than {release.version}")
    last = known[-1]
    changed = [name for name, value in last.fingerprints.items() if release.fingerprints.get(name) != value]
    allowed = [last.interface + 1] if changed else [last.interface, last.interface + 1]
    if release.interface not in allowed:
        numbers = " or ".join(map(str, allowed))
        reason = f"changed since {last.version}: {'; '.join(changed) or 'nothing'}"
        raise ValueError(f"INTERFACE_VERSION must be {numbers}, not {release.interface}; {reason}")
    return [*known, release]


def main() -> None:
    """Add the current release to the file."""
    current = Release(__version__, INTERFACE_VERSION, fingerprints())
    rows = [asdict(release) for release in with_release(releases(), current)]
    RELEASES.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
