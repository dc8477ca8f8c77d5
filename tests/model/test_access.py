"""Outcome of System register accesses, and registers that are accessed (D24.7, "Accessing" of each register)."""

from dataclasses import replace
from itertools import product

import pytest

from configurations import FEATURES
from spurtle import arch
from spurtle.arch import Register
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle_sim.model.pe import PEState
from spurtle_sim.model.registers import Outcome, access

EVERY = CONFIGS["v1p4"]
BEFORE_RME = CONFIGS["arm_model"]
BEFORE_SEL2 = CONFIGS["neoverse_n1"]
EL2_ALONE = replace(FEATURES["minimal_el2"], fgt=True)
EL3_ALONE = FEATURES["minimal_el3"]
NEITHER = CONFIGS["minimal"]

VALUE, UNDEFINED, TRAP_EL2, TRAP_EL3 = Outcome

SAMPLING = {
    *("PMSCR_EL1", "PMSNEVFR_EL1", "PMSICR_EL1", "PMSIRR_EL1", "PMSFCR_EL1", "PMSEVFR_EL1", "PMSLATFR_EL1"),
    *("PMSIDR_EL1", "PMSDSFR_EL1", "IMP_PMSRNDR_EL1"),
}
BUFFER = {"PMBLIMITR_EL1", "PMBPTR_EL1", "PMBSR_EL1"}
READ_ONLY = {"PMSIDR_EL1", "PMBIDR_EL1"}
EL1 = SAMPLING | BUFFER | READ_ONLY
"""Registers that can be accessible from EL1."""

STATES = {"Secure": (0, 0), "Non-secure": (1, 0), "Realm": (1, 1)}
"""NS and NSE."""


def state(current: str = "Non-secure", /, **members: int) -> PEState:
    """Return a state of the PE at EL1 in a Security state that owns the Profiling Buffer and has EL2 enabled."""
    ns, nse = STATES[current]
    owning = {"mdcr_el3_nspb": ns << 1 | 1, "mdcr_el3_nspbe": nse}
    return PEState(**{"el": 1, "ns": ns, "nse": nse, "scr_el3_eel2": 1, **owning, **members})


def outcome(config: SPUConfig, register: Register, write: int, pe: PEState) -> Outcome:
    """Return the outcome of an access. Check that a register is accessed if and only if the outcome is VALUE."""
    found, accessed = access(config, register, write, pe)
    assert (found is VALUE) == (accessed is not None)
    return found


def with_outcome(config: SPUConfig, pe: PEState, expected: Outcome, write: int = 0) -> set[str]:
    """Return the names of the registers whose accesses have this outcome."""
    return {register.name for register in config.accessors if outcome(config, register, write, pe) is expected}


def names(config: SPUConfig) -> set[str]:
    """Return the names of the registers that can be accessible from EL1."""
    return EL1 & {register.name for register in config.registers}


def flipped(fields: int, bit: int) -> int:
    return fields ^ 1 << bit


# PMSFCR_EL1 in SysReg_v83A_xml-00bet5, before FEAT_SEL2 and FEAT_FGT.


@pytest.mark.parametrize(
    ("e2h", "tge", "ns", "levels"),
    [
        ("01", "01", "0", ("-", "RW", "n/a", "RW")),
        ("01", "0", "1", ("-", "RW", "RW", "RW")),
        ("01", "1", "1", ("-", "n/a", "RW", "RW")),
    ],
)
def test_accessibility_of_pmsfcr(e2h: str, tge: str, ns: str, levels: tuple[str, ...]) -> None:
    for hcr_e2h, hcr_tge, scr_ns, (el, accessible), write in product(e2h, tge, ns, enumerate(levels), (0, 1)):
        current = "Non-secure" if scr_ns == "1" else "Secure"
        pe = state(current, el=el, hcr_el2_e2h=int(hcr_e2h), hcr_el2_tge=int(hcr_tge))
        expected = {"-": (UNDEFINED, None), "RW": (VALUE, arch.PMSFCR_EL1)}
        if accessible != "n/a":
            assert access(BEFORE_SEL2, arch.PMSFCR_EL1, write, pe) == expected[accessible]


def test_encoding_of_pmsfcr() -> None:
    register = arch.PMSFCR_EL1
    assert (register.op1, register.crn, register.crm, register.op2) == (0b000, 0b1001, 0b1001, 0b100)


def test_traps_of_pmsfcr() -> None:
    for el, ns, tpms, nspb, write in product((1, 2, 3), (0, 1), (0, 1), range(4), (0, 1)):
        if el == 2 and ns == 0:
            continue
        pe = PEState(el=el, ns=ns, mdcr_el2_tpms=tpms, mdcr_el3_nspb=nspb)
        expected = VALUE
        if nspb != 0b01 and ns == 0 and el == 1:
            expected = TRAP_EL3
        if nspb != 0b11 and ns == 1 and el in (1, 2):
            expected = TRAP_EL3
        if tpms == 1 and ns == 1 and el == 1:
            expected = TRAP_EL2
        assert outcome(BEFORE_SEL2, arch.PMSFCR_EL1, write, pe) is expected, pe


# Implemented registers.


@pytest.mark.parametrize(
    ("config", "absent"),
    [
        (NEITHER, {"PMSNEVFR_EL1", "PMSDSFR_EL1", "PMSCR_EL2", "PMSCR_EL12"}),
        (EL3_ALONE, {"PMSNEVFR_EL1", "PMSDSFR_EL1", "PMSCR_EL12"}),
        (EL2_ALONE, {"PMSNEVFR_EL1", "PMSDSFR_EL1"}),
        (BEFORE_RME, {"PMSDSFR_EL1"}),
        (EVERY, set[str]()),
    ],
    ids=["neither", "EL3 alone", "EL2 alone", "arm_model", "v1p4"],
)
def test_unimplemented_registers_are_undefined(config: SPUConfig, absent: set[str]) -> None:
    top = PEState(el=3, hcr_el2_e2h=1)
    undefined = {
        register.name
        for register in (*arch.REGISTERS, arch.PMSCR_EL12)
        if outcome(config, register, 0, top) is UNDEFINED
    }
    assert undefined == absent


@pytest.mark.parametrize(
    "config", [EVERY, BEFORE_RME, BEFORE_SEL2, EL2_ALONE, EL3_ALONE, NEITHER], ids=lambda c: c.name
)
def test_el1_accesses_all_registers_except_those_of_el2(config: SPUConfig) -> None:
    """No access is trapped in the default `PEState`."""
    accessible = names(config)
    assert with_outcome(config, PEState(el=1), VALUE) == accessible
    assert with_outcome(config, PEState(el=1), VALUE, write=1) == accessible - READ_ONLY
    for write in (0, 1):
        assert (
            with_outcome(config, PEState(el=1), TRAP_EL2, write) | with_outcome(config, PEState(el=1), TRAP_EL3, write)
            == set()
        )
        assert with_outcome(config, PEState(el=0), UNDEFINED, write) == {register.name for register in config.accessors}


@pytest.mark.parametrize("el", range(1, 4))
def test_id_registers_are_read_only(el: int) -> None:
    pe = state(el=el, hcr_el2_e2h=1)
    assert with_outcome(EVERY, pe, UNDEFINED, write=1) - with_outcome(EVERY, pe, UNDEFINED) == READ_ONLY


def test_el3_accesses_pmscr_el2_without_el2() -> None:
    for write in (0, 1):
        assert access(EL3_ALONE, arch.PMSCR_EL2, write, state(el=3)) == (VALUE, arch.PMSCR_EL2)
        assert access(EL3_ALONE, arch.PMSCR_EL2, write, state(el=1)) == (UNDEFINED, None)
        assert access(EL3_ALONE, arch.PMSCR_EL1, write, state(el=3, hcr_el2_e2h=1)) == (VALUE, arch.PMSCR_EL1)


@pytest.mark.parametrize(
    ("current", "eel2", "e2h", "el", "accessed_names"),
    # Registers that PMSCR_EL1, PMSCR_EL2 and PMSCR_EL12 access.
    [
        ("Non-secure", 0, 0, 1, ("PMSCR_EL1", None, None)),
        ("Non-secure", 0, 1, 1, ("PMSCR_EL1", None, None)),
        ("Non-secure", 0, 0, 2, ("PMSCR_EL1", "PMSCR_EL2", None)),
        ("Non-secure", 0, 1, 2, ("PMSCR_EL2", "PMSCR_EL2", "PMSCR_EL1")),
        ("Non-secure", 0, 0, 3, ("PMSCR_EL1", "PMSCR_EL2", None)),
        ("Non-secure", 0, 1, 3, ("PMSCR_EL1", "PMSCR_EL2", "PMSCR_EL1")),
        ("Realm", 0, 1, 2, ("PMSCR_EL2", "PMSCR_EL2", "PMSCR_EL1")),
        ("Realm", 0, 1, 3, ("PMSCR_EL1", "PMSCR_EL2", "PMSCR_EL1")),
        ("Secure", 1, 1, 1, ("PMSCR_EL1", None, None)),
        ("Secure", 1, 0, 2, ("PMSCR_EL1", "PMSCR_EL2", None)),
        ("Secure", 1, 1, 2, ("PMSCR_EL2", "PMSCR_EL2", "PMSCR_EL1")),
        ("Secure", 1, 1, 3, ("PMSCR_EL1", "PMSCR_EL2", "PMSCR_EL1")),
        # HCR_EL2 has no effect if EL2 is not enabled.
        ("Secure", 0, 1, 1, ("PMSCR_EL1", None, None)),
        ("Secure", 0, 1, 3, ("PMSCR_EL1", "PMSCR_EL2", None)),
    ],
)
def test_aliases_of_pmscr(current: str, eel2: int, e2h: int, el: int, accessed_names: tuple[str | None, ...]) -> None:
    accessors = (arch.PMSCR_EL1, arch.PMSCR_EL2, arch.PMSCR_EL12)
    for write, tge in product((0, 1), (0, 1)):
        pe = state(current, el=el, scr_el3_eel2=eel2, hcr_el2_e2h=e2h, hcr_el2_tge=tge)
        accessed = [access(EVERY, register, write, pe) for register in accessors]
        assert tuple(register and register.name for _, register in accessed) == accessed_names
        assert {found for found, register in accessed if register is None} <= {UNDEFINED}


def test_all_other_registers_have_no_alias() -> None:
    for register, el, e2h in product(EVERY.registers, (1, 2, 3), (0, 1)):
        found, accessed = access(EVERY, register, 0, state(el=el, hcr_el2_e2h=e2h))
        if found is VALUE and register != arch.PMSCR_EL1:
            assert accessed == register


# Traps to EL2: MDCR_EL2.{TPMS, E2PB}.


@pytest.mark.parametrize(
    ("current", "eel2", "trapped"),
    [("Non-secure", 0, True), ("Realm", 0, True), ("Secure", 1, True), ("Secure", 0, False)],
)
def test_tpms_traps_sampling_registers_to_el2(current: str, eel2: int, trapped: bool) -> None:
    trapping = {"mdcr_el2_tpms": 1, "scr_el3_eel2": eel2}
    for write, absent in ((0, set[str]()), (1, READ_ONLY)):
        expected = SAMPLING - absent if trapped else set[str]()
        assert with_outcome(EVERY, state(current, **trapping), TRAP_EL2, write) == expected
        for el in (0, 2, 3):
            assert with_outcome(EVERY, state(current, el=el, **trapping), TRAP_EL2, write) == set()


@pytest.mark.parametrize(("e2pb", "trapped"), [(0b00, True), (0b01, False), (0b10, True), (0b11, False)])
def test_e2pb_traps_buffer_registers_to_el2(e2pb: int, trapped: bool) -> None:
    states = [("Non-secure", 0), ("Realm", 0), ("Secure", 1), ("Secure", 0)]
    for (current, eel2), write in product(states, (0, 1)):
        pe = state(current, mdcr_el2_e2pb=e2pb, scr_el3_eel2=eel2)
        el2_enabled = current != "Secure" or eel2 == 1
        assert with_outcome(EVERY, pe, TRAP_EL2, write) == (BUFFER if trapped and el2_enabled else set())
        for el in (0, 2, 3):
            assert with_outcome(EVERY, replace(pe, el=el), TRAP_EL2, write) == set()


@pytest.mark.parametrize(
    ("config", "current", "trapped"),
    [
        (BEFORE_SEL2, "Non-secure", True),
        (BEFORE_SEL2, "Secure", False),
        # Without EL3 there is only one Security state.
        (EL2_ALONE, "Non-secure", True),
        (EL2_ALONE, "Secure", True),
        (EL3_ALONE, "Non-secure", False),
        (NEITHER, "Non-secure", False),
    ],
)
def test_traps_to_el2_require_an_enabled_el2(config: SPUConfig, current: str, trapped: bool) -> None:
    expected = {**dict.fromkeys(SAMPLING & names(config), "mdcr_el2_tpms"), **dict.fromkeys(BUFFER, "mdcr_el2_e2pb")}
    for field, value in (("mdcr_el2_tpms", 1), ("mdcr_el2_e2pb", 0)):
        found = with_outcome(config, state(current, **{field: value}), TRAP_EL2)
        assert found == ({name for name, by in expected.items() if by == field} if trapped else set())


# Traps to EL2: HDFGRTR_EL2 and HDFGWTR_EL2, HDFGRTR2_EL2 and HDFGWTR2_EL2.

FINE_GRAINED = {
    23: "PMBLIMITR_EL1",
    24: "PMBPTR_EL1",
    25: "PMBSR_EL1",
    26: "PMSCR_EL1",
    27: "PMSEVFR_EL1",
    28: "PMSFCR_EL1",
    29: "PMSICR_EL1",
    30: "PMSIDR_EL1",
    31: "PMSIRR_EL1",
    32: "PMSLATFR_EL1",
    62: "PMSNEVFR_EL1",
    63: "PMBIDR_EL1",
}
FINE_GRAINED_2 = {19: "PMSDSFR_EL1"}


@pytest.mark.parametrize("bit", range(64))
def test_each_fine_grained_trap(bit: int) -> None:
    """One bit differs from the value that traps nothing. It traps either reads or writes, and only from EL1."""
    for suffix, write in product(("", "2"), (0, 1)):
        fields = f"hdfg{'w' if write else 'r'}tr{suffix}_el2"
        pe = state(**{fields: flipped(getattr(PEState(), fields), bit)})
        name = (FINE_GRAINED_2 if suffix else FINE_GRAINED).get(bit)
        expected = {name} - (READ_ONLY if write else set()) if name else set()
        assert with_outcome(EVERY, pe, TRAP_EL2, write) == expected
        assert with_outcome(EVERY, pe, TRAP_EL2, 1 - write) == set()
        for el in (0, 2, 3):
            assert with_outcome(EVERY, replace(pe, el=el), TRAP_EL2, write) == set()
        assert with_outcome(EVERY, replace(pe, ns=0, mdcr_el3_nspb=0b01, scr_el3_eel2=0), TRAP_EL2, write) == set()


def test_fine_grained_traps_with_inverted_polarity() -> None:
    nothing = state(hdfgrtr_el2=0, hdfgwtr_el2=0, hdfgrtr2_el2=0, hdfgwtr2_el2=0)
    everything = replace(nothing, hdfgrtr_el2=(1 << 64) - 1, hdfgrtr2_el2=(1 << 64) - 1)
    for write in (0, 1):
        assert with_outcome(EVERY, nothing, TRAP_EL2, write) == {"PMSNEVFR_EL1", "PMSDSFR_EL1"}
    assert with_outcome(EVERY, everything, TRAP_EL2) == set(FINE_GRAINED.values()) - {"PMSNEVFR_EL1"}


def test_el3_enables_fine_grained_traps() -> None:
    """Without the enable, FEAT_FGT traps nothing, and the fields of FEAT_FGT2 are treated as zero."""
    fields = dict.fromkeys(("hdfgrtr_el2", "hdfgwtr_el2"), 1 << 28)
    for write in (0, 1):
        assert with_outcome(EVERY, state(scr_el3_fgten=1, **fields), TRAP_EL2, write) == {"PMSFCR_EL1", "PMSNEVFR_EL1"}
        assert with_outcome(EVERY, state(scr_el3_fgten=0, **fields), TRAP_EL2, write) == set()
        for fgten in (0, 1):
            assert with_outcome(EVERY, state(scr_el3_fgten=fgten, scr_el3_fgten2=0), TRAP_EL2, write) == {"PMSDSFR_EL1"}
        # Without EL3 the traps are always enabled.
        assert with_outcome(EL2_ALONE, state(scr_el3_fgten=0, **fields), TRAP_EL2, write) == {"PMSFCR_EL1"}
    without = replace(EVERY, name="v1p4_without_el3", el3=False, sel2=False, rme=False)
    assert with_outcome(without, state(scr_el3_fgten2=0), TRAP_EL2) == set()
    assert with_outcome(without, state(hdfgrtr2_el2=0), TRAP_EL2) == {"PMSDSFR_EL1"}


def test_fine_grained_traps_require_their_features() -> None:
    # FEAT_FGT2 traps only the register of FEAT_SPE_FDS.
    plain = EVERY.layout.without(Packet.DATA_SOURCE)
    first = replace(EVERY, name="v1p4_without_fgt2", fgt2=False, fds=False, data_source_bytes=0, layout=plain)
    neither = replace(first, name="v1p4_without_fgt", fgt=False)
    pe = state(hdfgrtr_el2=1 << 28, hdfgrtr2_el2=0, scr_el3_fgten2=0)
    assert with_outcome(first, pe, TRAP_EL2) == {"PMSFCR_EL1", "PMSNEVFR_EL1"}
    assert with_outcome(neither, pe, TRAP_EL2) == set()


# Traps to EL3: MDCR_EL3.{NSPBE, NSPB}, EnPMSN, EnPMS3.

INDEPENDENT_OF_OWNER = {"PMBIDR_EL1"}
"""Registers whose accesses do not depend on the owner of the buffer."""


@pytest.mark.parametrize(
    ("nspbe", "nspb", "untrapped"),
    [
        (0, 0b00, None),
        (0, 0b01, "Secure"),
        (0, 0b10, None),
        (0, 0b11, "Non-secure"),
        # Reserved values.
        (1, 0b00, None),
        (1, 0b01, "Secure"),
        (1, 0b10, None),
        (1, 0b11, "Realm"),
    ],
)
def test_nspb_traps_other_security_states_to_el3(nspbe: int, nspb: int, untrapped: str | None) -> None:
    for current, el, e2h, write in product(STATES, (1, 2), (0, 1), (0, 1)):
        pe = state(current, el=el, mdcr_el3_nspbe=nspbe, mdcr_el3_nspb=nspb, hcr_el2_e2h=e2h)
        reached = {register.name for register in EVERY.accessors} - with_outcome(EVERY, pe, UNDEFINED, write)
        trapped = set[str]() if current == untrapped else reached - INDEPENDENT_OF_OWNER
        assert with_outcome(EVERY, pe, TRAP_EL3, write) == trapped
        assert with_outcome(EVERY, pe, VALUE, write) == reached - trapped
        assert with_outcome(EVERY, replace(pe, el=3), TRAP_EL3, write) == set()


@pytest.mark.parametrize("nspbe", (0, 1))
@pytest.mark.parametrize(
    ("nspb", "untrapped"), [(0b00, None), (0b01, "Secure"), (0b10, None), (0b11, "Non-secure")], ids=str
)
@pytest.mark.parametrize("config", [BEFORE_RME, BEFORE_SEL2, EL3_ALONE], ids=lambda config: config.name)
def test_nspb_without_rme(config: SPUConfig, nspbe: int, nspb: int, untrapped: str | None) -> None:
    """NSPBE and NSE have no effect."""
    for current, nse in product(("Secure", "Non-secure"), (0, 1)):
        pe = state(current, nse=nse, mdcr_el3_nspbe=nspbe, mdcr_el3_nspb=nspb)
        trapped = set[str]() if current == untrapped else names(config) - INDEPENDENT_OF_OWNER
        assert with_outcome(config, pe, TRAP_EL3) == trapped


@pytest.mark.parametrize("config", [EL2_ALONE, NEITHER], ids=lambda config: config.name)
def test_no_traps_to_el3_without_el3(config: SPUConfig) -> None:
    for current, nspb, el in product(("Secure", "Non-secure"), range(4), (1, 2)):
        pe = state(current, el=el, mdcr_el3_nspb=nspb, mdcr_el3_enpmsn=0, mdcr_el3_enpms3=0)
        assert with_outcome(config, pe, VALUE) >= names(config)


@pytest.mark.parametrize(("field", "name"), [("enpmsn", "PMSNEVFR_EL1"), ("enpms3", "PMSDSFR_EL1")])
def test_el3_enables_access_to_pmsnevfr_and_pmsdsfr(field: str, name: str) -> None:
    for current, el, write in product(STATES, (1, 2), (0, 1)):
        pe = state(current, el=el, **{f"mdcr_el3_{field}": 0})
        assert with_outcome(EVERY, pe, TRAP_EL3, write) == {name}
        assert with_outcome(EVERY, replace(pe, el=3), TRAP_EL3, write) == set()


# Priorities.


def test_trap_to_el2_has_priority_over_trap_to_el3() -> None:
    to_el3 = {"mdcr_el3_nspb": 0b00, "mdcr_el3_enpmsn": 0, "mdcr_el3_enpms3": 0}
    assert with_outcome(EVERY, state(**to_el3), TRAP_EL3) == EL1 - INDEPENDENT_OF_OWNER
    for write, absent in ((0, set[str]()), (1, READ_ONLY)):
        pe = state(mdcr_el2_tpms=1, mdcr_el2_e2pb=0b00, **to_el3)
        assert with_outcome(EVERY, pe, TRAP_EL2, write) == (SAMPLING | BUFFER) - absent
        assert with_outcome(EVERY, replace(pe, el=2), TRAP_EL2, write) == set()
        # If EL2 is not enabled, the access is trapped to EL3.
        secure = replace(pe, ns=0, mdcr_el3_nspb=0b10, scr_el3_eel2=0)
        assert with_outcome(EVERY, secure, TRAP_EL2, write) == set()
        assert with_outcome(EVERY, secure, TRAP_EL3, write) == (SAMPLING | BUFFER) - absent
    fine = state(hdfgrtr_el2=PEState().hdfgrtr_el2 | 1 << 28, **to_el3)
    assert with_outcome(EVERY, fine, TRAP_EL2) == {"PMSFCR_EL1"}


def test_undefined_has_priority_over_traps() -> None:
    trapping = {"mdcr_el2_tpms": 1, "mdcr_el2_e2pb": 0, "mdcr_el3_nspb": 0, "hdfgwtr_el2": (1 << 64) - 1}
    everything = {register.name for register in EVERY.accessors}
    for write, absent in ((0, set[str]()), (1, READ_ONLY)):
        assert with_outcome(EVERY, state(el=0, **trapping), UNDEFINED, write) == everything
        assert with_outcome(EVERY, state(el=1, **trapping), UNDEFINED, write) == {"PMSCR_EL2", "PMSCR_EL12"} | absent
        assert with_outcome(EVERY, state(el=2, **trapping), UNDEFINED, write) == {"PMSCR_EL12"} | absent
