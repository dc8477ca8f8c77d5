"""The proofs of noninterference fail for circuits with a leak."""

import inspect
import sys
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from amaranth.lib import wiring

from configurations import FEATURES
from formal.engine.proof import Result
from formal.engine.terms import Solver, any_of, implies
from formal.engine.transition import Transition, transition
from formal.spu.leak import THEOREMS, prove, prove_differ
from formal.spu.permissions import remembered
from spurtle.arch import PMBLIMITR_EL1, PMSCR_EL1, PMSICR_EL1, PMSVer, Register
from spurtle.config import CONFIGS, SPUConfig
from spurtle.gateware import spu
from tests.support.tiers import tiers

MINIMAL = CONFIGS["minimal"]
_FDS: dict[str, Any] = {"version": PMSVer.SPE_V1P3, "fne": True, "fds": True, "fgt": True, "fgt2": True}
RICH = replace(CONFIGS["neoverse_n1"], name="rich", nv2=True, **_FDS)
PBT = FEATURES["minimal_pbt"]
TWO = replace(FEATURES["minimal_packed"], name="two", ops_per_cycle=2, slots=2)


@dataclass(frozen=True)
class Leak:
    """Leak that a theorem must find, made by replacing `old` with `new` in the source of a gateware module."""

    theorem: str
    config: SPUConfig
    module: str
    old: str
    new: str


LEAKS = {
    "PA without permission": Leak(
        "addresses", RICH, "record", "has_va & facts.pa_valid & sample.start.collect.pa", "has_va & facts.pa_valid"
    ),
    "permission of another slot": Leak(
        "addresses",
        TWO,
        "inflight",
        "start_states.slot.eq(next_slot),",
        "start_states.slot.eq(~next_slot),",
    ),
    "VA of a register in memory": Leak(
        "addresses", RICH, "record", "has_va &= ~facts.nv2 | start.collect.nv2_va", "has_va &= C(1)"
    ),
    "context without permission": Leak("contexts", RICH, "record", "retired & start.collect.context_el2", "retired"),
    "context of EL1 in a host": Leak("contexts", RICH, "control", "self.pmscr.CX & ~tge", "self.pmscr.CX"),
    "virtual offset in a host": Leak("contexts", RICH, "control", "virtual & ~host)", "virtual)"),
    "permission of a later cycle": Leak(
        "contexts",
        TWO,
        "inflight",
        "start_states.incoming.eq(incoming),",
        "start_states.incoming.eq(incoming), start_states.incoming.collect.eq(self.collect),",
    ),
    "another Security state": Leak(
        "other states",
        RICH,
        "control",
        "return self.running & self._same_state(state, owner) & ~state.aarch32",
        "return self.running & ~state.aarch32",
    ),
    "Debug state": Leak(
        "other states",
        RICH,
        "control",
        "self._profiled(self.pe, previous_owner, permissions) & ~self.pe.debug",
        "self._profiled(self.pe, previous_owner, permissions)",
    ),
    "the owner of this cycle": Leak(
        "other states",
        RICH,
        "control",
        "self._profiled(self.pe, previous_owner, permissions) & ~self.pe.debug",
        "self._profiled(self.pe, owner, permissions) & ~self.pe.debug",
    ),
    "a permission of this cycle": Leak(
        "contexts",
        RICH,
        "control",
        'collect["context_el2"] = permissions.context_el2',
        'collect["context_el2"] = self.pmscr_el2.CX',
    ),
    "an offset of this cycle": Leak(
        "contexts",
        RICH,
        "inflight",
        "offset = self.pe.physical_count, Mux(self.subtract_offset, self.offset, 0)",
        "offset = self.pe.physical_count, Mux(self.subtract_offset, self.offset, self.pe.cntvoff_el2)",
    ),
    "a start state that is not captured": Leak(
        "other states",
        RICH,
        "inflight",
        "with m.If(slot.free):",
        "with m.If(slot.free | slot.in_flight):",
    ),
    "a branch that was not profiled": Leak(
        "other states", PBT, "previous_target", "self.previous.valid.eq(self.enabled)", "self.previous.valid.eq(1)"
    ),
    "VA of an operation that did not retire": Leak(
        "not completed", RICH, "record", "has_va = completed &", "has_va = ~facts.exception &"
    ),
    "VA of an exception": Leak("not completed", RICH, "record", "has_va = completed &", "has_va = facts.retired &"),
    "events of an operation that did not retire": Leak(
        "not completed", RICH, "record", "bits.append(bit & facts.retired)", "bits.append(bit)"
    ),
    "PMU event from the data source": Leak(
        "not completed", RICH, "filter", "self.feed.ds.eq(present & selected)", "self.feed.ds.eq(selected)"
    ),
    "permission of the previous operation": Leak(
        "stale",
        RICH,
        "inflight",
        "m.d.sync += start.eq(incoming)",
        "m.d.sync += [start.eq(incoming), start.collect.pa.eq(start.collect.pa | incoming.collect.pa)]",
    ),
    "latency of the previous operation": Leak(
        "stale", TWO, "slots", "self.translation.eq(self.translating & ~self.completed),", ""
    ),
    "bytes of the previous beat": Leak("stale", TWO, "aligner", "started.eq(~last)", "started.eq(1)"),
    "packets of the previous sample": Leak(
        "stale",
        RICH,
        "completion",
        "m.d.sync += [rejections.eq(self.rejected), feed.eq(self.feed)]",
        "m.d.sync += [rejections.eq(self.rejected), feed.eq(self.feed)]; m.d.comb += self.o.valid.eq(self.i.valid)",
    ),
}


@cache
def system(config: SPUConfig) -> Transition:
    return transition(spu.SPU(config))


def edit(monkeypatch: pytest.MonkeyPatch, leak: Leak) -> None:
    """Replace the components of the module by those of its edited source, in all modules that use them."""
    module = import_module(f"spurtle.gateware.{leak.module}")
    source = inspect.getsource(module)
    assert source.count(leak.old) == 1
    twin = ModuleType(module.__name__)
    twin.__package__ = module.__package__
    exec(compile(source.replace(leak.old, leak.new), module.__name__, "exec"), vars(twin))
    for user in [user for name, user in sys.modules.items() if name.startswith("spurtle.")]:
        for name, part in list(vars(user).items()):
            if inspect.isclass(part) and issubclass(part, wiring.Component) and part.__module__ == module.__name__:
                monkeypatch.setattr(user, name, getattr(twin, name))


@pytest.mark.parametrize(
    ("theorem", "config"),
    tiers(
        full=[("not completed", RICH)],
        long=[(leak.theorem, leak.config) for leak in LEAKS.values()],
    ),
    ids=lambda value: getattr(value, "name", value),
)
def test_noninterference_holds(theorem: str, config: SPUConfig) -> None:
    assert prove(THEOREMS[theorem], config, system(config)).result is Result.PASS
    assert prove_differ(THEOREMS[theorem], config, system(config)).result is Result.PASS


@pytest.mark.parametrize("name", tiers(fast=["VA of an exception"], full=[*LEAKS][::6], long=LEAKS))
def test_leaks_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leak = LEAKS[name]
    edit(monkeypatch, leak)
    verdict = prove(THEOREMS[leak.theorem], leak.config, transition(spu.SPU(leak.config)))
    assert verdict.result is Result.FAIL


@pytest.mark.parametrize("name", tiers(fast=["not completed"], full=THEOREMS))
def test_copies_without_secrets_do_not_differ(name: str) -> None:
    theorem = replace(THEOREMS[name], secrets=lambda _: ())
    assert prove_differ(theorem, MINIMAL, system(MINIMAL)).result is Result.FAIL


# States with different secrets can be reached from power-up.

CYCLES = {"addresses": 16, "contexts": 16, "other states": 18, "not completed": 16, "stale": 26}
"""Number of cycles until a record is written while a secret differs between the copies."""


def written(register: Register, value: int) -> dict[str, int]:
    encoding = {f"sysreg__{name}": getattr(register, name) for name in ("op1", "crn", "crm", "op2")}
    return {**encoding, "sysreg__valid": 1, "sysreg__write": 1, "sysreg__wdata": value}


def driven(theorem: str, cycle: int) -> dict[str, int]:
    """Return inputs that enable profiling of EL1, sample the fourth operation, and one more once its slot is free."""
    programmed = {
        0: written(PMSICR_EL1, 4),
        1: written(PMBLIMITR_EL1, 1 << 16 | PMBLIMITR_EL1.fields["E"].mask),
        2: written(PMSCR_EL1, PMSCR_EL1.fields["E1SPE"].mask),
        20: written(PMSICR_EL1, 1),
    }
    elsewhere = theorem == "other states" and cycle > 13
    state = {"rst": 0, "pe__el": 1, "pe__debug": int(elsewhere), "pe__aarch32": 0, "sysreg__valid": 0}
    return state | ({} if elsewhere else {"sampling__valid": 1}) | programmed.get(cycle, {})


@pytest.mark.parametrize("name", tiers(full=["not completed"], long=THEOREMS))
def test_the_copies_differ(name: str) -> None:
    theorem = THEOREMS[name]
    one = remembered(MINIMAL, system(MINIMAL))
    other = replace(one, _name="other")
    secrets = [secret for secret in theorem.secrets(MINIMAL) if secret.part.wire in one.inputs]
    solver = Solver(one.initial(), other.initial())
    for cycle in range(CYCLES[name] + 1):
        first, second = one.wires(cycle), other.wires(cycle)
        for wire in one.inputs:
            hidden = sum((1 << s.part.width) - 1 << s.part.lsb for s in secrets if s.part.wire == wire)
            solver.add((first[wire] ^ second[wire]) & ~hidden == 0)
        for secret in secrets:
            visible = any_of(secret.visible(first), secret.visible(second))
            solver.add(implies(visible, secret.part(first) == secret.part(second)))
        solver.add(*(first[wire] == value for wire, value in driven(name, cycle).items()))
        if cycle < CYCLES[name]:
            solver.add(one.step(cycle), other.step(cycle))
    solver.add(theorem.differ(MINIMAL)(first, second))
    assert solver.possible()
