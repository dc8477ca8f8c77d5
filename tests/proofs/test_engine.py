"""The proofs themselves: every path is taken, a fault is found and shown, and what cannot be said is not a PASS."""

import json
import operator
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import z3
from amaranth.hdl import Assert, C, Cover, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out
from hypothesis import given, settings
from hypothesis import strategies as st

from formal import __main__ as command
from formal.buffer import discard as buffer
from formal.engine import sby, tools
from formal.engine.faults import differs, faulty
from formal.engine.features import FEATURES
from formal.engine.induction import Wires, always, follows, happens, independent, inductive, reach, resets
from formal.engine.proof import Proof, Result, Verdict
from formal.engine.symbolic import Integer, Octets, Undecided, equal, explore, folded, merged, rebuilt
from formal.engine.transition import Transition, remembering, transition
from formal.inflight import inflight, latencies
from formal.proofs import all_proofs
from formal.record import completion, record
from formal.record import filter as filter_
from formal.sampling import access, interval, lfsr
from formal.spu import spu
from spurtle.arch import FM, PMSCR_EL1, PMSVer
from spurtle.config import CONFIGS, UnpredictableFilter
from spurtle.gateware import inflight as inflight_rtl
from spurtle.gateware import registers as registers_rtl
from spurtle.gateware import spu as spu_rtl
from spurtle.gateware.access import AccessChoice
from spurtle.gateware.buffer import ProfilingBuffer
from spurtle.gateware.completion import Completion
from spurtle.gateware.filter import Filter
from spurtle.gateware.interval import IntervalCounter
from spurtle.gateware.record import RecordBuilder
from spurtle.gateware.slots import Allocation, Slot
from spurtle.gateware.spu import SPU
from spurtle.support.errors import UserError
from spurtle_sim.model import filtering, records, sampling
from tests.support.seeds import SEED
from tests.support.tiers import tiers


def decide(condition: z3.BoolRef) -> bool:
    """Of known values nothing is open."""
    condition = z3.simplify(condition)
    assert z3.is_true(condition) or z3.is_false(condition)
    return z3.is_true(condition)


def known(value: int) -> Integer:
    """An integer whose value z3 knows, so that results can be read."""
    return Integer(z3.BitVecVal(value, value.bit_length() + 1), decide)


def read(value: Integer | int) -> int:
    return z3.simplify(value.bits).as_signed_long() if isinstance(value, Integer) else value


# The engine.


@settings(max_examples=40)
@given(st.integers(-300, 300), st.integers(-300, 300), st.integers(0, 12))
def test_an_integer_computes_as_python_does(a: int, b: int, distance: int) -> None:
    for name in ("add", "sub", "mul", "and_", "or_", "xor", "eq", "ne", "lt", "le", "gt", "ge"):
        apply = getattr(operator, name)
        for result in (apply(known(a), known(b)), apply(known(a), b), apply(a, known(b))):
            assert read(result) == apply(a, b), name
    for name in ("lshift", "rshift"):
        apply = getattr(operator, name)
        assert read(apply(known(a), distance)) == apply(a, distance), name
    assert read(known(a) >> known(distance)) == a >> distance
    if b < 0:
        with pytest.raises(ValueError, match="negative shift count"):
            known(a) >> known(b)
    else:  # farther than the value is wide
        assert read(known(a) >> known(b)) == a >> b
    assert (read(-known(a)), read(~known(a))) == (-a, ~a)


def test_bytes_of_an_integer_are_python_s() -> None:
    assert list(map(read, known(0x1234).to_bytes(3, "little"))) == [0x34, 0x12, 0]
    for value in (-1, 1 << 16):
        with pytest.raises(OverflowError):
            known(value).to_bytes(2, "little")


def test_a_rebuilt_module_computes_the_same() -> None:
    config = CONFIGS["minimal"]
    twin = rebuilt(records)
    encoded = []
    for reference, number in ((records, int), (twin, known)):
        facts = reference.Facts(load=1, retired=1, va_valid=1)
        operation = reference.Operation(facts=facts, pc=number(0x40_0123), va=number(0xFFFF_0000_1234_5678))
        start = reference.Start(el=number(1), timestamp=number(77))
        encoded.append(reference.encode(config, reference.Sample(start=start, operation=operation, total=number(5000))))
    assert bytes(map(read, encoded[1])) == encoded[0]
    assert not hasattr(records, "bytes")


@pytest.mark.parametrize(
    "use", [lambda x: 1 << x, lambda x: x << x, range, lambda x: [0][x], lambda x: {x: 0}, "{}".format, int]
)
def test_what_needs_one_value_raises(use: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError):
        use(Integer(z3.BitVec("x", 8), decide))


def classify(a: int, b: int) -> int:
    """Every kind of fork; the path that raises is impossible."""
    if a == 0 and b > 3:
        return 1
    if min(a, b) == a:
        return a + b
    while a > b + 2:
        a -= 7
        if a > 9:
            raise AssertionError("15 - 7 is 8")
    return a - b


def test_every_path_is_taken_and_no_other() -> None:
    a, b = z3.BitVecs("a b", 4)
    paths = list(explore(classify, a, b))
    for x in range(16):
        for y in range(16):
            values = ((a, z3.BitVecVal(x, 4)), (b, z3.BitVecVal(y, 4)))
            taken = [path for path in paths if z3.is_true(z3.simplify(z3.substitute(path.condition, *values)))]
            assert len(taken) == 1
            result = taken[0].result
            got = read(Integer(z3.substitute(result.bits, *values), decide)) if isinstance(result, Integer) else result
            assert got == classify(x, y)
    solver = z3.Solver()
    assert all(solver.check(path.condition) == z3.sat for path in paths)


def test_paths_are_folded_into_one_term() -> None:
    a, b = z3.BitVecs("a b", 4)
    paths = list(explore(classify, a, b))

    def values(result: Integer | int) -> list[z3.BitVecRef]:
        bits = (known(result) if isinstance(result, int) else result).bits
        return [z3.Extract(7, 0, z3.SignExt(8, bits)), z3.BitVecVal(3, 4)]

    term, same = folded(paths, values)
    for x in range(16):
        for y in range(16):
            told = z3.simplify(z3.substitute(term, (a, z3.BitVecVal(x, 4)), (b, z3.BitVecVal(y, 4))))
            assert told.as_signed_long() == classify(x, y)
    # What makes no difference is not asked about.
    assert same.eq(z3.BitVecVal(3, 4))


def test_assumptions_leave_out_paths() -> None:
    x = z3.BitVec("x", 4)
    solver = z3.Solver()
    solver.add(z3.UGT(x, 5))
    assert [path.result for path in explore(lambda x: "low" if x < 5 else "high", x, solver=solver)] == ["high"]
    solver.add(x == 0)
    assert list(explore(lambda x: x, x, solver=solver)) == []


def test_a_negative_or_too_large_value_is_on_no_wire() -> None:
    wire = z3.BitVec("wire", 4)
    for value in (-1, 16):
        assert z3.Solver().check(equal(value, wire), equal(known(value), wire)) == z3.unsat
    assert (
        z3.Solver().check(equal(Octets([known(3), 2]), z3.BitVec("two", 16)), z3.BitVec("two", 16) != 0x203) == z3.unsat
    )


# Transition relations: a small subject of known behaviour.


class Countdown(wiring.Component):
    """Counts down to zero and stays there. `zero` is a register of its own, as the interval counter's flag is."""

    load: In(1)
    start: In(4)
    value: Out(4)

    def __init__(self, *, wraps: bool = False, keeps: bool = False):
        self._wraps = wraps
        self._keeps = keeps
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        value = Signal(4, reset_less=self._keeps)
        zero = Signal(init=1)
        m.d.comb += self.value.eq(value)
        with m.If(self.load):
            m.d.sync += [value.eq(self.start), zero.eq(self.start == 0)]
        with m.Elif(~zero | (self._wraps & (self.start == 7))):
            m.d.sync += [value.eq(value - 1), zero.eq(value == 1)]
        return m


def countdown(rst: int, load: int, start: int, value: int) -> dict[str, int]:
    if rst:
        return {"value": 0}
    if load:
        return {"value": start}
    return {"value": max(value - 1, 0)}


def zero_is_zero(wires: Wires) -> z3.BoolRef:
    return (wires["zero"] == 1) == (wires["value"] == 0)


@pytest.fixture(scope="module")
def subject() -> Transition:
    return transition(Countdown())


def test_a_right_step_is_proved(subject: Transition) -> None:
    assert inductive(subject, zero_is_zero).result is Result.PASS
    verdict = follows(subject, countdown, assuming=zero_is_zero)
    assert (verdict.result, verdict.method) == (Result.PASS, "reference, all 4 paths")
    assert resets(subject).result is Result.PASS


def test_without_its_invariant_it_is_not(subject: Transition) -> None:
    assert follows(subject, countdown).result is Result.FAIL


def test_a_wrong_reference_is_shown(subject: Transition) -> None:
    def wrong(rst: int, load: int, start: int, value: int) -> dict[str, int]:
        return countdown(rst, load, start, value) if value != 11 else {"value": 3}

    verdict = follows(subject, wrong, assuming=zero_is_zero)
    assert verdict.result is Result.FAIL
    for part in ("state   value = 0xb, zero = 0x0", "inputs  ", "expected  value = 0x3", "got       value = "):
        assert part in verdict.evidence


def test_a_wrong_circuit_is_found() -> None:
    assert follows(transition(Countdown(wraps=True)), countdown, assuming=zero_is_zero).result is Result.FAIL
    verdict = resets(transition(Countdown(keeps=True)))
    assert verdict.result is Result.FAIL
    assert "survives" in verdict.evidence


def test_a_wrong_invariant_is_found(subject: Transition) -> None:
    assert "after power-up" in inductive(subject, lambda wires: wires["value"] != 0).evidence
    assert "a cycle breaks it" in inductive(subject, lambda wires: wires["value"] != 9).evidence


def test_a_relation_that_a_cycle_breaks_is_shown(subject: Transition) -> None:
    def falls(now: Wires, then: Wires) -> z3.BoolRef:
        return z3.Or(now["load"] == 1, now["rst"] == 1, z3.ULE(then["value"], now["value"]))

    # A zero that `zero` does not know of wraps, in a state that is never reached.
    assert "a cycle breaks it" in always(subject, falls).evidence


def test_contradicting_assumptions_prove_nothing(subject: Transition) -> None:
    verdict = follows(subject, countdown, assuming=lambda wires: z3.And(wires["value"] == 1, wires["value"] == 2))
    assert verdict.result is Result.FAIL


def test_a_cover_is_reached_as_early_as_it_can_be(subject: Transition) -> None:
    assert reach(subject, lambda wires: wires["value"] == 13, cycles=5) == Verdict(Result.PASS, 1)
    assert reach(subject, lambda wires: z3.And(wires["value"] == 0, wires["zero"] == 0), cycles=5).result is Result.FAIL


def test_what_happens_is_told_from_what_does_not(subject: Transition) -> None:
    assert happens(subject, lambda now, then: z3.And(now["value"] == 5, then["value"] == 4)).result is Result.PASS
    risen = happens(subject, lambda now, then: z3.And(now["load"] == 0, now["value"] == 5, then["value"] == 6))
    assert risen.result is Result.FAIL


def test_what_is_remembered_follows(subject: Transition) -> None:
    def follow(wires: Wires) -> dict[str, z3.BitVecRef]:
        return {"before": z3.If(wires["rst"] == 1, z3.BitVecVal(0, 4), wires["value"])}

    system = remembering(subject, {"before": 4}, follow, {"before": 0})

    def falls(wires: Wires) -> z3.BoolRef:
        return z3.Or(wires["before"] == 0, z3.UGE(wires["before"], wires["value"]))

    # But for a load it does fall.
    loads = inductive(system, falls)
    assert "before = 0x" in loads.evidence
    assert (
        inductive(
            system, lambda wires: z3.And(zero_is_zero(wires), falls(wires)), contract=lambda now, _: now["load"] == 0
        ).result
        is Result.PASS
    )
    assert reach(system, lambda wires: z3.And(wires["before"] == 9, wires["value"] == 8), cycles=3).depth == 2


def test_what_an_output_depends_on_is_told(subject: Transition) -> None:
    assert independent(subject, ["value"], of=["load", "start"]).result is Result.PASS
    through = transition(AccessChoice(TWO))
    assert "they differ" in independent(through, ["destination"], of=["pmsfcr"]).evidence


# Functions merged into one path.


def test_a_merged_function_says_the_same() -> None:
    merge = merged(lambda a, b: (classify(a, b) + 16, a == b), [4, 4], [6, 1])
    for x in range(16):
        for y in range(16):
            assert list(map(read, merge(known(x), y))) == [classify(x, y) + 16, x == y]


def test_what_may_not_fit_is_not_merged() -> None:
    with pytest.raises(ValueError, match=r"^result 1 of <lambda> may need more than 4 bits$"):
        merged(lambda a: (a, a + 1), [4], [4, 4])
    with pytest.raises(ValueError, match=r"^result 0 of <lambda> may need more than 4 bits$"):
        merged(lambda a: (a - 1,), [4], [4])
    same = merged(lambda a: (a,), [4], [4])
    with pytest.raises(ValueError, match=r" may need more than 4 bits$"):
        same(known(16))
    with pytest.raises(ValueError, match=r" may need more than 4 bits$"):
        same(known(-1))


# The interval counter's proof.

LANES = interval.configured(2, ernd=True)
"""It has everything: lanes, numbers, both counters, two selections."""


def test_a_fault_of_the_reference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sampling.advance

    def wrong(count: int, ecount: int, **settings: Any) -> tuple[int, int, bool, bool]:
        *state, selected, _ = right(count, ecount, **settings)
        return (*state, selected, count == 2)

    monkeypatch.setattr(sampling, "advance", wrong)
    evidence = interval.prove(LANES, transition(IntervalCounter(LANES))).evidence
    assert "expected  draw = 0x" in evidence
    assert "got       draw = 0x" in evidence


@pytest.mark.parametrize("count", tiers(full=[8]))
def test_faults_of_the_interval_counter_are_found(count: int) -> None:
    right = transition(IntervalCounter(LANES))
    assert holds_of_the_counter(right)
    faults = faulty(
        lambda: IntervalCounter(LANES),
        count=count,
        seed=SEED,
        differs=lambda system: differs(right, system, assuming=interval.invariant(LANES)),
    )
    assert [fault for fault, system in faults if holds_of_the_counter(system)] == []


def holds_of_the_counter(system: Transition) -> bool:
    proofs = (
        lambda: inductive(system, interval.invariant(LANES)),
        lambda: interval.prove_delay(LANES, system),
        lambda: interval.prove(LANES, system),
        lambda: resets(system),
    )
    return all(prove().result is Result.PASS for prove in proofs)


class Hasty(IntervalCounter):
    """Uses a random number where software writes PMSICR_EL1, and so perhaps another in the next cycle."""

    def elaborate(self, platform: Any) -> Any:
        m = super().elaborate(platform)
        with m.If(self.write):
            m.d.comb += self.draw.eq(1)
        return m


def test_random_numbers_one_after_the_other_are_found() -> None:
    assert interval.prove_fresh(LANES, transition(IntervalCounter(LANES))).result is Result.PASS
    assert interval.prove_fresh(LANES, transition(Hasty(LANES))).result is Result.FAIL


# The proofs of the random numbers, of the slots, of completion and of the SPU.

SEVERAL = replace(LANES, name="several", slots=3)


@pytest.mark.parametrize(
    ("name", "count"), tiers(fast=[("intervals", 2)], full=[(name, 6) for name in lfsr.GENERATORS])
)
def test_faults_of_the_random_numbers_are_found(name: str, count: int) -> None:
    generator = lfsr.GENERATORS[name]
    right = transition(generator.build())

    def drawn(wires: Wires) -> z3.BoolRef:
        return z3.And(wires["state"] != 0, z3.ULE(wires["draw"], generator.draws))

    faults = faulty(
        lambda: generator.build(),
        count=count,
        seed=SEED,
        differs=lambda system: differs(right, system, assuming=drawn),
    )
    assert [fault for fault, system in faults if lfsr.prove(generator, system).result is Result.PASS] == []
    assert lfsr.prove_running(right).result is Result.PASS


TWO = replace(FEATURES["minimal_sve_v1p2"], name="two", version=PMSVer.SPE_V1P3, mops=True, ops_per_cycle=2, ernd=True)
"""Two can be selected in a cycle, each with one of two accesses and an element."""


def test_random_numbers_that_share_bits_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = lfsr.GENERATORS["access by 9, 2 a cycle"]
    draw_access = sampling.draw_access
    monkeypatch.setattr(sampling, "draw_access", lambda state, bits: draw_access(state, bits - 1))
    assert lfsr.prove(generator, transition(generator.build())).result is Result.FAIL


@pytest.mark.parametrize("count", tiers(fast=[2], full=[9]))
def test_faults_of_the_access_choice_are_found(count: int) -> None:
    right = transition(AccessChoice(TWO))
    assert access.prove(TWO, right).result is Result.PASS
    assert access.cover(TWO, right).result is Result.PASS

    # What is told of a lane that is not selected does not matter: with both selected nothing is told but what does.
    def both(wires: Wires) -> z3.BoolRef:
        return z3.And(wires["selected__0"] == 1, wires["selected__1"] == 2)

    faults = faulty(
        lambda: AccessChoice(TWO),
        count=count,
        seed=SEED,
        differs=lambda system: differs(right, system, assuming=both),
    )
    assert [fault for fault, system in faults if access.prove(TWO, system).result is Result.PASS] == []


class Swaps(AccessChoice):
    """The second of two selections gets the first random number."""

    def elaborate(self, platform):
        self.random = [*reversed(self.random)]
        return super().elaborate(platform)


class Shares(AccessChoice):
    """The bit that chooses one of two accesses is one of the element."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        for lane, element in enumerate(self.element):
            m.d.comb += element.eq(Mux(self.selected[-1][lane], self.random[-1], self.random[0]))
        return m


class Constant(AccessChoice):
    """Nothing is left to chance, but for what filters choose."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += [self.destination.eq(0), *(element.eq(0) for element in self.element)]
        return m


class Half(AccessChoice):
    """The elements of the upper half are never chosen."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += [element[-1].eq(0) for element in self.element]
        return m


@pytest.mark.parametrize("wrong", [Swaps, Shares])
def test_a_random_bit_in_the_wrong_place_is_found(wrong: type[AccessChoice]) -> None:
    assert access.prove(TWO, transition(wrong(TWO))).result is Result.FAIL


def test_an_access_that_is_never_chosen_is_found() -> None:
    assert "destination by filter" in access.cover(TWO, transition(Constant(TWO))).evidence
    assert "element 255" in access.cover(TWO, transition(Half(TWO))).evidence


@pytest.mark.parametrize("count", tiers(fast=[2], full=[11]))
def test_faults_of_the_allocation_are_found(count: int) -> None:
    right = transition(Allocation(SEVERAL))
    assert inflight.prove_allocation(SEVERAL, right).result is Result.PASS
    faults = faulty(
        lambda: Allocation(SEVERAL),
        count=count,
        seed=SEED,
        differs=lambda system: differs(right, system, assuming=inflight.selections(SEVERAL)),
    )
    missed = [fault for fault, system in faults if inflight.prove_allocation(SEVERAL, system).result is Result.PASS]
    assert missed == []


@pytest.mark.parametrize("count", tiers(fast=[2], full=[7]))
def test_faults_of_completion_are_found(count: int) -> None:
    config = CONFIGS["minimal"]
    right = transition(Completion(config))

    def holds(system: Transition) -> bool:
        return all(prove(system).result is Result.PASS for prove in (completion.prove_waiting, completion.prove))

    def matters(name: str, value: z3.BitVecRef) -> z3.ExprRef:
        """Which filters reject is kept, and nobody asks for more than whether one does."""
        return value != 0 if name == "rejections" else value

    assert holds(right)
    assert "rejections" in right.registers
    faults = faulty(
        lambda: Completion(config),
        count=count,
        seed=SEED,
        differs=lambda system: differs(right, system, assuming=completion.waiting, matters=matters),
    )
    assert [fault for fault, system in faults if holds(system)] == []


class Follows(Slot):
    """Goes on following the PE's state."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.sync += self.start.eq(self.following)
        return m


class Early(Slot):
    """Keeps the PE's state of the cycle before."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.take):
            m.d.sync += self.start.eq(self.start)
        return m


class Forgets(Slot):
    """Is not told that the buffer did not run before it was given its operation."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.take):
            m.d.sync += self.unwanted.eq(~self.running)
        return m


class CountsOn(Slot):
    """Counts waits for translations of an operation that has completed."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.in_flight & self.translating):
            m.d.sync += self.translation.eq(self.translation + 1)
        return m


class Hoards(SyncFIFO):
    """Does not count what is taken out."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.sync += self.level.eq(self.level + (self.w_en & self.w_rdy))
        return m


@pytest.mark.full
def test_a_slot_that_does_not_stand_still_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflight_rtl, "Slot", Follows)
    verdict = inflight.prove_slots(SEVERAL, transition(inflight_rtl.InFlight(SEVERAL)))
    assert "a cycle breaks it" in verdict.evidence


def test_a_counter_that_goes_on_is_found() -> None:
    assert "a cycle breaks it" in latencies.prove_latencies(SEVERAL, transition(CountsOn(SEVERAL))).evidence


@pytest.mark.full
def test_a_queue_that_keeps_what_left_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflight_rtl, "SyncFIFO", Hoards)
    system = transition(inflight_rtl.InFlight(SEVERAL))
    assert "a cycle breaks it" in inductive(system, inflight.queue(SEVERAL)).evidence
    assert "a cycle breaks it" in inflight.prove_order(SEVERAL, system).evidence


@pytest.mark.parametrize("wrong", tiers(fast=[Early], full=[Forgets]))
def test_a_slot_that_starts_wrongly_is_found(wrong: type[Slot], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflight_rtl, "Slot", wrong)
    verdict = inflight.prove_captures(SEVERAL, transition(inflight_rtl.InFlight(SEVERAL)))
    assert "a cycle breaks it" in verdict.evidence


class Late(inflight_rtl.InFlight):
    """Takes the offset of the cycle after off the system counter."""

    def _take_off(self, m, start):
        shifted = Signal.like(start)
        m.d.comb += [shifted.eq(start), shifted.timestamp.eq(start.timestamp - self.offset)]
        return shifted


class Stays(inflight_rtl.InFlight):
    """Takes no offset off."""

    def _take_off(self, m, start):
        return start


@pytest.mark.parametrize("wrong", tiers(fast=[Late], full=[Stays]))
def test_an_offset_of_another_cycle_is_found(wrong: type[inflight_rtl.InFlight]) -> None:
    config = FEATURES["minimal_el2"]
    assert inflight.prove_captures(config, transition(inflight_rtl.InFlight(config))).result is Result.PASS
    assert "a cycle breaks it" in inflight.prove_captures(config, transition(wrong(config))).evidence


@pytest.mark.full
def test_a_state_of_another_cycle_is_found() -> None:
    # Eight lanes are answered a cycle later than two.
    later = replace(SEVERAL, ops_per_cycle=8)
    assert "a cycle breaks it" in inflight.prove_captures(later, transition(inflight_rtl.InFlight(SEVERAL))).evidence


class Counts(SPU):
    """Counts what passes in Debug state too."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        counted = m.submodules.control.enabled | self.pe.debug
        m.d.comb += m.submodules.interval_counter.operations.eq(self.sampling.valid & counted)
        return m


@pytest.mark.full
def test_an_operation_that_is_counted_while_disabled_is_found() -> None:
    config = CONFIGS["minimal"]
    assert "a cycle breaks it" in spu.prove_disabled(config, transition(Counts(config))).evidence


class Draws(SPU):
    """Draws a number for whatever passes."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += m.submodules.access_lfsr.draw.eq(self.sampling.valid != 0)
        return m


@pytest.mark.full
def test_a_number_that_is_drawn_while_disabled_is_found() -> None:
    config = FEATURES["minimal_sve"]
    assert "a cycle breaks it" in spu.prove_undrawn(config, transition(Draws(config))).evidence


class Unguarded(registers_rtl.RegisterAccess):
    """EL1 has what EL2 has."""

    def _undefined(self, register, host):
        return C(0)


class Whole(registers_rtl.RegisterFile):
    """Bits that are not implemented can be set."""

    def _write(self, m, register, written):
        super()._write(m, register, written)
        if register is PMSCR_EL1:
            with m.If(written):
                m.d.sync += self.pmscr.eq(self.wdata)


@pytest.mark.parametrize(
    ("room", "wrong", "prove"),
    tiers(full=[(registers_rtl, Unguarded, spu.prove_pmscr_el2), (spu_rtl, Whole, spu.prove_implemented)]),
)
def test_registers_that_are_open_are_found(
    room: Any, wrong: type[wiring.Component], prove: Callable[..., Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, wrong.__bases__[0].__name__, wrong)
    config = CONFIGS["neoverse_n1"]
    assert "a cycle breaks it" in prove(config, transition(SPU(config))).evidence


class Untold(SPU):
    """Does not tell the buffer that it has another owner."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += m.submodules.buffer.new_owner.eq(0)
        return m


class Remembers(SPU):
    """Keeps the previous branch target for another owner."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += m.submodules.previous_target.new_owner.eq(0)
        return m


@pytest.mark.full
def test_another_owner_that_is_not_told_of_is_found() -> None:
    config = replace(FEATURES["minimal_pbt"], name="owners", el3=True)
    assert spu.prove_new_owner(config, transition(SPU(config))).result is Result.PASS
    for wrong in (Untold, Remembers):
        assert "a cycle breaks it" in spu.prove_new_owner(config, transition(wrong(config))).evidence


class Anytime(SPU):
    """Tells of the filters' answers when there is nothing to tell."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.sync += self.pmu.sample_feed_lat.eq(m.submodules.filter.feed.lat)
        return m


class Unfed(SPU):
    """Counts verdicts when there is no sample."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.sync += self.pmu.sample_filtrate.eq(~m.submodules.filter.rejected.as_value().any())
        return m


class Silent(SPU):
    """Does not tell the buffer that its limit is written."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += m.submodules.buffer.pmblimitr_write.eq(0)
        return m


@pytest.mark.parametrize(
    ("wrong", "prove"),
    tiers(
        fast=[(Anytime, spu.prove_fed)],
        full=[(Unfed, spu.prove_fed), (Silent, spu.prove_limit)],
    ),
)
def test_what_the_spu_tells_wrongly_is_found(wrong: type[SPU], prove: Callable[..., Verdict]) -> None:
    config = CONFIGS["minimal"]
    assert "a cycle breaks it" in prove(config, transition(wrong(config))).evidence


def test_a_memory_survives_a_reset() -> None:
    system = transition(inflight_rtl.InFlight(SEVERAL))
    words = [name.removeprefix("inflight.") for name in spu.memories(SEVERAL)]
    assert resets(system, kept=words).result is Result.PASS
    for forgotten in (words[0], words[-1]):
        assert "survives" in resets(system, kept=[word for word in words if word != forgotten]).evidence


# The proofs of the filter.

EVERY = replace(FEATURES["minimal_fds"], name="every", version=PMSVer.SPE_V1P4, eft=True, fpf=True)
"""Each filter is there; all that the filter looks at is small."""


@pytest.fixture(scope="module")
def judged() -> Transition:
    return transition(filter_.Judged(EVERY))


def test_a_fault_of_the_filter_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIGS["minimal"]
    monkeypatch.setattr(filtering, "flags", lambda config, facts: facts.store << 2 | facts.load << 1 | facts.branch)
    system = transition(filter_.Judged(config))
    verdict = filter_.prove(config, system)
    assert verdict.result is Result.FAIL
    assert "expected  collect = 0x" in verdict.evidence
    assert "expected  feed_br = 0x" in filter_.prove_feed(config, system).evidence


@pytest.mark.parametrize("name", ["by_type", "by_event", "by_inverted_event", "by_latency", "by_data_source"])
def test_a_filter_that_is_not_there_is_found(name: str, monkeypatch: pytest.MonkeyPatch, judged: Transition) -> None:
    monkeypatch.setattr(filtering, name, lambda config, registers, sample: 1)
    assert filter_.prove(EVERY, judged).result is Result.FAIL


@pytest.mark.parametrize("count", tiers(full=[5]))
def test_faults_of_the_filter_are_found(judged: Transition, count: int) -> None:
    def holds(system: Transition) -> bool:
        return all(prove(EVERY, system).result is Result.PASS for prove in (filter_.prove_feed, filter_.prove))

    assert holds(judged)
    faults = faulty(
        lambda: filter_.Judged(EVERY),
        count=count,
        seed=SEED,
        differs=lambda system: differs(judged, system, assuming=filter_.registers(EVERY)),
    )
    assert [fault for fault, system in faults if holds(system)] == []


class Lenient(Filter):
    """A sample of some type passes whatever its latency."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.pmsfcr.FT & self.feed.op):
            m.d.comb += self.rejected.eq(0)
        return m


class Open(Filter):
    """Rejects nothing."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.rejected.eq(0)
        return m


def test_a_filter_that_lets_more_pass_is_found(monkeypatch: pytest.MonkeyPatch, judged: Transition) -> None:
    assert filter_.prove_monotone(EVERY, judged).result is Result.PASS
    monkeypatch.setattr(filter_, "Filter", Lenient)
    assert "a cycle breaks it" in filter_.prove_monotone(EVERY, transition(filter_.Judged(EVERY))).evidence


def test_a_filter_that_rejects_nothing_is_found(monkeypatch: pytest.MonkeyPatch, judged: Transition) -> None:
    assert filter_.cover(EVERY, judged).result is Result.PASS
    monkeypatch.setattr(filter_, "Filter", Open)
    assert "FT alone rejects" in filter_.cover(EVERY, transition(filter_.Judged(EVERY))).evidence


def test_only_filters_without_effect_switch_each_other_off(judged: Transition) -> None:
    assert filter_.cover_exception(EVERY, judged).result is Result.PASS
    discards = replace(EVERY, unpredictable_filter=UnpredictableFilter.DISCARD)
    system = transition(filter_.Judged(discards))
    assert filter_.prove_monotone(discards, system).result is Result.PASS
    assert filter_.cover_exception(discards, system).result is Result.FAIL
    # The same circuit with no exception made for it.
    assert filter_.prove_monotone(discards, judged).result is Result.FAIL


class Curious(Filter):
    """Looks at a fact for which there is no feature."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.sample.operation.facts.memory_copy):
            m.d.comb += self.feed.st.eq(1)
        return m


@pytest.mark.full
def test_a_fact_of_no_feature_that_changes_something_is_found(
    monkeypatch: pytest.MonkeyPatch, judged: Transition
) -> None:
    assert filter_.prove_ignored(EVERY, judged).result is Result.PASS
    monkeypatch.setattr(filter_, "Filter", Curious)
    assert "a cycle breaks it" in filter_.prove_ignored(EVERY, transition(filter_.Judged(EVERY))).evidence

    # Records of a configuration with the Guarded control stack, as if it had none.
    config, without = FEATURES["minimal_gcs"], replace(FEATURES["minimal_gcs"], name="without", gcs=False)
    assert record.prove_ignored(config, transition(RecordBuilder(config))).result is Result.PASS
    assert "a cycle breaks it" in record.prove_ignored(without, transition(RecordBuilder(config))).evidence


# The proofs of discard mode.


class Fills(ProfilingBuffer):
    """Knows no discard mode."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.writing.eq(self.running)
        return m


class Forgets(ProfilingBuffer):
    """A collision is not told of in discard mode."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.pmblimitr.FM == FM.DISCARD):
            m.d.sync += self.pmbsr.COLL.eq(self.pmbsr.COLL)
        return m


class Moves(ProfilingBuffer):
    """The pointer follows what is dropped."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.i.valid & self.i.ready & ~self.write.beat.valid):
            m.d.sync += self.pmbptr.eq(self.pmbptr + 8)
        return m


class Waits(ProfilingBuffer):
    """What is dropped waits for memory."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(~self.write.beat.ready):
            m.d.comb += self.i.ready.eq(0)
        return m


class Stops(ProfilingBuffer):
    """It is full whenever no record would fit."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.running & (self.pmbptr[12:] >= self.pmblimitr.LIMIT)):
            m.d.comb += self.full.eq(1)
        return m


DISCARDS = FEATURES["minimal_v1p2"]


@pytest.mark.parametrize("wrong", tiers(fast=[Fills], full=[Forgets, Moves, Waits, Stops]))
def test_a_fault_of_discard_mode_is_found(wrong: type[ProfilingBuffer]) -> None:
    assert "a cycle breaks it" in buffer.prove_discards(DISCARDS, transition(wrong(DISCARDS))).evidence


class Deaf(ProfilingBuffer):
    """Goes on for another owner."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.comb += self.running.eq(self.pmblimitr.E & ~self.pmbsr.S)
        return m


class Commits(ProfilingBuffer):
    """The pointer moves with the end of each record."""

    def elaborate(self, platform):
        m = super().elaborate(platform)
        with m.If(self.write.done):
            m.d.sync += self.pmbptr.eq(self.write.beat.p.address)
        return m


def test_a_buffer_that_goes_on_for_another_owner_is_found() -> None:
    assert "a cycle breaks it" in buffer.prove_new_owner(DISCARDS, transition(Deaf(DISCARDS))).evidence
    assert "a cycle breaks it" in buffer.prove_unkept(DISCARDS, transition(Commits(DISCARDS))).evidence


def test_a_record_that_moves_the_pointer_in_discard_mode_is_found() -> None:
    assert "a cycle breaks it" in buffer.prove_kept(transition(Fills(DISCARDS))).evidence
    # PMBLIMITR_EL1 changes and nobody tells the buffer.
    assert "a cycle breaks it" in inductive(transition(ProfilingBuffer(DISCARDS)), buffer.kept).evidence


# Spec components under sby.


class CountdownSpec(wiring.Component):
    """Right but for what its parameters say."""

    load: In(1)
    start: In(4)

    def __init__(self, *, limit: int = 13, goal: int = 13, covers: bool = True):
        self._limit = limit
        self._goal = goal
        self._covers = covers
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = Countdown()
        m.d.comb += [dut.load.eq(self.load & (self.start < 14)), dut.start.eq(self.start)]
        m.d.comb += Assert(dut.value <= self._limit)
        if self._covers:
            m.d.comb += Cover(dut.value == self._goal)
        return m


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (sby, command):
        monkeypatch.setattr(module, "BUILD", tmp_path)
    monkeypatch.setattr(command, "warm_up", lambda: None)
    return tmp_path


def test_sby_shows_where_a_proof_fails(build: Path) -> None:
    verdict = sby.check(CountdownSpec(limit=12), "wrong", mode="prove", depth=2)
    assert verdict.result is Result.FAIL
    assert "test_engine.py:" in verdict.evidence
    assert "trace.vcd" in verdict.evidence


@pytest.mark.full
def test_a_cover_that_cannot_be_reached_fails(build: Path) -> None:
    assert sby.check(CountdownSpec(), "reached", mode="cover", depth=3).result is Result.PASS
    verdict = sby.check(CountdownSpec(goal=14), "unreached", mode="cover", depth=3)
    assert verdict.result is Result.FAIL
    assert "Unreached cover" in verdict.evidence


def test_a_spec_without_covers_covers_nothing(build: Path) -> None:
    with pytest.raises(ValueError, match="at least one cover"):
        sby.check(CountdownSpec(covers=False), "empty", mode="cover", depth=3)


def test_a_missing_solver_is_one_sentence(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sby, "SOLVER", "no-such-solver")
    with pytest.raises(UserError, match=r"^no-such-solver is not there: install it with `pip install -e .\[formal\]`$"):
        sby.check(CountdownSpec(), "solverless", mode="prove", depth=2)


def test_a_tool_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(tools.ToolError, match=r"^sleep was not done after 0.1 s$"):
        tools.run(["sleep", "60"], folder=tmp_path, seconds=0.1)


# The command.


def raises(error: Exception) -> Verdict:
    raise error


def test_only_pass_is_good(build: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes: dict[str, Callable[[], Verdict]] = {
        "PASS": lambda: Verdict(Result.PASS, 1),
        "FAIL": lambda: Verdict(Result.FAIL, 1, "expected 1, got [2]"),
        "UNKNOWN": lambda: raises(Undecided("timeout")),
        "ERROR": lambda: raises(ValueError("no such wire")),
    }
    for wanted, prove in outcomes.items():
        monkeypatch.setattr(command, "all_proofs", lambda prove=prove: [Proof("p", "b", "c", "m", prove)])
        assert command.main([]) == (0 if wanted == "PASS" else 1)
        (row,) = json.loads((build / "report.json").read_text())["proofs"]
        assert list(row) == ["property", "block", "config", "method", "depth", "seconds", "result"]
        assert (row["property"], row["block"], row["config"], row["result"]) == ("p", "b", "c", wanted)
        printed = capsys.readouterr().out
        assert printed.splitlines()[-1].startswith(f"{int(wanted == 'PASS')} of 1 passed; report: ")
        assert {"PASS": "", "FAIL": "expected 1, got [2]", "UNKNOWN": "timeout", "ERROR": "no such wire"}[
            wanted
        ] in printed


def test_an_unknown_block_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["nonsense"]) == 2
    printed = capsys.readouterr()
    blocks = "registers, control, interval, lfsr, access, inflight, completion, filter, record, serializer, aligner"
    blocks += ", buffer, spu, writer, posting_writer, completer or leak"
    assert printed.err == f"formal: NAME must be {blocks}, not 'nonsense'\n"
    assert printed.out == ""


def test_proofs_are_chosen_by_block() -> None:
    proofs = list(all_proofs())
    assert {proof.config for proof in proofs} >= {*CONFIGS}
    assert command.select(proofs, []) == proofs
    assert command.select(proofs, ["record"]) == [proof for proof in proofs if proof.block == "record"] != []


def test_the_first_line_has_the_duration_of_the_last_run(
    build: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*names: str) -> str:
        monkeypatch.setattr(command, "all_proofs", lambda: [Proof(name, "b", "c", "m", passing) for name in names])
        assert command.main([]) == 0
        return capsys.readouterr().out.splitlines()[0]

    def passing() -> Verdict:
        return Verdict(Result.PASS, 1)

    report = build / "report.json"
    assert run("one", "two") == "2 proofs"
    report.write_text(report.read_text().replace('"seconds": 0.', '"seconds": 265.', 1))
    assert run("one", "two") == "2 proofs; the last run took 4 min 25 s"
    assert run("one", "two") == "2 proofs; the last run took 0 min 0 s"
    assert run("one") == "1 proofs"
    report.write_text("[]")
    assert run("one") == "1 proofs"
