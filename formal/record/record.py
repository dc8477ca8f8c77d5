"""Record builder: events and packets match `model.records`, for every sample."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

from configurations import FEATURES, distinct
from spurtle.arch import Header, OperationClass
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import Packet, RecordLayout
from spurtle.gateware.record import RecordBuilder, record_layout, settling_cycles
from spurtle_sim.model import records
from spurtle_sim.records.operation_type import forms, operation_type

from ..engine.induction import Invariant, always
from ..engine.integer import Integer, Octets, no_decision, rebuild
from ..engine.paths import Path, explore, fold
from ..engine.proof import Proof, ProvedBlock, Result, Verdict
from ..engine.reference import Reference, follows
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
from .sample import WIDEST, Samples, equivalent, sample_contract, unimplemented_facts

__all__ = ["proofs", "prove_bytes", "prove_defined", "prove_events", "prove_ignored", "prove_operation"]


def _settling(config: SPUConfig) -> Invariant:
    """Return the assumption on the cycles before the packets of a sample are valid."""
    return lambda wires: all_of(wires["rst"] == 0, sample_contract(config, wires["sample"]))


def _settled(config: SPUConfig, system: Transition, reference: Reference) -> Verdict:
    """Prove that the outputs match the reference when the packets of a sample are valid."""
    settling = _settling(config)
    return follows(
        system,
        reference,
        assuming=settling,
        assuming_between=settling,
        latency=settling_cycles(config),
        stable_inputs=["sample"],
    )


def prove_events(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that the Events packet matches the reference. `system` is a `RecordBuilder` of `config`."""
    samples = Samples(config)
    header = Header.EVENTS | Header.size_field(config.events_bytes)

    def packet(sample: int) -> Mapping[str, int]:
        return {"packet_events": header | records.events(config, samples(sample)) << 8}

    return _settled(config, system, packet)


def prove_operation(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that the Operation Type packet matches the reference. `system` is a `RecordBuilder` of `config`.

    This packet has the most forms, so it has a separate proof.
    """
    reference = rebuild(records)
    samples = Samples(config)

    def packet(sample: int) -> Mapping[str, Octets | int]:
        operation = samples(sample).operation
        if operation.facts.retired == 0:
            return {"packet_operation": 0}
        return {"packet_operation": reference._operation_type(config, operation)}

    return _settled(config, system, packet)


def prove_defined(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that the Operation Type packet is never a reserved encoding, nor one of an unimplemented feature.

    `system` is a `RecordBuilder` of `config`.
    """

    def defined(operation_class: int, payload: int) -> bool:
        decoded = operation_type(operation_class, payload)
        return decoded.kind != "reserved" and decoded.form in forms(config, decoded.kind)

    def packet_is_defined(*cycles: Wires) -> Boolean:
        header, payload = (extract(8 * byte + 7, 8 * byte, cycles[-1]["packet_operation"]) for byte in range(2))
        encodings = [cycles[-1]["packet_operation"] == 0]
        for operation_class in OperationClass:
            table = sum(defined(operation_class, value) << value for value in range(256))
            entry = shift_right(constant(table, 256), zero_extend(248, payload))
            encodings.append(all_of(header == Header.OPERATION | operation_class, extract(0, 0, entry) == 1))
        settling = [_settling(config)(wires) for wires in cycles[:-1]]
        stable = (wires["sample"] == cycles[0]["sample"] for wires in cycles)
        return implies(all_of(*settling, *stable), any_of(*encodings))

    return always(system, packet_is_defined, cycles=settling_cycles(config) + 1)


def prove_bytes(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that every byte matches the reference. `system` is a `RecordBuilder` of `config`.

    The bytes of absent packets are zero. In a packed layout the outputs also say which fields are present. The
    Operation Type packet has a separate proof.
    """
    sample = system.wires(0)["sample"]
    assumptions = Solver(sample_contract(config, sample))
    header, payload = (variable(f"operation_{name}", 8) for name in ("header", "payload"))
    latency = settling_cycles(config)
    paths = list(explore(partial(_packets, _Reference(config, header, payload)), sample, solver=assumptions))
    if not paths:
        return Verdict(Result.FAIL, latency, "the assumptions contradict each other, so nothing is proved")

    cycles = [system.wires(n) for n in range(latency + 1)]
    settling = [_settling(config)(wires) for wires in cycles[:-1]]
    last = cycles[-1]
    context = [
        *(system.step(n) for n in range(latency)),
        *settling,
        *(wires["sample"] == sample for wires in cycles),
        concat(payload, header) == last["packet_operation"],
    ]
    if not Solver(*context).possible():
        return Verdict(Result.FAIL, latency, "the assumptions contradict each other, so nothing is proved")
    for name, expected, actual in _results(config, paths, last["packets"]):
        question = Solver(*context, expected != actual)
        if question.possible():
            model = question.model()
            values = [model.value(term) for term in (sample, expected, actual)]
            evidence = "{}, sample = {:#x}\n  expected  {:#x}\n  got       {:#x}".format(name, *values)
            return Verdict(Result.FAIL, latency, evidence)
    return Verdict(Result.PASS, latency, method=f"reference, all {len(paths)} paths")


class _Reference:
    """Reference with an arbitrary Operation Type packet, instead of one computed from the sample."""

    def __init__(self, config: SPUConfig, header: BitVector, payload: BitVector):
        self.config = config
        self.reference = rebuild(records)
        self.samples = Samples(config)
        operation = Octets(Integer(zero_extend(1, byte), no_decision) for byte in (header, payload))
        self.reference._operation_type = lambda config, sampled: operation


def _packets(context: _Reference, sample: int) -> tuple[Octets, int]:
    """Return the record in the form of `record_layout`: with all fields and without padding.

    The second result has a bit for each elastic field, set if the field is present, and then one that is set if the
    last packet is Timestamp.
    """
    config = context.config
    packets = dict(context.reference.packets(config, context.samples(sample)))
    layout = config.layout
    if layout.packed:
        fields = tuple((replace(field, elastic=False), *size) for field, *size in config.record_fields)
        all_fields = RecordLayout(tuple(field for field, *_ in fields), 1, layout.max_size)
        config = SimpleNamespace(name=config.name, layout=all_fields, record_fields=fields)
    octets = context.reference.lay_out(config, packets.items())
    elastic = (field for field in layout.fields if field.elastic)
    present = [any(packet in packets for packet in field.packets) for field in elastic]
    return octets, sum(bit << index for index, bit in enumerate([*present, Packet.TIMESTAMP in packets]))


def _results(
    config: SPUConfig, paths: list[Path[tuple[Octets, int]]], packets: BitVector
) -> Iterator[tuple[str, BitVector, BitVector]]:
    """Yield name, expected value and wires of each field of the record."""
    sizes = config.packet_bytes
    shape = record_layout(config)
    total, width = shape["octets"].width // 8, shape.size - shape["octets"].width
    cut: dict[int, BitVector] = {}
    constants = [constant(value, 8) for value in range(256)]

    def byte(value: Integer | int) -> BitVector:
        if not isinstance(value, Integer):
            return constants[value]
        number = value.bits.number
        if number not in cut:
            cut[number] = extract(7, 0, value.bits)
        return cut[number]

    def values(result: tuple[Octets, int]) -> list[BitVector]:
        octets, present = result
        terms = [byte(value) for value in (*octets, *[0] * (total - len(octets)))]
        return [*terms, constant(present, width)] if width else terms

    expected = fold(paths, values)
    starts = {}
    offset = 0
    for field in config.layout.fields:
        starts[" or ".join(packet.value for packet in field.packets)] = offset
        offset += field.size(sizes)
    starts["padding and the last packet"] = offset
    for (name, start), end in zip(starts.items(), [*[*starts.values()][1:], total], strict=True):
        yield name, concat(*reversed(expected[start:end])), extract(8 * end - 1, 8 * start, packets)
    if width:
        yield "which fields are present", expected[-1], extract(8 * total + width - 1, 8 * total, packets)


def prove_ignored(config: SPUConfig, system: Transition) -> Verdict:
    """Prove that facts of unimplemented features have no effect. `system` is a `RecordBuilder` of `config`."""

    def ignored(*cycles: Wires) -> Boolean:
        # One sample is stable until its packets are valid, then another one is.
        halves = cycles[:length], cycles[length:]
        stable = (wires["sample"] == half[0]["sample"] for half in halves for wires in half)
        running = (wires["rst"] == 0 for wires in cycles)
        same_packets = halves[0][-1]["packets"] == halves[1][-1]["packets"]
        alike = equivalent(config, *(half[0]["sample"] for half in halves))
        return implies(all_of(*stable, *running, alike), same_packets)

    length = settling_cycles(config) + 1
    return always(system, ignored, cycles=2 * length)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(RecordBuilder(config))


_CHANGING = (
    "layout version events events_bytes counter_bits data_source_bytes mops gcs mte nv2 sve sme rme spe_sme pbt "
    "pbt_of_all crr fpf altclk imp_counter imp_address not_taken_target"
)
"""Members of a configuration that change records."""


def proofs() -> Iterator[Proof]:
    """Yield the proofs, for each configuration and for each feature alone that changes records."""
    for config in distinct((*CONFIGS.values(), *FEATURES.values(), WIDEST), _CHANGING):
        proof = ProvedBlock("record", config, _system).proof
        yield proof("the Events packet matches the reference", "reference", prove_events)
        yield proof("the Operation Type packet matches the reference", "reference", prove_operation)
        yield proof("the Operation Type packet is never a reserved encoding", "three cycles", prove_defined)
        yield proof("every byte matches the reference", "reference", prove_bytes)
        if unimplemented_facts(config):
            yield proof("facts of unimplemented features have no effect", "six cycles", prove_ignored)
