"""Bytes of real Statistical Profiling Units: those in `data/`, and those that may not be copied, where they are."""

import json
import os
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest

__all__ = ["Vector", "merge_padding", "others", "public"]

_HERE = Path(__file__).parent
_ELSEWHERE = Path(os.environ.get("SPURTLE_VECTORS", _HERE.parent.parent / "shared" / "vectors"))


@dataclass(frozen=True)
class Vector:
    """Some bytes, and what they say in the words of `perf report -D`: empty where the source does not tell."""

    name: str
    quality: str
    data: bytes
    expect: list[str]

    @property
    def hand_edited(self) -> bool:
        """Altered by its author: for error paths only."""
        return "HAND-EDITED" in self.quality


def _load(path: Path, groups: str) -> list[Vector]:
    return [
        Vector(entry["name"], entry["quality"], bytes.fromhex(entry["hex"]), entry["expect"])
        for entry in json.loads(path.read_text())
        if entry["name"][0] in groups
    ]


def public() -> list[Vector]:
    """Arm Neoverse N1, HiSilicon Kunpeng 920 and Arm's FVP, from `data/silicon.json`."""
    return _load(_HERE / "data" / "silicon.json", "CDEG")


def others(groups: str) -> list[Vector]:
    """A and B: Arm Neoverse N1; F: a HiSilicon mobile core. Skips the test where the file is not at hand."""
    path = _ELSEWHERE / "silicon.json"
    if not path.exists():
        pytest.skip(f"these vectors may not be copied: {path} is not there (SPURTLE_VECTORS)")
    return _load(path, groups)


def merge_padding(lines: list[str]) -> list[str]:
    """Several padding packets in a row as one `PAD`."""
    return [line for text, run in groupby(lines) for line in (["PAD"] if text == "PAD" else run)]
