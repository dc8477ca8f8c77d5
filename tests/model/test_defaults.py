"""Default values of the members: zero, except that the PE is in Non-secure state and EL1 owns the Profiling Buffer."""

from dataclasses import fields, is_dataclass
from typing import Any

from spurtle_sim.model.operation import Operation, Sample, Start
from spurtle_sim.model.pe import PEState


def nonzero_members(value: Any, name: str = "") -> dict[str, Any]:
    """Return the members that are neither zero nor None, by their paths."""
    if not is_dataclass(value):
        return {name: value} if value else {}
    parts = [nonzero_members(getattr(value, field.name), f"{name}.{field.name}".strip(".")) for field in fields(value)]
    return {path: number for part in parts for path, number in part.items()}


def test_operation_members_are_zero() -> None:
    assert nonzero_members(Operation()) == {}
    assert nonzero_members(Sample(start=Start(), operation=Operation())) == {"start.ns": 1}


def test_non_secure_el1_owns_the_buffer_and_no_access_is_trapped() -> None:
    state = nonzero_members(PEState())
    traps = {f"hdfg{kind}tr{second}_el2" for kind in ("r", "w") for second in ("", "2")}
    assert traps < state.keys()
    assert {name: value for name, value in state.items() if name not in traps} == {
        "ns": 1,
        "mdcr_el2_e2pb": 0b11,
        "mdcr_el3_nspb": 0b11,
        "mdcr_el3_enpmsn": 1,
        "mdcr_el3_enpms3": 1,
        "scr_el3_fgten": 1,
        "scr_el3_fgten2": 1,
        "count_enabled": 1,
    }
