"""Exact counts of executed operations by address, which the simulator knows and silicon does not.

`spurtle profile` writes them next to a perf.data file, with the hash of this file. The report compares them with the
sampled shares.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["ExactCounts", "HashedChunks", "exact_path", "read_exact"]

_FORMAT = 1
_TOTALS = ("sampled", "collided", "passed", "interrupts")


class ExactCounts(NamedTuple):
    """Executed operations of a run.

    Members
    -------
    counts : dict of int to int
        Numbers of executed operations by PC.
    totals : dict of str to int
        Samples that were `sampled`, that `collided` and that `passed` the filter; `interrupts` of the Profiling Buffer.
    """

    counts: dict[int, int]
    totals: dict[str, int]


def exact_path(profile: str) -> str:
    """Return the name of the file with the exact counts of a profile."""
    return f"{profile}.exact.json"


class HashedChunks:
    """Chunks of a file, and the content of its file of exact counts.

    Parameters
    ----------
    chunks : iterable of bytes
    exact : ExactCounts
    """

    def __init__(self, chunks: Iterable[bytes], exact: ExactCounts):
        self._chunks, self._exact = chunks, exact
        self._hash = hashlib.sha256()

    def profile(self) -> Iterator[bytes]:
        """Yield the chunks."""
        for chunk in self._chunks:
            self._hash.update(chunk)
            yield chunk

    def counts(self) -> Iterator[bytes]:
        """Yield the file of exact counts. It must be written after the chunks."""
        content = {
            "format": _FORMAT,
            "sha256": self._hash.hexdigest(),
            "operations": sum(self._exact.counts.values()),
            "totals": self._exact.totals,
            "counts": {},
        }
        # A program has so many addresses that `json.dumps` would take a second for them.
        counts = ",\n".join(f'"{pc:#x}": {count}' for pc, count in sorted(self._exact.counts.items()))
        text = json.dumps(content, indent=0)
        yield (text.replace('"counts": {}', f'"counts": {{\n{counts}\n}}') if counts else text).encode() + b"\n"


def read_exact(path: str, content: bytes) -> tuple[ExactCounts | None, str]:
    """Return the exact counts of the profile at `path` with this content, or None and a sentence with the reason."""
    file = exact_path(path)
    try:
        found: Any = json.loads(Path(file).read_bytes())
        if found["format"] != _FORMAT:
            return None, f"{file} has format {found['format']}, not {_FORMAT}: no exact shares"
        if found["sha256"] != hashlib.sha256(content).hexdigest():
            return None, f"{file} belongs to another profile (other hash): no exact shares"
        counts = {int(pc, 16): int(count) for pc, count in found["counts"].items()}
        return ExactCounts(counts, {name: int(found["totals"][name]) for name in _TOTALS}), ""
    except FileNotFoundError:
        return None, f"{file} is absent: no exact shares"
    except OSError as error:
        return None, f"{file} cannot be read ({error.strerror}): no exact shares"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, f"{file} is not a file of exact counts: no exact shares"
