"""Owner of the buffer, enabled profiling, and permissions to collect (D17.4, D17.6.3.1, D17.6.4.2 and D17.6.9)."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from configurations import FEATURES
from spurtle.arch import PMBIDR_EL1, PMBLIMITR_EL1, PMBSR_EL1, PMSCR_EL1, PMSCR_EL2
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.model import control
from spurtle_sim.model.pe import Owner, PEState
from spurtle_sim.model.registers import Registers

EVERY = CONFIGS["v1p4"]
EL3_ALONE = FEATURES["minimal_el3"]
EL2_ALONE = FEATURES["minimal_el2"]
NEITHER = CONFIGS["minimal"]
BEFORE_SEL2 = CONFIGS["neoverse_n1"]
BEFORE_RME = CONFIGS["arm_model"]

STATES = {"Secure": (0, 0), "Non-secure": (1, 0), "Realm": (1, 1), "Root": (0, 1)}
"""NS and NSE."""

FULL = PMBLIMITR_EL1.pack(E=1)
ALL_EL1 = PMSCR_EL1.pack(E0SPE=1, E1SPE=1, CX=1, PA=1, TS=1)
ALL_EL2 = PMSCR_EL2.pack(E0HSPE=1, E2SPE=1, CX=1, PA=1, TS=1)


def running(*, el1: int = ALL_EL1, el2: int = ALL_EL2) -> Registers:
    return Registers(PMBLIMITR_EL1=FULL, PMSCR_EL1=el1, PMSCR_EL2=el2)


def state(owning: str, e2pb: int, current: str | None = None, /, **members: int) -> PEState:
    """Return a state of the PE in the Security state `current`, by default the owning one."""
    owner_ns, owner_nse = STATES[owning]
    ns, nse = STATES[current or owning]
    return PEState(ns=ns, nse=nse, mdcr_el3_nspb=owner_ns << 1, mdcr_el3_nspbe=owner_nse, mdcr_el2_e2pb=e2pb, **members)


# The owner: D17.4, D24.7 (MDCR_EL3.{NSPBE, NSPB}, MDCR_EL2.E2PB).


@pytest.mark.parametrize(
    ("config", "nspbe", "nspb", "eel2", "e2pb", "owner"),
    [
        (EVERY, 0, 0b00, 0, 0b00, ("Secure", 1)),
        (EVERY, 0, 0b01, 0, 0b00, ("Secure", 1)),
        (EVERY, 0, 0b00, 1, 0b00, ("Secure", 2)),
        (EVERY, 0, 0b01, 1, 0b00, ("Secure", 2)),
        (EVERY, 0, 0b01, 1, 0b01, ("Secure", 1)),
        (EVERY, 0, 0b01, 1, 0b10, ("Secure", 1)),
        (EVERY, 0, 0b01, 1, 0b11, ("Secure", 1)),
        (EVERY, 0, 0b10, 0, 0b00, ("Non-secure", 2)),
        (EVERY, 0, 0b11, 0, 0b00, ("Non-secure", 2)),
        (EVERY, 0, 0b11, 1, 0b01, ("Non-secure", 1)),
        (EVERY, 0, 0b11, 0, 0b10, ("Non-secure", 1)),
        (EVERY, 0, 0b11, 0, 0b11, ("Non-secure", 1)),
        (EVERY, 1, 0b10, 0, 0b00, ("Realm", 2)),
        (EVERY, 1, 0b11, 0, 0b00, ("Realm", 2)),
        (EVERY, 1, 0b10, 1, 0b11, ("Realm", 1)),
        # Reserved values.
        (EVERY, 1, 0b00, 0, 0b00, ("Secure", 1)),
        (EVERY, 1, 0b01, 1, 0b00, ("Secure", 2)),
        # NSPBE requires FEAT_RME, EEL2 requires FEAT_SEL2, and E2PB requires EL2.
        (BEFORE_RME, 1, 0b11, 0, 0b00, ("Non-secure", 2)),
        (BEFORE_RME, 1, 0b01, 1, 0b00, ("Secure", 2)),
        (BEFORE_SEL2, 0, 0b00, 1, 0b00, ("Secure", 1)),
        (BEFORE_SEL2, 0, 0b10, 0, 0b00, ("Non-secure", 2)),
        (EL3_ALONE, 0, 0b00, 1, 0b00, ("Secure", 1)),
        (EL3_ALONE, 1, 0b10, 1, 0b00, ("Non-secure", 1)),
    ],
)
def test_owner_of_the_buffer(config: SPUConfig, nspbe: int, nspb: int, eel2: int, e2pb: int, owner: tuple[str, int]):
    """The owner does not depend on the current Exception level and Security state."""
    for ns, nse, el in product((0, 1), (0, 1), range(4)):
        pe = PEState(
            el=el,
            ns=ns,
            nse=nse,
            mdcr_el2_e2pb=e2pb,
            mdcr_el3_nspb=nspb,
            mdcr_el3_nspbe=nspbe,
            scr_el3_eel2=eel2,
        )
        assert control.owner(config, pe) == Owner(*STATES[owner[0]], owner[1])


@pytest.mark.parametrize(
    ("config", "ns", "e2pb", "el"),
    [(NEITHER, 0, 0b00, 1), (NEITHER, 1, 0b00, 1), (EL2_ALONE, 1, 0b00, 2), (EL2_ALONE, 1, 0b11, 1)],
)
def test_only_security_state_owns_the_buffer_without_el3(config: SPUConfig, ns: int, e2pb: int, el: int):
    for nspb, nspbe in product(range(4), (0, 1)):
        pe = PEState(ns=ns, mdcr_el2_e2pb=e2pb, mdcr_el3_nspb=nspb, mdcr_el3_nspbe=nspbe)
        assert control.owner(config, pe) == Owner(ns, 0, el)
        assert control.profiling_enabled(config, running(), pe)


# Profiling enabled: D17.4.

DECIDING = {
    "E0SPE": ("el1", PMSCR_EL1.fields["E0SPE"].mask),
    "E1SPE": ("el1", PMSCR_EL1.fields["E1SPE"].mask),
    "E2SPE": ("el2", PMSCR_EL2.fields["E2SPE"].mask),
    "E0HSPE": ("el2", PMSCR_EL2.fields["E0HSPE"].mask),
}


def assert_decided_by(config: SPUConfig, pe: PEState, bit: str | None):
    """Check that profiling is enabled if only `bit` is one, and disabled if only `bit` is zero.

    If `bit` is None, profiling is always disabled.
    """
    if bit is None:
        assert not control.profiling_enabled(config, running(el1=(1 << 64) - 1, el2=(1 << 64) - 1), pe)
        return
    register, mask = DECIDING[bit]
    others = {"el1": 0, "el2": 0}
    assert control.profiling_enabled(config, running(**(others | {register: mask})), pe)
    everything = {"el1": ALL_EL1, "el2": ALL_EL2}
    assert not control.profiling_enabled(config, running(**(everything | {register: everything[register] - mask})), pe)


@pytest.mark.parametrize(
    ("owning", "eel2", "e2pb", "tge", "bits"),
    # By Exception level.
    [
        ("Non-secure", 0, 0b11, 0, ("E0SPE", "E1SPE", None, None)),
        ("Non-secure", 0, 0b11, 1, (None, None, None, None)),
        ("Non-secure", 1, 0b01, 1, (None, None, None, None)),
        ("Non-secure", 0, 0b00, 0, ("E0SPE", "E1SPE", "E2SPE", None)),
        ("Non-secure", 0, 0b00, 1, ("E0HSPE", "E1SPE", "E2SPE", None)),
        ("Realm", 0, 0b11, 0, ("E0SPE", "E1SPE", None, None)),
        ("Realm", 0, 0b11, 1, (None, None, None, None)),
        ("Realm", 0, 0b00, 0, ("E0SPE", "E1SPE", "E2SPE", None)),
        ("Realm", 0, 0b00, 1, ("E0HSPE", "E1SPE", "E2SPE", None)),
        # EL2 is disabled in Secure state, so its registers have no effect.
        ("Secure", 0, 0b00, 0, ("E0SPE", "E1SPE", None, None)),
        ("Secure", 0, 0b00, 1, ("E0SPE", "E1SPE", None, None)),
        ("Secure", 1, 0b11, 0, ("E0SPE", "E1SPE", None, None)),
        ("Secure", 1, 0b11, 1, (None, None, None, None)),
        ("Secure", 1, 0b00, 0, ("E0SPE", "E1SPE", "E2SPE", None)),
        ("Secure", 1, 0b00, 1, ("E0HSPE", "E1SPE", "E2SPE", None)),
    ],
)
def test_where_profiling_is_enabled(owning: str, eel2: int, e2pb: int, tge: int, bits: tuple[str | None, ...]):
    for el, bit in enumerate(bits):
        for e2h in (0, 1):
            pe = state(owning, e2pb, el=el, scr_el3_eel2=eel2, hcr_el2_tge=tge, hcr_el2_e2h=e2h)
            assert_decided_by(EVERY, pe, bit)
            assert_decided_by(EVERY, replace(pe, debug=1), None)
            assert_decided_by(EVERY, replace(pe, aarch32=1), None)
        # In another Security state profiling is disabled at every Exception level.
        for current in STATES:
            if current != owning:
                pe = state(owning, e2pb, current, el=el, scr_el3_eel2=eel2, hcr_el2_tge=tge)
                assert_decided_by(EVERY, pe, None)


@pytest.mark.parametrize(
    ("config", "ns", "bits"),
    [
        (NEITHER, 1, ("E0SPE", "E1SPE", None, None)),
        (NEITHER, 0, ("E0SPE", "E1SPE", None, None)),
        (EL3_ALONE, 1, ("E0SPE", "E1SPE", None, None)),
        (EL3_ALONE, 0, (None, None, None, None)),
        (EL2_ALONE, 1, ("E0HSPE", "E1SPE", "E2SPE", None)),
        (BEFORE_SEL2, 1, ("E0HSPE", "E1SPE", "E2SPE", None)),
        (BEFORE_SEL2, 0, (None, None, None, None)),
    ],
)
def test_where_profiling_is_enabled_without_el2_or_el3(config: SPUConfig, ns: int, bits: tuple[str | None, ...]):
    """EL2, which runs a host, is the owner if it is implemented. With EL3 the owning Security state is Non-secure."""
    for el, bit in enumerate(bits):
        pe = PEState(el=el, ns=ns, nse=1, mdcr_el2_e2pb=0, hcr_el2_tge=1, scr_el3_eel2=1)
        assert_decided_by(config, pe, bit)


@pytest.mark.parametrize("e2pb", [0b00, 0b11])
def test_buffer_must_be_enabled_and_not_stopped(e2pb: int):
    for e, s in product((0, 1), (0, 1)):
        registers = replace(running(), PMBLIMITR_EL1=PMBLIMITR_EL1.pack(E=e), PMBSR_EL1=PMBSR_EL1.pack(S=s))
        assert control.profiling_enabled(EVERY, registers, state("Realm", e2pb)) is (e == 1 and s == 0)


def test_branch_is_profiled_according_to_its_execution_state():
    """Only the fields of System registers in the current state matter. The PE can have entered EL3 in the meantime."""
    now = PEState(el=3, ns=0, nse=1, debug=1, aarch32=1, mdcr_el2_e2pb=0)
    for el, ns, nse, aarch32 in product(range(4), (0, 1), (0, 1), (0, 1)):
        profiled = control.branch_profiled(EVERY, running(), now, el=el, ns=ns, nse=nse, aarch32=aarch32)
        assert profiled is (el < 3 and (ns, nse, aarch32) == (1, 0, 0))


def test_e0hspe_enables_profiling_of_a_branch_in_a_host():
    """EL2 is not enabled in Secure state, the current Security state of the PE."""
    now = PEState(el=3, ns=0, mdcr_el2_e2pb=0, hcr_el2_tge=1)
    for e0hspe in (0, 1):
        registers = running(el1=0, el2=PMSCR_EL2.pack(E0HSPE=e0hspe))
        assert control.branch_profiled(EVERY, registers, now, el=0, ns=1, nse=0, aarch32=0) == e0hspe


def test_security_state_of_a_branch_is_ignored_without_el3():
    for ns, nse in product((0, 1), (0, 1)):
        assert control.branch_profiled(NEITHER, running(), PEState(ns=1), el=0, ns=ns, nse=nse, aarch32=0)


# PMBIDR_EL1.P: D24.7.


@pytest.mark.parametrize(
    ("owning", "owner_el", "current", "p"),
    # By Exception level.
    [
        ("Non-secure", 1, "Non-secure", (1, 0, 0, 0)),
        ("Non-secure", 2, "Non-secure", (1, 1, 0, 0)),
        ("Non-secure", 1, "Secure", (1, 1, 1, 0)),
        ("Non-secure", 2, "Secure", (1, 1, 1, 0)),
        ("Non-secure", 1, "Realm", (1, 1, 1, 0)),
        ("Secure", 1, "Secure", (1, 0, 0, 0)),
        ("Secure", 2, "Secure", (1, 1, 0, 0)),
        ("Secure", 1, "Non-secure", (1, 1, 1, 0)),
        ("Realm", 1, "Realm", (1, 0, 0, 0)),
        ("Realm", 2, "Realm", (1, 1, 0, 0)),
        ("Realm", 2, "Non-secure", (1, 1, 1, 0)),
        ("Realm", 2, "Root", (1, 1, 1, 0)),
    ],
)
def test_states_that_can_program_the_buffer(owning: str, owner_el: int, current: str, p: tuple[int, ...]):
    for el, expected in enumerate(p):
        pe = state(owning, 0b00 if owner_el == 2 else 0b01, current, el=el, scr_el3_eel2=1)
        p_bit = PMBIDR_EL1.unpack(Registers().read(EVERY, PMBIDR_EL1, pe)).P
        assert p_bit == expected


# Contexts: D17.6.9.


@pytest.mark.parametrize(
    ("config", "current", "eel2", "tge", "collected"),
    # CONTEXTIDR_EL1, then CONTEXTIDR_EL2: by Exception level.
    [
        (NEITHER, "Non-secure", 1, 1, ((1, 1, 0, 0), (0, 0, 0, 0))),
        (EL3_ALONE, "Secure", 1, 1, ((1, 1, 0, 0), (0, 0, 0, 0))),
        (EL2_ALONE, "Non-secure", 0, 0, ((1, 1, 0, 0), (1, 1, 1, 1))),
        (EL2_ALONE, "Non-secure", 0, 1, ((0, 0, 0, 0), (1, 1, 1, 1))),
        (BEFORE_SEL2, "Secure", 1, 1, ((1, 1, 0, 0), (0, 0, 0, 0))),
        (EVERY, "Secure", 0, 1, ((1, 1, 0, 0), (0, 0, 0, 0))),
        (EVERY, "Secure", 1, 0, ((1, 1, 0, 0), (1, 1, 1, 1))),
        (EVERY, "Secure", 1, 1, ((0, 0, 0, 0), (1, 1, 1, 1))),
        (EVERY, "Non-secure", 0, 0, ((1, 1, 0, 0), (1, 1, 1, 1))),
        (EVERY, "Non-secure", 0, 1, ((0, 0, 0, 0), (1, 1, 1, 1))),
        (EVERY, "Realm", 0, 0, ((1, 1, 0, 0), (1, 1, 1, 1))),
        (EVERY, "Realm", 0, 1, ((0, 0, 0, 0), (1, 1, 1, 1))),
    ],
)
def test_contexts(config: SPUConfig, current: str, eel2: int, tge: int, collected: tuple[tuple[int, ...], ...]):
    """Each context is controlled by CX of its own register, independently of the owner of the buffer."""
    cx = PMSCR_EL1.pack(CX=1)
    for el, owning, e2pb in product(range(4), ("Secure", "Non-secure"), (0b00, 0b11)):
        pe = state(owning, e2pb, current, el=el, scr_el3_eel2=eel2, hcr_el2_tge=tge)
        for el1, el2 in product((cx, ~cx), repeat=2):
            registers = running(el1=el1, el2=el2)
            expected = [of[el] == 1 and value == cx for of, value in zip(collected, (el1, el2), strict=True)]
            got = [
                control.collect_contextidr_el1(config, registers, pe),
                control.collect_contextidr_el2(config, registers, pe),
            ]
            assert got == expected


# Physical addresses: D17.6.9.


@pytest.mark.parametrize(
    ("config", "owning", "eel2", "e2pb", "collected"),
    # By {PMSCR_EL2.PA, PMSCR_EL1.PA}: 0b00, 0b01, 0b10, 0b11.
    [
        (NEITHER, "Non-secure", 0, 0b00, (0, 1, 0, 1)),
        (EL3_ALONE, "Secure", 1, 0b00, (0, 1, 0, 1)),
        (EL2_ALONE, "Non-secure", 0, 0b11, (0, 0, 0, 1)),
        (EL2_ALONE, "Non-secure", 0, 0b00, (0, 0, 1, 1)),
        (BEFORE_SEL2, "Secure", 1, 0b00, (0, 1, 0, 1)),
        (BEFORE_SEL2, "Non-secure", 0, 0b11, (0, 0, 0, 1)),
        (EVERY, "Secure", 0, 0b00, (0, 1, 0, 1)),
        (EVERY, "Secure", 1, 0b11, (0, 0, 0, 1)),
        (EVERY, "Secure", 1, 0b00, (0, 0, 1, 1)),
        (EVERY, "Non-secure", 0, 0b11, (0, 0, 0, 1)),
        (EVERY, "Non-secure", 0, 0b00, (0, 0, 1, 1)),
        (EVERY, "Realm", 0, 0b11, (0, 0, 0, 1)),
        (EVERY, "Realm", 0, 0b00, (0, 0, 1, 1)),
    ],
)
def test_physical_addresses(config: SPUConfig, owning: str, eel2: int, e2pb: int, collected: tuple[int, ...]):
    """The permission depends on the owning Security state, not on the current one."""
    pa = PMSCR_EL1.pack(PA=1)
    for index, expected in enumerate(collected):
        registers = running(el1=pa if index & 1 else ~pa, el2=pa if index & 2 else ~pa)
        for current, el, tge in product(STATES if config.el3 else [owning], range(4), (0, 1)):
            pe = state(owning, e2pb, current, el=el, scr_el3_eel2=eel2, hcr_el2_tge=tge)
            assert control.collect_physical_address(config, registers, pe) == expected


# The virtual address of a System register that FEAT_NV2 keeps in memory: D17.6.4.2.


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"el": 0}, True),
        ({"hcr_el2_tge": 1}, True),
        ({"mdcr_el2_e2pb": 0b11}, False),
        ({"ns": 0}, False),
        ({"nse": 1}, False),
        ({"nse": 1, "mdcr_el3_nspbe": 1}, True),
        ({"ns": 0, "mdcr_el3_nspb": 0}, False),
        ({"ns": 0, "mdcr_el3_nspb": 0, "scr_el3_eel2": 1}, True),
        ({"aarch32": 1}, False),
    ],
)
def test_virtual_address_of_a_system_register(changes: dict[str, int], expected: bool):
    """The address is collected if profiling is enabled at EL2, although the operation is executed at EL1."""
    pe = PEState(**{"el": 1, "mdcr_el2_e2pb": 0, **changes})
    e2spe = PMSCR_EL2.pack(E2SPE=1)
    assert control.collect_nv2_va(EVERY, running(el2=e2spe), pe) == expected
    assert not control.collect_nv2_va(EVERY, running(el2=~e2spe), pe)
    assert not control.collect_nv2_va(EVERY, replace(running(), PMBLIMITR_EL1=0), pe)
    assert not control.collect_nv2_va(BEFORE_RME, running(), pe)


# Timestamps: D17.6.9.

COUNT, VIRTUAL_OFFSET, PHYSICAL_OFFSET = 1_000_000, 30_000, 200
TIMES = {
    "None": None,
    "physical": COUNT,
    "virtual": COUNT - VIRTUAL_OFFSET,
    "offset physical": COUNT - PHYSICAL_OFFSET,
}
CLOCK = {
    "physical_count": COUNT,
    "cntvoff_el2": VIRTUAL_OFFSET,
    "cntpoff_el2": PHYSICAL_OFFSET,
    "cnthctl_el2_ecv": 1,
    "scr_el3_ecven": 1,
}


def possible(text: str) -> Iterator[int]:
    """Yield the binary numbers that match a pattern, in which x is 0 or 1."""
    for digits in product(*("01" if digit == "x" else digit for digit in text)):
        yield int("".join(digits), 2)


def states_with(config: SPUConfig, el2_enabled: str, owner_el: int) -> Iterator[PEState]:
    """Yield states of the PE with this owner in which profiling can be enabled, by whether EL2 is enabled."""
    eel2 = int(config.sel2 and el2_enabled == "TRUE")
    if el2_enabled == "TRUE":
        states = ["Non-secure", *(["Secure"] if config.sel2 else []), *(["Realm"] if config.rme else [])]
        e2pb = [0b00] if owner_el == 2 else [0b01, 0b10, 0b11]
    else:
        states, e2pb = ["Secure"], range(4)
    for owning, setting, el in product(states, e2pb, range(owner_el + 1)):
        yield state(owning, setting, el=el, scr_el3_eel2=eel2, **CLOCK)


def assert_times(config: SPUConfig, row: tuple[str, int, str, str, str, str, str]) -> None:
    enabled, owner_el, *patterns, expected = row
    for el2_enabled in ("FALSE", "TRUE") if enabled == "x" else (enabled,):
        for el2_pct, el2_ts, el1_pct, el1_ts in product(*map(possible, patterns)):
            registers = running(el1=PMSCR_EL1.pack(PCT=el1_pct, TS=el1_ts), el2=PMSCR_EL2.pack(PCT=el2_pct, TS=el2_ts))
            for pe in states_with(config, el2_enabled, owner_el):
                assert control.timestamp(config, registers, pe) == TIMES[expected]
                assert control.timestamp(config, registers, replace(pe, count_enabled=0)) is None


@pytest.mark.parametrize(
    "row",
    # EL2 enabled, owning EL, PMSCR_EL2.PCT and TS, PMSCR_EL1.PCT and TS, recorded timestamp.
    [
        ("x", 1, "xx", "x", "xx", "0", "None"),
        ("x", 1, "xx", "x", "00", "1", "virtual"),
        ("FALSE", 1, "xx", "x", "01", "1", "physical"),
        ("FALSE", 1, "xx", "x", "11", "1", "offset physical"),
        ("TRUE", 1, "00", "x", "xx", "1", "virtual"),
        ("TRUE", 1, "01", "x", "01", "1", "physical"),
        ("TRUE", 1, "01", "x", "11", "1", "offset physical"),
        ("TRUE", 1, "11", "x", "01", "1", "offset physical"),
        ("TRUE", 1, "11", "x", "11", "1", "offset physical"),
        ("TRUE", 2, "xx", "0", "xx", "x", "None"),
        ("TRUE", 2, "00", "1", "xx", "x", "virtual"),
        ("TRUE", 2, "01", "1", "xx", "x", "physical"),
        ("TRUE", 2, "11", "1", "xx", "x", "offset physical"),
        # The reserved value selects virtual time, as docs/choices.md states.
        ("FALSE", 1, "xx", "x", "10", "1", "virtual"),
        ("TRUE", 1, "10", "x", "xx", "1", "virtual"),
        ("TRUE", 1, "xx", "x", "10", "1", "virtual"),
        ("TRUE", 2, "10", "1", "xx", "x", "virtual"),
    ],
    ids=lambda row: " ".join(map(str, row)),
)
def test_table_d17_3(row: tuple[str, int, str, str, str, str, str]):
    """The offsets also apply in Secure state where EL2 is disabled."""
    assert_times(EVERY, row)


@pytest.mark.parametrize(
    "row",
    [
        ("x", 1, "xx", "x", "xx", "0", "None"),
        ("x", 1, "xx", "x", "x0", "1", "virtual"),
        ("FALSE", 1, "xx", "x", "x1", "1", "physical"),
        ("TRUE", 1, "x0", "x", "xx", "1", "virtual"),
        ("TRUE", 1, "x1", "x", "x1", "1", "physical"),
        ("TRUE", 2, "xx", "0", "xx", "x", "None"),
        ("TRUE", 2, "x0", "1", "xx", "x", "virtual"),
        ("TRUE", 2, "x1", "1", "xx", "x", "physical"),
    ],
)
def test_table_d17_3_without_ecv(row: tuple[str, int, str, str, str, str, str]):
    """PCT[1] is RES0."""
    assert_times(BEFORE_SEL2, row)


@pytest.mark.parametrize("config", [NEITHER, EL3_ALONE, FEATURES["minimal_ecv"]], ids=lambda config: config.name)
def test_offsets_are_zero_without_el2(config: SPUConfig):
    for el1_pct, el in product(range(4), (0, 1)):
        for ts, expected in ((0, None), (1, COUNT)):
            registers = running(el1=PMSCR_EL1.pack(PCT=el1_pct, TS=ts), el2=ALL_EL2 if ts == 0 else 0)
            pe = state("Non-secure", 0b00, el=el, hcr_el2_tge=1, **CLOCK)
            assert control.timestamp(config, registers, pe) == expected


@pytest.mark.parametrize(
    ("owning", "eel2", "e2h", "tge", "zero"),
    # By Exception level.
    [
        ("Non-secure", 0, 0, 0, (0, 0, 0)),
        ("Non-secure", 0, 0, 1, (0, 0, 0)),
        ("Non-secure", 0, 1, 0, (0, 0, 1)),
        ("Non-secure", 0, 1, 1, (1, 0, 1)),
        ("Realm", 0, 1, 1, (1, 0, 1)),
        ("Secure", 1, 1, 1, (1, 0, 1)),
        ("Secure", 1, 1, 0, (0, 0, 1)),
        ("Secure", 0, 1, 1, (0, 0, 0)),  # the Effective values are zero
    ],
)
def test_virtual_offset_is_zero_in_a_host(owning: str, eel2: int, e2h: int, tge: int, zero: tuple[int, ...]):
    registers = running(el1=PMSCR_EL1.pack(TS=1), el2=PMSCR_EL2.pack(TS=1))
    for el, is_zero in enumerate(zero):
        pe = state(owning, 0b00, el=el, scr_el3_eel2=eel2, hcr_el2_e2h=e2h, hcr_el2_tge=tge, **CLOCK)
        assert control.timestamp(EVERY, registers, pe) == (COUNT if is_zero else COUNT - VIRTUAL_OFFSET)
        # The physical offset also applies in a host.
        offset = running(el1=PMSCR_EL1.pack(TS=1, PCT=0b11), el2=PMSCR_EL2.pack(TS=1, PCT=0b11))
        assert control.timestamp(EVERY, offset, pe) == COUNT - PHYSICAL_OFFSET


ECV_WITHOUT_POFF = replace(FEATURES["minimal_sel2"], ecv=True)
POFF_WITHOUT_EL3 = FEATURES["minimal_ecv_poff"]


@pytest.mark.parametrize(
    ("config", "ecv", "ecven", "time"),
    [
        (EVERY, 1, 1, "offset physical"),
        (EVERY, 0, 1, "physical"),
        (EVERY, 1, 0, "physical"),
        (EVERY, 0, 0, "physical"),
        (ECV_WITHOUT_POFF, 1, 1, "physical"),
        (POFF_WITHOUT_EL3, 1, 0, "offset physical"),
        (POFF_WITHOUT_EL3, 0, 1, "physical"),
    ],
)
def test_physical_offset_is_zero_unless_enabled(config: SPUConfig, ecv: int, ecven: int, time: str):
    registers = running(el1=PMSCR_EL1.pack(TS=1, PCT=0b11), el2=PMSCR_EL2.pack(TS=1, PCT=0b11))
    for e2pb in (0b00, 0b11):
        pe = state("Non-secure", e2pb, **(CLOCK | {"cnthctl_el2_ecv": ecv, "scr_el3_ecven": ecven}))
        assert control.timestamp(config, registers, pe) == TIMES[time]


@pytest.mark.parametrize("pct", [0b00, 0b11])
def test_offsets_are_subtracted_modulo_2_to_the_power_of_64(pct: int):
    registers = running(el1=PMSCR_EL1.pack(TS=1, PCT=pct), el2=PMSCR_EL2.pack(PCT=pct))
    offsets = {"cntvoff_el2": 7, "cntpoff_el2": 7}
    pe = state("Non-secure", 0b11, **(CLOCK | offsets | {"physical_count": 5}))
    assert control.timestamp(EVERY, registers, pe) == (1 << 64) - 2
