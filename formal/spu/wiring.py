# amaranth: UnusedElaboratable=no
"""Connections between the blocks of the SPU: each input is driven by its source, in all bits."""

from collections.abc import Iterator

from amaranth.lib import wiring

from spurtle.arch import FM, PMBLIMITR_EL1, PMBSR_EL1, PMSIRR_EL1, Register
from spurtle.config import SPUConfig
from spurtle.gateware.access_choice import AccessChoice
from spurtle.gateware.buffer import ProfilingBuffer
from spurtle.gateware.completion import Completion
from spurtle.gateware.control import ProfilingControl
from spurtle.gateware.filter import Filter
from spurtle.gateware.inflight import InFlight
from spurtle.gateware.interval import IntervalCounter
from spurtle.gateware.lfsr import LFSR
from spurtle.gateware.previous_target import PreviousTarget
from spurtle.gateware.registers import RegisterFile
from spurtle.gateware.spu import RecordPath

from ..engine.cover import satisfiable
from ..engine.induction import always
from ..engine.proof import Result, Verdict
from ..engine.terms import BitVector, Boolean, all_of, as_bits, concat, constant, extract, implies
from ..engine.transition import Transition, Wires

__all__ = ["SAME", "prove_register_bits", "prove_wiring", "register_inputs"]

_FILTER_REGISTERS = ("pmsfcr", "pmsevfr", "pmsnevfr", "pmslatfr", "pmsdsfr")


def _blocks(config: SPUConfig) -> dict[str, wiring.Component]:
    """Return the submodules of `SPU` by their names."""
    blocks: dict[str, wiring.Component] = {
        "registers": RegisterFile(config),
        "control": ProfilingControl(config),
        "interval_counter": IntervalCounter(config),
        "lfsr": LFSR(bits=8, draws=1, reset=1),
        "inflight": InFlight(config),
        "completion": Completion(config),
        "filter": Filter(config),
        "record_path": RecordPath(config),
        "buffer": ProfilingBuffer(config),
    }
    if config.access_bits:
        blocks["access_lfsr"] = LFSR(bits=config.access_bits, draws=config.selections_per_cycle, reset=1)
        blocks["access_choice"] = AccessChoice(config)
    if config.pbt:
        blocks["previous_target"] = PreviousTarget(config)
    return blocks


def _inputs(config: SPUConfig, system: Transition) -> Iterator[str]:
    """Yield the wires of the inputs of all blocks, and the outputs of the SPU.

    An input that its block does not read is not in the netlist.
    """
    wires = system.wires(0)
    for block, component in _blocks(config).items():
        for path, member, _ in component.signature.flatten(component):
            name = f"{block}.{'__'.join(map(str, path))}"
            if member.flow is wiring.In and name in wires:
                yield name
        # `spu.prove_freeze` compares this one with the reference.
    yield from (name for name in system.outputs if name != "pmu__freeze")


def _field(wires: Wires, wire: str, register: Register, name: str) -> BitVector:
    field = register.fields[name]
    return extract(field.lsb + field.width - 1, field.lsb, wires[wire])


def _bit(condition: Boolean) -> BitVector:
    return as_bits(condition)


SAME = {
    "control.pmscr": "registers.pmscr",
    "control.pmscr_el2": "registers.pmscr_el2",
    "control.running": "buffer.active",
    "interval_counter.operations": "sampling__valid",
    "interval_counter.enabled": "control.enabled",
    "interval_counter.random": "lfsr.random__0",
    "interval_counter.write": "registers.pmsicr_write",
    "interval_counter.wdata": "registers.wdata",
    "lfsr.draw": "interval_counter.draw",
    "lfsr.write": "registers.pmsrndr_write",
    "inflight.collect": "control.collect",
    "inflight.offset": "control.offset",
    "inflight.subtract_offset": "control.subtract_offset",
    "inflight.running": "buffer.running",
    "inflight.previous": "previous_target.previous",
    "inflight.sample__ready": "completion.i__ready",
    "completion.i__valid": "inflight.sample__valid",
    "completion.i__payload": "inflight.sample__payload",
    "completion.rejected": "filter.rejected",
    "completion.feed": "filter.feed",
    "completion.o__ready": "record_path.sample__ready",
    "filter.sample": "inflight.sample__payload",
    **{f"filter.{name}": f"registers.{name}" for name in _FILTER_REGISTERS},
    "record_path.sample__valid": "completion.o__valid",
    "record_path.sample__payload": "completion.o__payload",
    "record_path.accepted": "buffer.accepted",
    "record_path.beat__ready": "buffer.i__ready",
    "buffer.i__valid": "record_path.beat__valid",
    "buffer.i__payload": "record_path.beat__payload",
    "buffer.pmblimitr": "registers.pmblimitr",
    **{f"buffer.{name}_write": f"registers.{name}_write" for name in ("pmblimitr", "pmbptr", "pmbsr")},
    "buffer.wdata": "registers.wdata",
    "registers.pmsicr": "interval_counter.pmsicr",
    "registers.pmbptr": "buffer.pmbptr",
    "registers.pmbsr": "buffer.pmbsr",
    "registers.programmable": "control.programmable",
    "previous_target.enabled": "control.branch_enabled",
    "previous_target.new_owner": "control.new_owner",
    "access_choice.pmsfcr": "registers.pmsfcr",
    "access_lfsr.draw": "access_choice.draw",
    "access_lfsr.write": "registers.pmsrndr_write",
    "sampling__sampled": "inflight.sampled",
    "sampling__destination": "access_choice.destination",
}
"""Inputs that are outputs of another block, and outputs of the SPU that are outputs of a block."""

_PORTS = {
    "registers.port": "sysreg",
    "inflight.in_flight": "in_flight",
    "inflight.finish": "finish",
    "buffer.write": "write",
    **{f"{block}.pe": "pe" for block in ("registers", "control", "inflight")},
    **{f"{block}.branch": "branch" for block in ("control", "previous_target")},
    "sysreg": "registers.port",
    "write": "buffer.write",
}
"""Ports of blocks that are ports of the SPU: inputs of blocks, then outputs of the SPU."""

_ARRAYS = {
    "inflight.selected": "interval_counter.selected",
    "access_choice.selected": "interval_counter.selected",
    "access_choice.random": "access_lfsr.random",
    "sampling__slot": "inflight.slot",
    "sampling__element": "access_choice.element",
}


def _drop(system: Transition) -> str:
    """Return the wire of the output `drop` of `InFlight`.

    With several slots it is a register, and its name in the netlist ends with `$` and a number, because a signal of a
    slot has the same name.
    """
    registers = (name for name in system.registers if name.startswith("inflight.drop$"))
    return next(registers, "inflight.drop")


def _source(config: SPUConfig, system: Transition, wires: Wires, name: str) -> BitVector | None:
    """Return the source of an input or an output in the same cycle, or None if this module states none."""
    if name in SAME:
        return wires[SAME[name]]
    for table, (stem, _, rest) in ((_PORTS, name.partition("__")), (_ARRAYS, name.rpartition("__"))):
        if stem in table:
            return wires[f"{table[stem]}__{rest}"]
    computed = {
        "interval_counter.interval": lambda: _field(wires, "registers.pmsirr", PMSIRR_EL1, "INTERVAL"),
        "interval_counter.rnd": lambda: _field(wires, "registers.pmsirr", PMSIRR_EL1, "RND"),
        "completion.drop": lambda: wires[_drop(system)],
        "completion.discard": lambda: _bit(_field(wires, "registers.pmblimitr", PMBLIMITR_EL1, "FM") == FM.DISCARD),
        "buffer.drop": lambda: wires[_drop(system)],
        "lfsr.wdata": lambda: extract(31, 0, wires["registers.wdata"]),
        "access_lfsr.wdata": lambda: extract(63, 32, wires["registers.wdata"]),
        "registers.pmsrndr": lambda: concat(
            wires["access_lfsr.state"] if config.access_bits else constant(0, 32), wires["lfsr.state"]
        ),
        "buffer.collision": lambda: _bit(wires["inflight.collisions"] != 0),
        "buffer.new_owner": lambda: wires["control.new_owner"] if config.several_owners else constant(0, 1),
        "pmbirq": lambda: _field(wires, "buffer.pmbsr", PMBSR_EL1, "S"),
        "drain__done": lambda: (
            wires["drain__request"]
            & ~wires["inflight.pending"]
            & ~wires["record_path.beat__valid"]
            & ~wires["buffer.busy"]
        ),
    }
    return computed[name]() if name in computed else None


def _event(config: SPUConfig, wires: Wires, name: str) -> BitVector | None:
    """Return the value of an output for the PMU in the next cycle, or None if the output is not one for the PMU."""
    events = {
        "sample_pop": "interval_counter.population",
        "sample_feed": "completion.fed",
        "sample_filtrate": "completion.filtrated",
        "sample_collision": "inflight.collisions",
        "sample_buffer_full": "buffer.full",
    }
    event = name.removeprefix("pmu__")
    if event in events:
        return wires[events[event]]
    feed = event.removeprefix("sample_feed_")
    if feed in config.feed_events:
        index = config.feed_events.index(feed)
        return extract(index, index, wires["completion.fed_as"])

    return None


def prove_wiring(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that each input of each block, and each output of the SPU, equals its source. `system` is an `SPU`.

    The tables of this module state the sources.
    """
    wires = system.wires(0)
    try:
        driven = {name: _source(config, system, wires, name) for name in _inputs(config, system)}
        events = {name: _event(config, wires, name) for name, source in driven.items() if source is None}
    except KeyError as unread:  # Yosys removes wires that are not read.
        return Verdict(Result.FAIL, 0, f"nothing reads {unread.args[0]}")
    if unknown := sorted(name for name, source in events.items() if source is None):
        return Verdict(Result.ERROR, 0, f"formal/spu/wiring.py states no source for {', '.join(unknown)}")

    def connected(now: Wires, then: Wires) -> Boolean:
        same = (now[name] == source for name, source in driven.items() if source is not None)
        later = (implies(now["rst"] == 0, then[name] == source) for name, source in events.items())
        return all_of(*same, *later)

    return always(system, connected)


def register_inputs(config: SPUConfig) -> dict[str, int]:
    """Return the inputs of blocks that read registers which only software changes, with their implemented bits."""
    registers = {register.name.lower().removesuffix("_el1"): register for register in config.registers}
    inputs = {name: config.writable(registers[name]) for name in _FILTER_REGISTERS if name in registers}
    interval, rnd = (PMSIRR_EL1.fields[name] for name in ("INTERVAL", "RND"))
    return {
        **{f"filter.{name}": bits for name, bits in inputs.items()},
        **{
            f"control.{name}": config.writable(registers[name])
            for name in ("pmscr", *(["pmscr_el2"] if config.el2 else []))
        },
        **({"access_choice.pmsfcr": config.writable(registers["pmsfcr"])} if config.two_accesses else {}),
        "buffer.pmblimitr": config.writable(registers["pmblimitr"]),
        "interval_counter.interval": interval.mask >> interval.lsb,
        "interval_counter.rnd": rnd.mask >> rnd.lsb,
    }


def prove_register_bits(config: SPUConfig, system: Transition) -> Verdict:
    """Find a state in which every implemented register bit is one at each block that reads it. `system` is an `SPU`."""

    def ones(wires: Wires) -> Boolean:
        return all_of(*(wires[name] & bits == bits for name, bits in register_inputs(config).items()))

    return satisfiable(system, ones, cycles=1)
