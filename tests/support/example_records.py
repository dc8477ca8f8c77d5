"""Records that several tests share: facts in the form of `decode --json`, and bytes."""

import random
from typing import Any

__all__ = ["BRANCH", "LOAD", "OTHER", "PLAIN", "RECORD", "changed", "of_form", "random_branch"]

RECORD = bytes.fromhex("b0 00 10 00 00 00 00 00 80 48 00 52 02 00 99 02 00 98 03 00 71 01 00 00 00 00 00 00 00")
"""A record without padding."""

LOAD: dict[str, Any] = {
    "pc": {"address": "0x1000", "el": 1, "ns": 1},
    "operation": {"kind": "load", "form": "general"},
    "events": [1, 2, 4],
    "issue": 4,
    "total": 12,
    "va": "0xff00000000001234",
    "translation": 1,
    "pa": {"address": "0x80001234", "ns": 1},
    "data_source": 9,
    "context_el2": 3,
    "timestamp": 99,
}
BRANCH: dict[str, Any] = {
    "pc": {"address": "0x1000", "el": 0, "ns": 1},
    "operation": {"kind": "branch", "conditional": True},
    "events": [1, 6],
    "issue": 4,
    "total": 5,
    "target": {"address": "0x1004", "el": 0, "ns": 1},
}
OTHER: dict[str, Any] = {
    "pc": {"address": 0x1000, "el": 0, "ns": 1},
    "operation": {"kind": "other"},
    "events": [1],
    "issue": 1,
    "total": 2,
}
PLAIN = {name: value for name, value in LOAD.items() if name not in ("data_source", "context_el2")}
"""The load without a data source and without the context of EL2."""


def changed(facts: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return `facts` with `changes`. None removes a fact; `a__b` is member b of a."""
    result = {name: dict(value) if isinstance(value, dict) else value for name, value in facts.items()}
    for name, value in changes.items():
        outer, _, inner = name.partition("__")
        into, key = (result[outer], inner) if inner else (result, outer)
        if value is None:
            into.pop(key)
        else:
            into[key] = value
    return result


def of_form(kind: str, form: str, base: dict[str, Any] = PLAIN, **attributes: Any) -> dict[str, Any]:
    """Return `base` with an operation of this kind and form, and further attributes of the operation."""
    return {**base, "operation": {"kind": kind, "form": form, **attributes}}


def random_branch(source: random.Random) -> dict[str, object]:
    """Return the facts of a branch with random addresses and times."""
    pc, target = ({"address": source.getrandbits(56), "el": 1, "ns": 1} for _ in range(2))
    return {
        "pc": pc,
        "target": target,
        "operation": {"kind": "branch"},
        "events": [1],
        "issue": source.randrange(4096),
        "total": source.randrange(4096),
        "timestamp": source.getrandbits(64),
    }
