"""The proofs of the access selection fail for wrong circuits."""

from dataclasses import replace
from functools import partial

import pytest
from amaranth.hdl import Mux

from configurations import FEATURES
from formal.engine.proof import Result
from formal.engine.terms import Boolean, all_of
from formal.engine.transition import Wires, transition
from formal.sampling import access
from spurtle.arch import PMSVer
from spurtle.gateware.access_choice import AccessChoice
from tests.support.proofs import FaultMixin, check_faults
from tests.support.tiers import tiers

TWO = replace(FEATURES["minimal_sve_v1p2"], name="two", version=PMSVer.SPE_V1P3, mops=True, ops_per_cycle=2, ernd=True)
"""Two operations can be selected in a cycle, each with one of two accesses and an element."""


@pytest.mark.parametrize("count", tiers(fast=[2], full=[4]))
def test_seeded_faults_of_the_access_choice_fail(count: int) -> None:
    assert access.cover(TWO, transition(AccessChoice(TWO))).result is Result.PASS

    # The outputs of lanes that are not selected are unspecified: with both lanes selected, every output is specified.
    def both(wires: Wires) -> Boolean:
        return all_of(wires["selected__0"] == 1, wires["selected__1"] == 2)

    check_faults(lambda: AccessChoice(TWO), [partial(access.prove, TWO)], count=count, assuming=both)


class SwapsNumbers(AccessChoice):
    """The random numbers of the two selections are swapped."""

    def elaborate(self, platform):
        self.random = [*reversed(self.random)]
        return super().elaborate(platform)


class SharesBit(FaultMixin, AccessChoice):
    """The bit that selects one of two accesses is also a bit of the element."""

    def add_fault(self, m):
        for lane, element in enumerate(self.element):
            m.d.comb += element.eq(Mux(self.selected[-1][lane], self.random[-1], self.random[0]))


class ConstantAccess(FaultMixin, AccessChoice):
    """Destination and element are always 0."""

    def add_fault(self, m):
        m.d.comb += [self.destination.eq(0), *(element.eq(0) for element in self.element)]


class LowerHalf(FaultMixin, AccessChoice):
    """The elements of the upper half are never selected."""

    def add_fault(self, m):
        m.d.comb += [element[-1].eq(0) for element in self.element]


@pytest.mark.parametrize("wrong", [SwapsNumbers, SharesBit])
def test_misplaced_random_bits_fail(wrong: type[AccessChoice]) -> None:
    assert access.prove(TWO, transition(wrong(TWO))).result is Result.FAIL


def test_an_access_that_is_never_selected_is_not_covered() -> None:
    assert "destination by filter" in access.cover(TWO, transition(ConstantAccess(TWO))).evidence
    assert "element 255" in access.cover(TWO, transition(LowerHalf(TWO))).evidence
