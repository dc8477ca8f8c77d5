"""Values of members that are not given: zero, but for a PE in Non-secure state whose EL1 owns the Profiling Buffer."""

from dataclasses import fields, is_dataclass
from typing import Any

from spurtle_sim.model.operation import Operation, Sample, Start
from spurtle_sim.model.pe import PEState


def given(value: Any, name: str = "") -> dict[str, Any]:
    """Return the members that are neither zero nor absent, by their paths."""
    if not is_dataclass(value):
        return {name: value} if value else {}
    parts = [given(getattr(value, field.name), f"{name}.{field.name}".strip(".")) for field in fields(value)]
    return {path: number for part in parts for path, number in part.items()}


def test_an_operation_is_nothing() -> None:
    assert given(Operation()) == {}
    assert given(Sample(start=Start(), operation=Operation())) == {"start.ns": 1}


def test_el1_of_non_secure_state_owns_the_buffer_and_nothing_traps() -> None:
    state = given(PEState())
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
