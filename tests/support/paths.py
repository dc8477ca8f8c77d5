"""Folders of the repository that the tests read."""

from pathlib import Path

__all__ = ["DATA", "ROOT", "WORKLOADS"]

ROOT = Path(__file__).resolve().parents[2]

WORKLOADS = ROOT / "sim" / "workloads"
"""Static AArch64 Linux programs."""

DATA = ROOT / "tests" / "data"
