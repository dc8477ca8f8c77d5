"""Records of Statistical Profiling Units in silicon, from `data/silicon.json`."""

import json
from dataclasses import dataclass
from itertools import groupby

from tests.support.paths import DATA

__all__ = ["Vector", "merge_padding", "vectors"]

_PATH = DATA / "silicon.json"


@dataclass(frozen=True)
class Vector:
    """Bytes of records.

    Members
    -------
    name, quality : str
        See `data/README.md`.
    data : bytes
    expect : list of str
        What `perf report -D` prints, one line per packet; empty if it is unknown.
    """

    name: str
    quality: str
    data: bytes
    expect: list[str]

    @property
    def hand_edited(self) -> bool:
        """Whether the author altered the bytes. Such bytes test only error paths."""
        return "HAND-EDITED" in self.quality


def vectors(groups: str) -> list[Vector]:
    """Return the vectors of these groups, which are letters. `data/README.md` describes them."""
    return [
        Vector(entry["name"], entry["quality"], bytes.fromhex(entry["hex"]), entry["expect"])
        for entry in json.loads(_PATH.read_text())
        if entry["name"][0] in groups
    ]


def merge_padding(lines: list[str]) -> list[str]:
    """Return the lines with each sequence of `PAD` merged into one."""
    return [line for text, run in groupby(lines) for line in (["PAD"] if text == "PAD" else run)]
