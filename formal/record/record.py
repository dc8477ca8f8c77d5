"""A record's events and packets are those of `model.records`, for every sample."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

from configurations import FEATURES, distinct
from spurtle.arch import Header, OperationClass
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import Packet, RecordLayout
from spurtle.gateware.record import RecordBuilder, record_layout
from spurtle_sim.model import records
from spurtle_sim.records.operation_type import forms, operation_type

from ..engine.induction import Invariant, always
from ..engine.integer import Integer, Octets, no_decision, rebuild
from ..engine.paths import Path, explore, fold
from ..engine.proof import Proof, ProvedBlock, Result, Verdict
from ..engine.reference import follows
from ..engine.terms import (
    BitVector,
    Boolean,
    Solver,
    all_of,
    any_of,
    concat,
    constant,
    extract,
    implies,
    shift_right,
    variable,
    zero_extend,
)
from ..engine.transition import Transition, Wires, transition
from .sample import WIDEST, Samples, alike, promised, unimplemented_facts

__all__ = ["proofs", "prove_bytes", "prove_defined", "prove_events", "prove_ignored", "prove_operation"]

AT_REST = 2
"""Cycles that a sample has stood still when its packets are right: `Completion` sees to it, proved there."""


def _rests(config: SPUConfig) -> Invariant:
    """Of the first cycle in which a sample stands, and of the next."""
    return lambda wires: all_of(wires["rst"] == 0, promised(config, wires["sample"]))


def prove_events(config: SPUConfig, system: Transition) -> Verdict:
    """The events that the filter is shown. `system` is a `RecordBuilder` of `config`."""

    samples = Samples(config)

    def events(sample: int) -> Mapping[str, int]:
        return {"events": records.events(config, samples(sample))}

    return follows(system, events, latency=0)


def prove_operation(config: SPUConfig, system: Transition) -> Verdict:
    """The Operation Type packet, which has the most forms. `system` is a `RecordBuilder` of `config`."""
    reference = rebuild(records)
    samples = Samples(config)

    def packet(sample: int) -> Mapping[str, Octets | int]:
        operation = samples(sample).operation
        if operation.facts.retired == 0:
            return {"packet_operation": 0}
        return {"packet_operation": reference._operation_type(config, operation)}

    rests = _rests(config)
    return follows(system, packet, assuming=rests, assuming_between=rests, latency=AT_REST, stable_inputs=["sample"])


def prove_defined(config: SPUConfig, system: Transition) -> Verdict:
    """The Operation Type packet is never a reserved encoding, nor one of a feature that there is not. `system` is a
    `RecordBuilder` of `config`.
    """

    def defined(operation_class: int, payload: int) -> bool:
        read = operation_type(operation_class, payload)
        return read.kind != "reserved" and read.form in forms(config, read.kind)

    def told(*cycles: Wires) -> Boolean:
        header, payload = (extract(8 * byte + 7, 8 * byte, cycles[-1]["packet_operation"]) for byte in range(2))
        shown = [cycles[-1]["packet_operation"] == 0]
        for operation_class in OperationClass:
            table = sum(defined(operation_class, value) << value for value in range(256))
            entry = shift_right(constant(table, 256), zero_extend(248, payload))
            shown.append(all_of(header == Header.OPERATION | operation_class, extract(0, 0, entry) == 1))
        rests = [_rests(config)(wires) for wires in cycles[:-1]]
        same = (wires["sample"] == cycles[0]["sample"] for wires in cycles)
        return implies(all_of(*rests, *same), any_of(*shown))

    return always(system, told, cycles=AT_REST + 1)


def prove_bytes(config: SPUConfig, system: Transition) -> Verdict:
    """Every byte of every packet, what is zero because there is none, and in a packed layout which fields are left out.
    The payload of the Operation Type packet is proved on its own. `system` is a `RecordBuilder` of `config`.
    """
    sample = system.wires(0)["sample"]
    assumptions = Solver(promised(config, sample))
    header, payload = (variable(f"operation_{name}", 8) for name in ("header", "payload"))
    paths = list(explore(partial(_packets, _Taken(config, header, payload)), sample, solver=assumptions))
    if not paths:
        return Verdict(Result.FAIL, AT_REST, "the assumptions contradict each other, so nothing is proved")

    cycles = [system.wires(n) for n in range(AT_REST + 1)]
    rests = [_rests(config)(wires) for wires in cycles[:-1]]
    told = cycles[-1]
    context = [
        *(system.step(n) for n in range(AT_REST)),
        *rests,
        *(wires["sample"] == sample for wires in cycles),
        concat(payload, header) == told["packet_operation"],
    ]
    if not Solver(*context).possible():
        return Verdict(Result.FAIL, AT_REST, "the assumptions contradict each other, so nothing is proved")
    for name, expected, shown in _answers(config, paths, told["packets"]):
        question = Solver(*context, expected != shown)
        if question.possible():
            model = question.model()
            known = [model.value(term) for term in (sample, expected, shown)]
            evidence = "{}, sample = {:#x}\n  expected  {:#x}\n  got       {:#x}".format(name, *known)
            return Verdict(Result.FAIL, AT_REST, evidence)
    return Verdict(Result.PASS, AT_REST, method=f"reference, all {len(paths)} paths")


class _Taken:
    """The reference's packets of a sample, with an Operation Type packet that is what it is."""

    def __init__(self, config: SPUConfig, header: BitVector, payload: BitVector):
        self.config = config
        self.reference = rebuild(records)
        self.samples = Samples(config)
        operation = Octets(Integer(zero_extend(1, byte), no_decision) for byte in (header, payload))
        self.reference._operation_type = lambda config, told: operation


def _packets(taken: _Taken, sample: int) -> tuple[Octets, int]:
    """The record that leaves out no field and has no padding, as `record_layout` has it; which fields are elastic and
    there, and whether the last packet is Timestamp.
    """
    config = taken.config
    packets = dict(taken.reference.packets(config, taken.samples(sample)))
    layout = config.layout
    if layout.packed:
        fields = tuple((replace(field, elastic=False), *size) for field, *size in config.record_fields)
        whole = RecordLayout(tuple(field for field, *_ in fields), 1, layout.max_size)
        config = SimpleNamespace(name=config.name, layout=whole, record_fields=fields)
    octets = taken.reference.lay_out(config, packets.items())
    elastic = (field for field in layout.fields if field.elastic)
    there = [any(packet in packets for packet in field.packets) for field in elastic]
    return octets, sum(bit << place for place, bit in enumerate([*there, Packet.TIMESTAMP in packets]))


def _answers(
    config: SPUConfig, paths: list[Path[tuple[Octets, int]]], packets: BitVector
) -> Iterator[tuple[str, BitVector, BitVector]]:
    """What is asked about, place by place: name, what the reference says, what the RTL shows."""
    sizes = config.packet_bytes
    shape = record_layout(config)
    total, width = shape["octets"].width // 8, shape.size - shape["octets"].width
    cut: dict[int, BitVector] = {}

    def byte(value: Integer | int) -> BitVector:
        if not isinstance(value, Integer):
            return constant(value, 8)
        number = value.bits.number
        if number not in cut:
            cut[number] = extract(7, 0, value.bits)
        return cut[number]

    def told(result: tuple[Octets, int]) -> list[BitVector]:
        octets, fields = result
        shown = [byte(value) for value in (*octets, *[0] * (total - len(octets)))]
        return [*shown, constant(fields, width)] if width else shown

    expected = fold(paths, told)
    starts = {}
    offset = 0
    for field in config.layout.fields:
        starts[" or ".join(packet.value for packet in field.packets)] = offset
        offset += field.size(sizes)
    starts["padding and the last packet"] = offset
    for (name, start), end in zip(starts.items(), [*[*starts.values()][1:], total], strict=True):
        yield name, concat(*reversed(expected[start:end])), extract(8 * end - 1, 8 * start, packets)
    if width:
        yield "which fields are there", expected[-1], extract(8 * total + width - 1, 8 * total, packets)


def prove_ignored(config: SPUConfig, system: Transition) -> Verdict:
    """Facts for which there is no feature change nothing. `system` is a `RecordBuilder` of `config`."""

    def ignored(*cycles: Wires) -> Boolean:
        # One sample stands still, then the other does.
        halves = cycles[: AT_REST + 1], cycles[AT_REST + 1 :]
        stand = (wires["sample"] == half[0]["sample"] for half in halves for wires in half)
        running = (wires["rst"] == 0 for wires in cycles)
        told = (halves[0][-1][name] == halves[1][-1][name] for name in ("events", "packets"))
        differ = alike(config, *(half[0]["sample"] for half in halves))
        return implies(all_of(*stand, *running, differ), all_of(*told))

    return always(system, ignored, cycles=2 * (AT_REST + 1))


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(RecordBuilder(config))


_CHANGING = (
    "layout version events events_bytes counter_bits data_source_bytes mops gcs mte nv2 sve sme rme spe_sme pbt "
    "pbt_of_all crr fpf altclk imp_counter imp_address not_taken_target"
)
"""What of a configuration changes a record."""


def proofs() -> Iterator[Proof]:
    """For each configuration, and for each feature alone that makes records another configuration does not make."""
    for config in distinct((*CONFIGS.values(), *FEATURES.values(), WIDEST), _CHANGING):
        proof = ProvedBlock("record", config, _system).proof
        yield proof("the Events packet matches the reference", "reference", prove_events)
        yield proof("the Operation Type packet matches the reference", "reference", prove_operation)
        yield proof("the Operation Type packet is never a reserved encoding", "three cycles", prove_defined)
        yield proof("every byte matches the reference", "reference", prove_bytes)
        if unimplemented_facts(config):
            yield proof("facts of unimplemented features have no effect", "six cycles", prove_ignored)
