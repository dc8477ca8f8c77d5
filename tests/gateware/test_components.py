# amaranth: UnusedElaboratable=no
"""Tests of the argument checks of components: a wrong argument raises an error with one sentence."""

import re
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any

import pytest
from amaranth.lib import wiring

from spurtle import arch
from spurtle.config import CONFIGS
from spurtle.gateware.access_choice import AccessChoice
from spurtle.gateware.cutter import Cutter
from spurtle.gateware.lfsr import LFSR
from spurtle.gateware.numbering import Numbering
from spurtle.gateware.packer import Packer
from spurtle.gateware.previous_target import PreviousTarget
from spurtle.gateware.register_access import RegisterAccess
from spurtle.gateware.registers import RegisterFile
from spurtle.gateware.spu import SPU
from spurtle.gateware.start_states import StartStates
from tests.support.gateware import components

CONFIGURED = [component for component in components() if "config" in signature(component).parameters]


def test_components_are_found() -> None:
    assert {SPU, RegisterFile, Cutter} < {*CONFIGURED}
    assert len(CONFIGURED) > 20


@pytest.mark.parametrize("component", CONFIGURED, ids=lambda component: component.__name__)
def test_the_name_of_a_configuration_is_rejected(component: Callable[..., wiring.Component]) -> None:
    more = {"shell": "axi4"} if "shell" in signature(component).parameters else {}
    with pytest.raises(TypeError, match=r"^config must be of type SPUConfig, not 'minimal'$"):
        component("minimal", **more)


MINIMAL = CONFIGS["minimal"]
PACKED = CONFIGS["kunpeng_920"]


@pytest.mark.parametrize(
    ("component", "arguments", "message"),
    [
        (LFSR, {"bits": 8, "draws": 1, "reset": 0}, "reset must be from 1 to 4294967295, not 0"),
        (LFSR, {"bits": 8, "draws": 1, "reset": 1 << 32}, "reset must be from 1 to 4294967295, not 4294967296"),
        (LFSR, {"bits": 12, "draws": 1, "reset": 1}, "bits must be from 1 to 11, not 12"),
        (LFSR, {"bits": 0, "draws": 1, "reset": 1}, "bits must be from 1 to 11, not 0"),
        (LFSR, {"bits": 8, "draws": 0, "reset": 1}, "draws must be from 1 to 32, not 0"),
        (
            AccessChoice,
            {"config": MINIMAL},
            "mops, gcs, sve or sme must be True to choose an access, not False in minimal",
        ),
        (
            PreviousTarget,
            {"config": MINIMAL},
            "pbt must be True for the previous branch target, not False as in minimal",
        ),
        (
            Cutter,
            {"config": PACKED},
            "layout must have fields of fixed size only, not elastic ones as in kunpeng_920",
        ),
        (
            Packer,
            {"config": MINIMAL},
            "layout must have an elastic field, not fields of fixed size only as in minimal",
        ),
        (
            StartStates,
            {"config": MINIMAL},
            "slots must be at least 2 for a memory of start states, not 1 as in minimal",
        ),
    ],
)
def test_an_argument_out_of_range(component: Callable[..., Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        component(**arguments)


def test_more_lanes_than_two_groups_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """`SPUConfig` rejects them first, unless its range is changed."""
    monkeypatch.setattr("spurtle.config.checks.check_range", lambda *_: None)
    twelve = replace(MINIMAL, name="twelve", ops_per_cycle=12)
    with pytest.raises(ValueError, match=r"^ops_per_cycle must be at most 8, two groups, not 12$"):
        Numbering(twelve)


@pytest.mark.parametrize(
    ("component", "where", "message"),
    [
        (RegisterAccess, {"crm": 9, "op2": 0}, "encoding of TWIN_EL1 must be its own, not that of PMSCR_EL1, 0x4c8"),
    ],
)
def test_a_register_with_the_encoding_of_another_is_rejected(
    component: Callable[..., Any], where: dict[str, int], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = replace(arch.PMSIRR_EL1, name="TWIN_EL1", **where)
    monkeypatch.setattr(arch, "REGISTERS", (*arch.REGISTERS, twin))
    with pytest.raises(ValueError, match=f"^{message}$"):
        component(MINIMAL)
