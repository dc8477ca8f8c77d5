"""The proofs of what is permitted find what is wrong."""

from collections.abc import Callable, Iterator
from functools import partial
from unittest.mock import patch

import pytest
from amaranth.hdl import C, Cat, Mux, Signal

from configurations import FEATURES
from formal.control import control as proofs
from formal.engine.proof import Result, Verdict
from formal.engine.terms import BitVector, Boolean, Term, all_of, extract, if_else
from formal.engine.transition import Transition, Wires, transition
from spurtle.arch import PCT
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware.control import ProfilingControl
from spurtle.gateware.previous_target import PreviousTarget
from spurtle.interface.pe_state import el2_enabled
from spurtle_sim.model import control, pe
from spurtle_sim.model.spu import ReferenceSPU
from tests.support.proofs import FaultMixin, check_faults
from tests.support.tiers import tiers

EVERY = CONFIGS["v1p4"]


def every_proof(config: SPUConfig) -> Iterator[Callable[[SPUConfig, Transition], Verdict]]:
    """All that is proved of `ProfilingControl`, but for what can be reached."""
    yield from (partial(proofs.prove_permission, answer) for answer in proofs.ANSWERS)
    yield proofs.prove_new_owner
    if config.pbt:
        yield proofs.prove_branches
    yield proofs.prove_time


def asked(wires: Wires) -> Boolean:
    """Where each answer is looked at."""
    return all_of(
        proofs.promised(EVERY)(wires), wires["pe__el"] != 0, wires["rst"] == 0, wires["collect.timestamp"] == 1
    )


@pytest.mark.parametrize("count", tiers(long=[10]))
def test_seeded_faults_of_the_profiling_control_fail(count: int) -> None:
    proofs = [partial(prove, EVERY) for prove in every_proof(EVERY)]
    check_faults(lambda: ProfilingControl(EVERY), proofs, count=count, assuming=asked)


class Reserved(ProfilingControl):
    """Gives the buffer to Non-secure state in a reserved setting of MDCR_EL3.NSPB."""

    def _own(self, m, owner):
        super()._own(m, owner)
        m.d.comb += owner.ns.eq(self.pe.mdcr_el3_nspb.any())


class Trusting(ProfilingControl):
    """EL2 is enabled in Secure state whatever SCR_EL3.EEL2 says."""

    def elaborate(self, platform):
        with patch("spurtle.gateware.control.el2_enabled", lambda *_: C(1)):
            return super().elaborate(platform)


class Alike(ProfilingControl):
    """Takes Realm state for Non-secure state."""

    def _same_state(self, state, owner):
        return state.ns == owner.ns


class Guest(ProfilingControl):
    """EL1 owns the buffer of a host too."""

    def _profiled(self, state, owner):
        return super()._profiled(state, owner) | (
            self.running & self._same_state(state, owner) & self._tge(state) & ~owner.el2 & (state.el == 0)
        )


class Anywhere(ProfilingControl):
    """Of an access that FEAT_NV2 made any VA is collected where EL2 owns the buffer."""

    def _el2_profiled(self, owner):
        return owner.el2


class Current(ProfilingControl):
    """Looks at the current Security state where the owning one counts."""

    def _collect(self, m, owner):
        super()._collect(m, owner)
        higher = el2_enabled(self._config, self.pe, self.pe.ns)
        m.d.comb += self.collect.pa.eq((self.pmscr_el2.PA | ~higher) & (owner.el2 | self.pmscr.PA))


class Generous(ProfilingControl):
    """EL1 has the physical time that it asks for."""

    def _choose_offset(self, m, owner):
        super()._choose_offset(m, owner)
        with m.If(~owner.el2 & (self.pmscr.PCT == PCT.PHYSICAL)):
            m.d.comb += self.offset.eq(0)


class Literal(ProfilingControl):
    """Takes the reserved time for physical time."""

    def _time(self, m, name, pmscr):
        return Mux(pmscr.PCT == 0b10, PCT.PHYSICAL, pmscr.PCT)


class Undisturbed(ProfilingControl):
    """Has no host in which the virtual offset is zero."""

    def _choose_offset(self, m, owner):
        super()._choose_offset(m, owner)
        with m.If((self.pmscr.PCT == 0) & (self.pmscr_el2.PCT == 0)):
            m.d.comb += self.offset.eq(self.pe.cntvoff_el2)


class Stopped(ProfilingControl):
    """Collects the time of a system counter that does not count."""

    def _collect(self, m, owner):
        super()._collect(m, owner)
        m.d.comb += self.collect.timestamp.eq(Mux(owner.el2, self.pmscr_el2.TS, self.pmscr.TS))


class Level(FaultMixin, ProfilingControl):
    """Is not told of another owner in the same Security state."""

    def add_fault(self, m):
        before = Signal(2)
        m.d.sync += [before.eq(Cat(m.owner.ns, m.owner.nse)), self.new_owner.eq(before != Cat(m.owner.ns, m.owner.nse))]

    def _own(self, m, owner):
        super()._own(m, owner)
        m.owner = owner


WRONG = [
    (Reserved, ["enabled", "programmable", "collect.pa"]),
    (Trusting, ["enabled", "collect.context_el1", "collect.context_el2", "collect.pa", "time"]),
    (Alike, ["enabled", "branch"]),
    (Guest, ["enabled", "branch"]),
    (Anywhere, ["enabled", "collect.nv2_va"]),
    (Current, ["collect.pa"]),
    (Generous, ["time"]),
    (Literal, ["time"]),
    (Undisturbed, ["time"]),
    (Stopped, ["time"]),
    (Level, ["owner"]),
]
"""Circuits that are wrong, and by which proofs they are found."""

PROOFS = {
    **{answer: partial(proofs.prove_permission, answer) for answer in proofs.ANSWERS},
    "time": proofs.prove_time,
    "owner": proofs.prove_new_owner,
    "branch": proofs.prove_branches,
}


@pytest.mark.parametrize(
    ("wrong", "found"), tiers(fast=WRONG[::4], full=WRONG), ids=lambda case: getattr(case, "__name__", "")
)
def test_wrong_profiling_controls_fail(wrong: type[ProfilingControl], found: list[str]) -> None:
    system = transition(wrong(EVERY))
    assert [name for name in found if PROOFS[name](EVERY, system).result is not Result.FAIL] == []


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("profiling_enabled", "enabled"),
        ("collect_contextidr_el1", "collect.context_el1"),
        ("collect_contextidr_el2", "collect.context_el2"),
        ("collect_physical_address", "collect.pa"),
        ("collect_nv2_va", "collect.nv2_va"),
        ("branch_profiled", "branch"),
        ("timestamp", "time"),
    ],
)
def test_wrong_permissions_of_the_reference_fail(
    name: str, answer: str, monkeypatch: pytest.MonkeyPatch, permissions: Transition
) -> None:
    for wrong in (0, 1):
        monkeypatch.setattr(control, name, lambda *_, wrong=wrong, **__: wrong)
        assert PROOFS[answer](EVERY, permissions).result is Result.FAIL


@pytest.fixture(scope="module")
def permissions() -> Transition:
    return transition(ProfilingControl(EVERY))


def test_a_wrong_owner_in_the_reference_fails(monkeypatch: pytest.MonkeyPatch, permissions: Transition) -> None:
    monkeypatch.setattr(control, "owner", lambda config, state: pe.Owner(state.mdcr_el3_nspb >> 1, 0, 1))
    for name in ("enabled", "time", "owner", "branch"):
        assert PROOFS[name](EVERY, permissions).result is Result.FAIL


def test_an_output_that_is_never_asserted_is_not_covered() -> None:
    class Closed(ProfilingControl):
        """No timestamp is ever collected."""

        def _collect(self, m, owner):
            super()._collect(m, owner)
            m.d.comb += self.collect.timestamp.eq(0)

    config = FEATURES["minimal_ecv_poff"]
    assert proofs.cover(config, transition(ProfilingControl(config))).result is Result.PASS
    assert "collect.timestamp is 1" in proofs.cover(config, transition(Closed(config))).evidence


@pytest.mark.parametrize("count", tiers(fast=[2], full=[5]))
def test_seeded_faults_of_the_previous_target_fail(count: int) -> None:
    def relevant(name: str, value: BitVector) -> Term:
        """Of a target that is none nothing is asked."""
        return if_else(extract(0, 0, value) == 1, value, 0) if name == "previous" else value

    assert "previous" in transition(PreviousTarget(EVERY)).registers
    check_faults(
        lambda: PreviousTarget(EVERY),
        [partial(proofs.prove_previous, EVERY)],
        count=count,
        assuming=lambda wires: wires["previous.valid"] == 1,
        relevant=relevant,
    )


@pytest.mark.parametrize(("name", "returned"), [("take_branch", None), ("own", False)])
def test_a_reference_that_keeps_the_previous_target_fails(
    name: str, returned: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReferenceSPU, name, lambda *_, **__: returned)
    assert proofs.prove_previous(EVERY, transition(PreviousTarget(EVERY))).result is Result.FAIL


class Remembers(PreviousTarget):
    """Keeps the target for another owner."""

    def elaborate(self, platform):
        self.new_owner = C(0)
        return super().elaborate(platform)


def test_a_previous_target_that_is_kept_for_a_new_owner_fails() -> None:
    assert proofs.prove_previous(EVERY, transition(Remembers(EVERY))).result is Result.FAIL
