"""Differences between the words of `perf report -D` that are intended and those that each version prints."""

import re
from typing import Any

__all__ = ["SUBSTITUTIONS", "WORDS_COLUMN", "printed_words"]

WORDS_COLUMN = 62
"""Column of `perf report -D` at which the words of a packet begin."""

# Words that a version does not print, or prints in another form.

_ANY_VERSION: dict[str, Any] = {
    r"^(PC|TGT|PBT|PA)(.*) nse=1$": r"\1\2",
    r"^(LAT \d+) \(4\)$": r"\1 ",
    r"^TS (\d{19,})$": lambda match: f"TS {(int(match[1]) + (1 << 63)) % (1 << 64) - (1 << 63)}",  # signed
}
_STABLE: dict[str, Any] = {
    **_ANY_VERSION,
    r" (IMPDEF:\d+|L2D-\w+|HITM|LFB|SNOOPED|STREAMING-SVE|SMCU)\b": "",  # events 12 to 15, and from 19 on
    r"^(LD|ST) GCS( COMM)?$": r"\1",
    r"^OTHER( ASE| FP)+$": "OTHER INSN-OTHER",
    r"^OTHER( ASE| FP)+ COND-SELECT$": "OTHER COND-SELECT",
    r"^SME-OTHER.*$": "OTHER INSN-OTHER",
}
SUBSTITUTIONS: dict[str, dict[str, Any]] = {
    "6.1": {
        r"^(LD|ST) (MTE-TAG|MEMCPY|MEMSET)$": r"\1",
        r"^B( COND)?.* (GCS|CR-).*$": r"B\1",
        r"^PBT (\w+) el(\d) ns=(\d)( nse=1)?$": lambda match: (
            f"ADDR {int(match[1], 16) | int(match[2]) << 61 | int(match[3]) << 63 | bool(match[4]) << 60:#x} (4)"
        ),
        **_STABLE,
    },
    "6.12": _STABLE,
    "newest": {
        **_ANY_VERSION,
        r"^EV(.*)( IMPDEF:\d+)(.*)$": r"EV\1\3\2",
        r"^(LD|ST) EVLEN": r"\1 SVE-SME-REG EVLEN",
        r"^OTHER( ASE| FP| ASE FP)$": r"OTHER\1 INSN-OTHER",
        r"^SME-OTHER ETS all": f"SME-OTHER ETS {128 << 15}",
    },
}
"""For each version, patterns of the intended words and what the version prints instead."""


def printed_words(version: str, words: str) -> str:
    """Return the words that a version of perf prints for the intended `words`."""
    for pattern, instead in SUBSTITUTIONS[version].items():
        words = re.sub(pattern, instead, words)
    return words
