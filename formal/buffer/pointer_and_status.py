"""PMBPTR_EL1, PMBSR_EL1 and the full check match `model.buffer`."""

from collections.abc import Mapping

from spurtle.arch import PMBSR_EL1
from spurtle.config import SPUConfig
from spurtle.interface.memory import WriteFaultKind
from spurtle_sim.model.buffer import Buffer as ReferenceBuffer
from spurtle_sim.model.buffer import Fault, FaultKind
from spurtle_sim.model.registers import Registers

from ..engine.proof import Verdict
from ..engine.reference import Reference, follows
from ..engine.transition import Transition
from .relation import relation

__all__ = ["prove_full", "prove_pointer", "prove_status"]


def _registers(wires: Mapping[str, int]) -> Registers:
    return Registers(PMBPTR_EL1=wires["pmbptr"], PMBLIMITR_EL1=wires["pmblimitr"], PMBSR_EL1=wires["pmbsr"])


def prove_full(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that `full` matches the reference: while it is asserted, and while the buffer is not busy."""

    def found(wires: Mapping[str, int]) -> Mapping[str, int]:
        asserted = wires["exhausted"] == 1 and wires["running"] == 1
        if wires["busy"] == 1 and not asserted:
            return {"full": 0}
        registers = _registers(wires)
        before = PMBSR_EL1.unpack(registers.PMBSR_EL1).S
        ReferenceBuffer(config, registers).stop_if_full()
        return {"full": PMBSR_EL1.unpack(registers.PMBSR_EL1).S - before}

    arguments = ["busy", "exhausted", "running", "pmbptr", "pmblimitr", "pmbsr"]
    return follows(system, found, arguments=arguments, assuming=relation(config), latency=0)


def _fault(config: SPUConfig, wires: Mapping[str, int]) -> Fault:
    """Return the fault of the record that starts at PMBPTR_EL1 and that memory answered in the previous cycle."""
    word, pointer = wires["fault_word"], wires["pmbptr"]
    kind = next(kind for kind in FaultKind if wires["fault_kind"] == WriteFaultKind[kind.name].value)
    flags = 0
    for name in config.fault_flags:
        flags = flags | wires[f"fault_{name}"] << PMBSR_EL1.fields[name].lsb
    return Fault(
        kind=kind,
        written=0 if word == 0 else word * config.bus_bytes - (pointer & config.bus_bytes - 1),
        fsc=wires["fault_fsc"],
        flags=flags,
        external=wires["fault_external"] == 1 if config.external_aborts else False,
    )


def _ends(config: SPUConfig, wires: Mapping[str, int], registers: Registers, fault: Fault | None) -> None:
    buffer = ReferenceBuffer(config, registers)
    if wires["answered_undisturbed"] == 1 and wires["running"] == 1:
        buffer.end(wires["answered_length"], fault)
    else:
        buffer.abandon(fault)


def _answer(config: SPUConfig, wires: Mapping[str, int], registers: Registers) -> None:
    """End the record that memory answered in the previous cycle."""
    if wires["fault_kind"] == WriteFaultKind.NONE.value:
        _ends(config, wires, registers, None)
    else:
        _ends(config, wires, registers, _fault(config, wires))


def prove_pointer(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that PMBPTR_EL1 matches the reference in each cycle. A write by software has priority."""

    def moved(wires: Mapping[str, int]) -> Mapping[str, int]:
        if wires["rst"] == 1:
            return {"pmbptr": 0}
        if wires["pmbptr_write"] == 1:
            return {"pmbptr": wires["wdata"]}
        registers = _registers(wires)
        if wires["answered"] == 1:
            _answer(config, wires, registers)
        return {"pmbptr": registers.PMBPTR_EL1}

    return _cycle(config, system, moved, "pmbptr_write")


def prove_status(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that PMBSR_EL1 matches the reference in each cycle.

    The events of a cycle are applied in this order: a write by software, a collision, a buffer full event or a fault,
    an asynchronous External abort.
    """

    def changed(wires: Mapping[str, int]) -> Mapping[str, int]:
        if wires["rst"] == 1:
            return {"pmbsr": 0}
        registers = _registers(wires)
        buffer = ReferenceBuffer(config, registers)
        if wires["pmbsr_write"] == 1:
            registers.write(config, PMBSR_EL1, wires["wdata"])
        if wires["collision"] == 1:
            buffer.collide()
        if wires["full"] == 1:
            buffer.stop_if_full()
        if wires["answered"] == 1:
            _answer(config, wires, registers)
        if config.external_aborts and wires["write__abort"] == 1:
            buffer.abort()
        return {"pmbsr": registers.PMBSR_EL1}

    abort = ["write__abort"] if config.external_aborts else []
    return _cycle(config, system, changed, "pmbsr_write", "collision", "full", *abort)


def _cycle(config: SPUConfig, system: Transition, reference: Reference, *inputs: str) -> Verdict:
    external = ["external"] if config.external_aborts else []
    arguments = [
        *("rst", "wdata", *inputs),
        *("answered", "pmbptr", "pmblimitr", "pmbsr", "running", "answered_undisturbed", "answered_length"),
        *(f"fault_{name}" for name in ("kind", "word", "fsc", *external, *config.fault_flags)),
    ]
    return follows(system, reference, arguments=arguments, assuming=relation(config))
