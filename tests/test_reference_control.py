"""D17.4, D17.6.3.1 and D17.6.9: when profiling is enabled, and what may be collected."""

from itertools import product

import pytest

from spurtle.arch import PMBLIMITR_EL1, PMBSR_EL1, PMSCR_EL1
from spurtle_sim.reference import control
from spurtle_sim.reference.control import PEState
from spurtle_sim.reference.registers import Registers


def test_the_conditions_for_profiling_are_all_needed():
    for e, s, el, ns, nse, debug, aarch32, e0spe, e1spe in product((0, 1), (0, 1), range(4), *[(0, 1)] * 6):
        registers = Registers(
            PMSCR_EL1=PMSCR_EL1.pack(E0SPE=e0spe, E1SPE=e1spe),
            PMBLIMITR_EL1=PMBLIMITR_EL1.pack(E=e),
            PMBSR_EL1=PMBSR_EL1.pack(S=s),
        )
        at_this_el = {0: e0spe, 1: e1spe, 2: 0, 3: 0}[el]
        # Neither Realm state nor Root state is Non-secure.
        expected = (e, s, ns, nse, aarch32, at_this_el) == (1, 0, 1, 0, 0, 1)
        pe = PEState(el=el, ns=ns, nse=nse, debug=debug, aarch32=aarch32)
        assert control.profiling_enabled(registers, pe) is (expected and not debug)
        assert control.branch_profiled(registers, el, ns, nse, aarch32) is expected


@pytest.mark.parametrize("el", [0, 1, 2, 3])
def test_contextidr_el1_is_collected_at_el0_and_el1(el: int):
    assert control.collect_contextidr_el1(Registers(PMSCR_EL1=PMSCR_EL1.pack(CX=1)), PEState(el=el)) is (el < 2)
    assert not control.collect_contextidr_el1(Registers(PMSCR_EL1=~PMSCR_EL1.pack(CX=1)), PEState(el=el))


def test_timestamp_and_physical_address_have_a_bit_each():
    assert control.collect_timestamp(Registers(PMSCR_EL1=PMSCR_EL1.pack(TS=1)))
    assert not control.collect_timestamp(Registers(PMSCR_EL1=~PMSCR_EL1.pack(TS=1)))
    assert control.collect_physical_address(Registers(PMSCR_EL1=PMSCR_EL1.pack(PA=1)))
    assert not control.collect_physical_address(Registers(PMSCR_EL1=~PMSCR_EL1.pack(PA=1)))
