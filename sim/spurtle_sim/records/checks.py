"""What holds in every record that an SPU of a configuration writes, checked on the decoded record.

Seven invariants of real silicon, as they are here:

1. A record is whole: Timestamp or End ends it, nothing in it is unknown. With its padding it is as long as its packets
   make it, and the next one begins where it ends.
2. TOTAL is not less than ISSUE and TRANSLATION. TRANSLATION stands with VA. TARGET is of branches; VA, PA, TRANSLATION
   and DATA_SOURCE are of loads and stores, and of branches that access the Guarded control stack.
3. PC, OPERATION, TOTAL and, if it has a place, ISSUE: one of each, if the operation retired. Otherwise EVENTS alone,
   with every event zero. ALTERNATE_ISSUE stands with event 25, where that tells.
4. A branch that was not taken has PC + 4 for its target.
5. Counters are below two to their width. An extended header is that of an INDEX from 16 on, of the core's own packets.
6. Timestamps do not decrease, with one slot: with more, the order is that in which operations finished.
7. NOT-TAKEN comes with COND, MISPREDICTED with branches, each other event with the operations that can have it.

`violations` are what the record path guarantees whatever it is told: all but the following. `core_violations` hold
because of what counts and what tells: the latencies of 2 by the counters of the SPU's slots, 4 and the Security states
by the core, which also says that a branch was taken that is not conditional, and that an empty predicate is partial.
6 holds as long as the system counter does not run backward.
"""

# Ref: DDI0487 M.a, D17.6 (what is collected), D18.2 (packets).

from collections.abc import Iterable, Iterator, Set
from typing import Any, NamedTuple

from spurtle.arch import ADDRESS_BITS, AddressIndex, ContextIndex, CounterIndex, Event, PMSVer
from spurtle.arch.events import Operations, events_of, mask
from spurtle.arch.packets import INSTRUCTION_TOP
from spurtle.config import SPUConfig
from spurtle.config.record_layouts import Packet

from .decode import InstructionAddress, PacketKind, PhysicalAddress, Record, decode_records, packet_fields
from .operation_type import OperationType, forms

__all__ = ["Monitor", "core_violations", "violations"]


_TELLING_EVENTS = mask((Event.GENERATED_EXCEPTION, Event.RETIRED, Event.NOT_TAKEN, Event.SMCU))
"""What a record may hold depends on these."""

_ADDRESSES = {
    AddressIndex.PC: Packet.PC,
    AddressIndex.TARGET: Packet.TARGET,
    AddressIndex.VA: Packet.VA,
    AddressIndex.PA: Packet.PA,
    AddressIndex.PREVIOUS_TARGET: Packet.PREVIOUS_TARGET,
}
_COUNTERS = {
    CounterIndex.TOTAL: Packet.TOTAL,
    CounterIndex.ISSUE: Packet.ISSUE,
    CounterIndex.TRANSLATION: Packet.TRANSLATION,
    CounterIndex.ALTERNATE_ISSUE: Packet.ALTERNATE_ISSUE,
}
_CONTEXTS = {ContextIndex.EL1: Packet.CONTEXT_EL1, ContextIndex.EL2: Packet.CONTEXT_EL2}

_RESERVED_TOP = 0xFF & ~sum(field.mask for field in INSTRUCTION_TOP.values())
"""Bits of the top byte of an instruction's address that are zero."""


class Monitor:
    """Checks the Profiling Buffer as it is written. Keeps the last timestamp, and what a record may hold: there are few
    kinds of records, and many of each.

    Parameters
    ----------
    config : SPUConfig
    core : bool
        Check what the core promises too.
    """

    def __init__(self, config: SPUConfig, *, core: bool = True):
        self._config = config
        self._core = core
        self._timestamp = 0
        self._rules: dict[tuple[Any, ...], _Rules] = {}
        self._lengths: dict[frozenset[Packet], int] = {}

    def check(self, data: bytes, decoded: Iterable[Record] | None = None) -> list[str]:
        """What is wrong with the records of `data`: whole ones, that follow those of the call before. `decoded` are
        the same, where they are at hand.
        """
        found = list(_headers(data))
        end = 0
        for record in decode_records(data) if decoded is None else decoded:
            wrong = violations(self._config, record, self._rules)
            if self._core:
                wrong += [*core_violations(self._config, record), *self._order(record)]
            start, end = end, self._end(record)
            length = self._length(frozenset(_present(self._config, record)), record)
            if end - start != length:
                wrong.append(f"{end - start} bytes with its padding, not {length}")
            found += [f"record at {record.offset:#x}: {what}" for what in wrong]
        if end != len(data):
            found.append(f"the last record ends at {end:#x}, not at {len(data):#x}")
        return found

    def _end(self, record: Record) -> int:
        """Where it ends, and the next begins."""
        end = record.offset + record.size
        return end + -end % self._config.layout.align if self._config.layout.padding_last else end

    def _length(self, present: frozenset[Packet], record: Record) -> int:
        """Bytes of a record of these packets, padding included."""
        layout, sizes = self._config.layout, self._config.packet_bytes
        if present not in self._lengths:
            fields = (
                size for field, size, there in self._config.record_fields if not field.elastic or present & there.keys()
            )
            self._lengths[present] = sum(fields)
        length = self._lengths[present] + sizes[Packet.END if record.timestamp is None else Packet.TIMESTAMP]
        return length + -length % layout.align

    def _order(self, record: Record) -> Iterator[str]:
        if record.timestamp is None or self._config.slots > 1:
            return
        if record.timestamp < self._timestamp:
            yield f"timestamp {record.timestamp} after {self._timestamp}"
        self._timestamp = record.timestamp


def _headers(data: bytes) -> Iterator[str]:
    for offset, _, kind, index, _ in packet_fields(data):
        if kind in (PacketKind.ADDRESS, PacketKind.COUNTER) and (0x20 <= data[offset] <= 0x3F) != (index >= 8):
            header = "a short" if index >= 8 else "an extended"
            yield f"packet at {offset:#x}: {header} header for INDEX {index}"


class _Rules(NamedTuple):
    """For what a record says of its operation: packets that it has to hold and may hold, events that it must not, and
    what is wrong with the operation itself.
    """

    required: frozenset[Packet]
    allowed: frozenset[Packet]
    never: int
    wrong: tuple[str, ...]


def violations(config: SPUConfig, record: Record, known: dict[tuple[Any, ...], _Rules] | None = None) -> list[str]:
    """What is wrong with a record, whatever the core told. One sentence each.

    The record was decoded from data that begins at a multiple of the alignment. `known` keeps the rules from one
    record of `config` to the next.
    """
    known = {} if known is None else known
    key = (record.operation_packet, (record.events or 0) & _TELLING_EVENTS, AddressIndex.VA in record.addresses)
    rules = known.get(key) or known.setdefault(key, _rules(config, record))
    found = [*_whole(config, record)]
    if record.events and not _has(record, Event.RETIRED):
        found.append(f"events {record.events:#x} without event 1 (retired)")
    present = {*_present(config, record)}
    if not rules.required <= present <= rules.allowed:
        found += [f"{packet.value} is missing" for packet in Packet if packet in rules.required - present]
        found += [f"{packet.value} must not be there" for packet in Packet if packet in present - rules.allowed]
    found += _unnamed(config, record)
    found += _values(config, record)
    found += rules.wrong
    wrong = (record.events or 0) & rules.never
    if wrong and record.operation is not None:
        bits = [bit for bit in range(64) if wrong >> bit & 1]
        kind, form = record.operation.kind, record.operation.form
        found.append(f"events {bits} of an operation of kind {kind!r} and form {form!r}: {record.operation.attributes}")
    return found


def _rules(config: SPUConfig, record: Record) -> _Rules:
    required, allowed = _packets(config, record)
    operation = record.operation
    if operation is None:
        return _Rules(frozenset(required), frozenset(allowed), 0, ())
    wrong = tuple(_operation(config, operation))
    return _Rules(frozenset(required), frozenset(allowed), _never(config, operation), wrong)


def core_violations(config: SPUConfig, record: Record) -> list[str]:
    """What is wrong with a record because the core told what cannot be, or because latencies were not counted."""
    found: list[str] = []
    for name in ("issue", "translation"):
        latency = getattr(record, name)
        if record.total is not None and latency is not None and latency > record.total:
            found.append(f"{name} latency {latency} above the total latency {record.total}")
    pc, target, operation = record.pc, record.target, record.operation
    if pc is not None and operation is not None and operation.kind == "branch":
        following = pc._replace(address=(pc.address + 4) & (1 << ADDRESS_BITS) - 1)
        if _has(record, Event.NOT_TAKEN) and target not in (None, following):
            found.append(f"a branch not taken at {pc} has the target {target}")
        if not _has(record, Event.NOT_TAKEN) and target is None:
            found.append("a taken branch has no target")
    if _has(record, Event.EMPTY_PREDICATE) and not _has(record, Event.PARTIAL_PREDICATE):
        found.append("event 18 (empty predicate) without event 17 (partial predicate)")
    found += [
        f"{name} is in Root state: NSE without NS"
        for name, place in _places(record).items()
        if place.nse and not place.ns
    ]
    return found


def _has(record: Record, event: Event) -> bool:
    return bool((record.events or 0) >> event & 1)


def _whole(config: SPUConfig, record: Record) -> Iterator[str]:
    layout = config.layout
    if not record.complete:
        yield "no Timestamp or End packet ends it"
    yield from (problem.message for problem in record.problems)
    yield from (f"a packet with header {packet.value:#04x}, which is unknown" for packet in record.unknown)
    if record.size > config.max_record_bytes:
        yield f"{record.size} bytes, more than {config.max_record_bytes}"
    if not layout.padding_last:
        if (record.offset + record.size) % layout.align:
            yield f"it ends at {record.offset + record.size:#x}, which is no multiple of {layout.align}"
    elif (start := record.offset - _zeros_in_front(config, {*_present(config, record)})) % layout.align:
        yield f"it starts at {start:#x}, which is no multiple of {layout.align}"


def _zeros_in_front(config: SPUConfig, present: Set[Packet]) -> int:
    """Bytes of a record in front of its first packet: fields, and parts of a field, for packets that are absent."""
    zeros = 0
    for field, size, offsets in config.record_fields:
        if there := [offset for packet, offset in offsets.items() if packet in present]:
            return zeros + min(there)
        if not field.elastic:
            zeros += size
    return zeros


def _present(config: SPUConfig, record: Record) -> Iterator[Packet]:
    """Packets that the record has, but for those that end it."""
    for payloads, names in ((record.addresses, _ADDRESSES), (record.counters, _COUNTERS), (record.contexts, _CONTEXTS)):
        yield from (packet for index, packet in names.items() if index in payloads)
    if config.imp_address in record.addresses and config.imp_address:
        yield Packet.IMP_ADDRESS
    if config.imp_counter in record.counters and config.imp_counter:
        yield Packet.IMP_COUNTER
    for packet, content in (
        (Packet.OPERATION, record.operation_packet),
        (Packet.EVENTS, record.events),
        (Packet.DATA_SOURCE, record.data_source),
    ):
        if content is not None:
            yield packet


def _unnamed(config: SPUConfig, record: Record) -> Iterator[str]:
    for name, payloads, known in (
        ("Address", record.addresses, {*_ADDRESSES, config.imp_address}),
        ("Counter", record.counters, {*_COUNTERS, config.imp_counter}),
        ("Context", record.contexts, {*_CONTEXTS}),
    ):
        yield from (f"{name} packet with INDEX {index}" for index in payloads if index not in known)


def _packets(config: SPUConfig, record: Record) -> tuple[set[Packet], set[Packet]]:
    """What the record has to hold, and what it may hold, for what it says of the operation."""
    required = {Packet.EVENTS}
    if not _has(record, Event.RETIRED):  # D17.6.7
        return required, required
    required |= {Packet.PC, Packet.OPERATION, Packet.TOTAL, Packet.ISSUE} & {*config.layout.packets}
    optional = {Packet.CONTEXT_EL1, Packet.CONTEXT_EL2}
    if config.spe_sme and Event.SMCU in config.events:  # D17.6.1
        required |= {Packet.ALTERNATE_ISSUE} if config.altclk and _has(record, Event.SMCU) else set()
    else:
        optional.add(Packet.ALTERNATE_ISSUE)
    if record.operation is not None and not _has(record, Event.GENERATED_EXCEPTION):  # D17.6.10
        _packets_of_completed(config, record, record.operation, required, optional)
    return required, required | optional & {*config.layout.packets}


def _packets_of_completed(
    config: SPUConfig, record: Record, operation: OperationType, required: set[Packet], optional: set[Packet]
) -> None:
    optional |= {Packet.IMP_COUNTER, Packet.IMP_ADDRESS}
    if config.pbt_of_all:
        optional.add(Packet.PREVIOUS_TARGET)
    if operation.kind == "branch":  # D17.6.3
        optional.add(Packet.PREVIOUS_TARGET)
        if config.not_taken_target:
            required.add(Packet.TARGET)
        elif not _has(record, Event.NOT_TAKEN):
            optional.add(Packet.TARGET)
    if _accesses(operation):  # D17.6.4
        optional.add(Packet.VA)
        if record.va is not None:
            required.add(Packet.TRANSLATION)
            optional.add(Packet.PA)
        if operation.kind != "store":  # D18.2.4
            optional.add(Packet.DATA_SOURCE)


def _accesses(operation: OperationType) -> bool:
    return operation.kind in ("load", "store") or bool(operation.attributes.get("gcs"))


def _places(record: Record) -> dict[str, InstructionAddress | PhysicalAddress]:
    named = {name: getattr(record, name) for name in ("pc", "target", "previous_target", "pa")}
    return {name: place for name, place in named.items() if place is not None}


def _values(config: SPUConfig, record: Record) -> Iterator[str]:
    """Fields that are zero, or below a limit."""
    for index, count in record.counters.items():
        if count >> config.counter_bits:
            yield f"Counter packet with INDEX {index} holds {count}, more than {config.counter_bits} bits"
    for index in (AddressIndex.PC, AddressIndex.TARGET, AddressIndex.PREVIOUS_TARGET):
        if record.addresses.get(index, 0) >> ADDRESS_BITS & _RESERVED_TOP:
            yield f"bits [59:56] of the Address packet with INDEX {index:d} are not zero"
    for name, place in _places(record).items():
        if place.nse and not config.rme:
            yield f"NSE of {name} without FEAT_RME"
    pa = record.pa
    if pa is not None:
        if record.addresses[AddressIndex.PA] >> ADDRESS_BITS >> 5 & 1:
            yield "bit 61 of the Address packet with INDEX 3 is not zero"
        if (pa.ch or pa.pat) and not config.mte:
            yield "CH or PAT without FEAT_MTE2"
        if pa.pat and not pa.ch:
            yield "PAT of an access that was not checked"


def _operation(config: SPUConfig, operation: OperationType) -> Iterator[str]:
    """What the version and the features do not define (D18.2.7)."""
    kind, form, attributes = operation.kind, operation.form, operation.attributes
    if kind == "reserved" or form not in forms(config, kind):
        yield f"an operation of kind {kind!r} and form {form!r} in {config.name}: {attributes}"
        return
    if kind == "branch":
        if (attributes["procedure"] == "unknown") == config.crr:
            yield f"procedure {attributes['procedure']!r} {'with' if config.crr else 'without'} FEAT_SPE_CRR"
        if attributes["gcs"] and not config.gcs:
            yield "GCS without FEAT_GCS"
    if form == "other" and (attributes["fp"] or attributes["simd"]) and not config.fpf:
        yield "FP or ASE without FEAT_SPE_FPF"
    if attributes.get("bits") == "more" and not config.spe_sme:
        yield "more than 2048 bits without FEAT_SPE_SME"
    if kind == "load" and attributes.get("predicated") and config.version < PMSVer.SPE_V1P2:
        yield "PRED of a load before FEAT_SPEv1p2"


def _never(config: SPUConfig, operation: OperationType) -> int:
    """Events that are not of such an operation (D18.2.6)."""
    kind, form, attributes = operation.kind, operation.form, operation.attributes
    never = (1 << 64) - 1 - mask(config.events)
    if not _accesses(operation):
        never |= mask(events_of(Operations.ACCESSES))
    # A copy, and a switch of the Guarded control stack, loads too where its store was sampled.
    if not _accesses(operation) or (kind == "store" and form not in ("memory_copy", "gcs")):
        never |= mask(events_of(Operations.LOADS))
    never |= mask(events_of(Operations.EXCEPTIONS if kind == "branch" else Operations.BRANCHES))
    if not attributes.get("conditional", True):
        never |= mask(events_of(Operations.CONDITIONAL))
    # Without FEAT_SPE_SME the packet of an SME operation does not tell that it is one.
    hidden = ("other", "unspecified") if config.sme and not config.spe_sme else ()
    plain = {"other", "general", "simd_fp", "unspecified", "extended"}.difference(hidden)
    if kind == "branch" or form in plain:
        never |= mask(events_of(Operations.VECTORS))
    return never
