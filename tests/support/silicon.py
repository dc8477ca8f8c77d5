"""Bytes of real Statistical Profiling Units, from `data/silicon.json`."""

import json
from dataclasses import dataclass
from itertools import groupby

from tests.support.paths import DATA

__all__ = ["Vector", "merge_padding", "vectors"]

_PATH = DATA / "silicon.json"


@dataclass(frozen=True)
class Vector:
    """Bytes, and their meaning in the words of `perf report -D`; `expect` is empty where it was not measured."""

    name: str
    quality: str
    data: bytes
    expect: list[str]

    @property
    def hand_edited(self) -> bool:
        """Whether the author altered the bytes: such bytes test error paths alone."""
        return "HAND-EDITED" in self.quality


def vectors(groups: str) -> list[Vector]:
    """Return the vectors of these groups, each a letter that `data/README.md` explains."""
    return [
        Vector(entry["name"], entry["quality"], bytes.fromhex(entry["hex"]), entry["expect"])
        for entry in json.loads(_PATH.read_text())
        if entry["name"][0] in groups
    ]


def merge_padding(lines: list[str]) -> list[str]:
    """Return the lines with each run of padding packets as one `PAD`."""
    return [line for text, run in groupby(lines) for line in (["PAD"] if text == "PAD" else run)]
