"""Checks of decoded records against the invariants that hold for every record that an SPU writes.

There are seven invariants, which records of real silicon satisfy too:

1. A record is complete: it ends with a Timestamp or End packet and has no unknown packet. Its size, padding included,
   follows from its packets, and the next record begins where it ends.
2. TOTAL is not less than ISSUE and TRANSLATION. TRANSLATION is present if and only if VA is. Only branches have TARGET.
   Only loads, stores, and branches that access the Guarded control stack have VA, PA, TRANSLATION and DATA_SOURCE.
3. If the operation retired, the record has one PC, OPERATION and TOTAL packet and, if the layout has a field for it,
   one ISSUE packet. Otherwise it has only EVENTS, with every event zero. If event 25 is SMCU and the configuration has
   ALTERNATE_ISSUE, the packet is present if and only if event 25 is set.
4. The target of a branch that was not taken is PC + 4.
5. Counter values fit the counter width. The header is extended if and only if INDEX is 8 or more; only IMPLEMENTATION
   DEFINED packets have such an INDEX, from 16 to 31.
6. Timestamps do not decrease in a configuration with one slot. With more slots records are written in the order in
   which the operations finish.
7. Only conditional operations have NOT-TAKEN, only branches have MISPREDICTED, and every other event occurs only with
   operations that can have it.

`violations` checks what the record path guarantees for any input. `core_violations` and `Monitor` check the rest:

* The latencies of 2 depend on the counters in the slots of the SPU.
* 4 and the Security states depend on what the core reports. The core must also report that an unconditional branch is
  taken, and that an empty predicate is a partial predicate.
* 6 requires that the system counter does not decrease.

Ref: DDI0487 M.a, D17.6 (collected data), D18.2 (packets).
"""

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


_DECISIVE_EVENTS = mask((Event.GENERATED_EXCEPTION, Event.RETIRED, Event.NOT_TAKEN, Event.SMCU))
"""Events that determine which packets a record can hold."""

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
"""Mask of the reserved bits in the top byte of an instruction address, which are zero."""


class Monitor:
    """Checker of the records of a Profiling Buffer, in the order in which they are written.

    It stores the last timestamp. It also caches the rules for each kind of record, because a buffer holds few kinds of
    records and many records of each kind.

    Parameters
    ----------
    config : SPUConfig
        Configuration of the SPU that writes the records.
    core : bool
        Whether to check `core_violations` and the order of timestamps too.
    """

    def __init__(self, config: SPUConfig, *, core: bool = True):
        self._config = config
        self._core = core
        self._timestamp = 0
        self._rules: dict[tuple[Any, ...], _Rules] = {}
        self._lengths: dict[frozenset[Packet], int] = {}

    def check(self, data: bytes, decoded: Iterable[Record] | None = None) -> list[str]:
        """Return the violations in the records of `data`, one sentence each.

        `data` holds complete records and continues the data of the previous call. `decoded` are the same records, if
        the caller has already decoded them.
        """
        found = list(_header_violations(data))
        end = 0
        for record in decode_records(data) if decoded is None else decoded:
            wrong = violations(self._config, record, self._rules)
            if self._core:
                wrong += [*core_violations(self._config, record), *self._timestamp_violations(record)]
            start, end = end, self._end(record)
            length = self._length(frozenset(_present(self._config, record)), record)
            if end - start != length:
                wrong.append(f"{end - start} bytes including padding, not {length}")
            found += [f"record at {record.offset:#x}: {violation}" for violation in wrong]
        if end != len(data):
            found.append(f"the last record ends at {end:#x}, not at {len(data):#x}")
        return found

    def _end(self, record: Record) -> int:
        """Return the offset of the end of a record, where the next record begins."""
        end = record.offset + record.size
        return end + -end % self._config.layout.align if self._config.layout.padding_last else end

    def _length(self, present: frozenset[Packet], record: Record) -> int:
        """Return the size of a record that has the packets `present`, padding included."""
        layout, sizes = self._config.layout, self._config.packet_bytes
        if present not in self._lengths:
            fields = (
                size
                for field, size, offsets in self._config.record_fields
                if not field.elastic or present & offsets.keys()
            )
            self._lengths[present] = sum(fields)
        length = self._lengths[present] + sizes[Packet.END if record.timestamp is None else Packet.TIMESTAMP]
        return length + -length % layout.align

    def _timestamp_violations(self, record: Record) -> Iterator[str]:
        if record.timestamp is None or self._config.slots > 1:
            return
        if record.timestamp < self._timestamp:
            yield f"timestamp {record.timestamp} after {self._timestamp}"
        self._timestamp = record.timestamp


def _header_violations(data: bytes) -> Iterator[str]:
    for offset, _, kind, index, _ in packet_fields(data):
        if kind in (PacketKind.ADDRESS, PacketKind.COUNTER) and (0x20 <= data[offset] <= 0x3F) != (index >= 8):
            header = "a short" if index >= 8 else "an extended"
            yield f"packet at {offset:#x}: {header} header for INDEX {index}"


class _Rules(NamedTuple):
    """Rules for the records of one kind of operation.

    Members
    -------
    required, allowed : frozenset of Packet
        Packets that the record must hold and can hold.
    impossible_events : int
        Mask of the events that the operation cannot have.
    operation_violations : tuple of str
        Violations in the Operation Type packet.
    """

    required: frozenset[Packet]
    allowed: frozenset[Packet]
    impossible_events: int
    operation_violations: tuple[str, ...]


def violations(config: SPUConfig, record: Record, cache: dict[tuple[Any, ...], _Rules] | None = None) -> list[str]:
    """Return the violations in a record of what the record path guarantees for any input, one sentence each.

    The record must be decoded from data that begins at a multiple of the alignment. `cache` holds the rules of `config`
    for the kinds of records checked so far.
    """
    cache = {} if cache is None else cache
    key = (record.operation_packet, (record.events or 0) & _DECISIVE_EVENTS, AddressIndex.VA in record.addresses)
    rules = cache.get(key) or cache.setdefault(key, _rules(config, record))
    found = [*_structure_violations(config, record)]
    if record.events and not _has_event(record, Event.RETIRED):
        found.append(f"events {record.events:#x} without event 1 (retired)")
    present = {*_present(config, record)}
    if not rules.required <= present <= rules.allowed:
        found += [f"{packet.value} is missing" for packet in Packet if packet in rules.required - present]
        found += [f"{packet.value} must not be present" for packet in Packet if packet in present - rules.allowed]
    found += _index_violations(config, record)
    found += _field_violations(config, record)
    found += rules.operation_violations
    wrong = (record.events or 0) & rules.impossible_events
    if wrong and record.operation is not None:
        bits = [bit for bit in range(64) if wrong >> bit & 1]
        kind, form = record.operation.kind, record.operation.form
        found.append(
            f"events {bits} are impossible for an operation of kind {kind!r} and form {form!r}: "
            f"{record.operation.attributes}"
        )
    return found


def _rules(config: SPUConfig, record: Record) -> _Rules:
    required, allowed = _required_and_allowed(config, record)
    operation = record.operation
    if operation is None:
        return _Rules(frozenset(required), frozenset(allowed), 0, ())
    wrong = tuple(_operation_violations(config, operation))
    return _Rules(frozenset(required), frozenset(allowed), _impossible_events(config, operation), wrong)


def core_violations(config: SPUConfig, record: Record) -> list[str]:
    """Return the violations in a record that the core or the latency counters cause, one sentence each."""
    found: list[str] = []
    for name in ("issue", "translation"):
        latency = getattr(record, name)
        if record.total is not None and latency is not None and latency > record.total:
            found.append(f"{name} latency {latency} exceeds the total latency {record.total}")
    pc, target, operation = record.pc, record.target, record.operation
    if pc is not None and operation is not None and operation.kind == "branch":
        following = pc._replace(address=(pc.address + 4) & (1 << ADDRESS_BITS) - 1)
        if _has_event(record, Event.NOT_TAKEN) and target not in (None, following):
            found.append(f"a branch not taken at {pc} has the target {target}")
        if not _has_event(record, Event.NOT_TAKEN) and target is None:
            found.append("a taken branch has no target")
    if _has_event(record, Event.EMPTY_PREDICATE) and not _has_event(record, Event.PARTIAL_PREDICATE):
        found.append("event 18 (empty predicate) without event 17 (partial predicate)")
    found += [
        f"{name} is in Root state: NSE without NS"
        for name, location in _locations(record).items()
        if location.nse and not location.ns
    ]
    return found


def _has_event(record: Record, event: Event) -> bool:
    return bool((record.events or 0) >> event & 1)


def _structure_violations(config: SPUConfig, record: Record) -> Iterator[str]:
    layout = config.layout
    if not record.complete:
        yield "it does not end with a Timestamp or End packet"
    yield from (problem.message for problem in record.problems)
    yield from (f"unknown packet with header {packet.value:#04x}" for packet in record.unknown)
    if record.size > config.max_record_bytes:
        yield f"{record.size} bytes, more than {config.max_record_bytes}"
    if not layout.padding_last:
        if (record.offset + record.size) % layout.align:
            yield f"it ends at {record.offset + record.size:#x}, which is not a multiple of {layout.align}"
    elif (start := record.offset - _leading_zeros(config, {*_present(config, record)})) % layout.align:
        yield f"it starts at {start:#x}, which is not a multiple of {layout.align}"


def _leading_zeros(config: SPUConfig, present: Set[Packet]) -> int:
    """Return the number of zero bytes before the first packet: fields, and parts of a field, of absent packets."""
    zeros = 0
    for field, size, offsets in config.record_fields:
        if present_offsets := [offset for packet, offset in offsets.items() if packet in present]:
            return zeros + min(present_offsets)
        if not field.elastic:
            zeros += size
    return zeros


def _present(config: SPUConfig, record: Record) -> Iterator[Packet]:
    """Yield the packets of the record, except Timestamp and End."""
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


def _index_violations(config: SPUConfig, record: Record) -> Iterator[str]:
    for name, payloads, known in (
        ("Address", record.addresses, {*_ADDRESSES, config.imp_address}),
        ("Counter", record.counters, {*_COUNTERS, config.imp_counter}),
        ("Context", record.contexts, {*_CONTEXTS}),
    ):
        yield from (f"{name} packet with INDEX {index}" for index in payloads if index not in known)


def _required_and_allowed(config: SPUConfig, record: Record) -> tuple[set[Packet], set[Packet]]:
    """Return the packets that the record must hold, and those that it can hold, for its operation and events."""
    required = {Packet.EVENTS}
    if not _has_event(record, Event.RETIRED):  # D17.6.7
        return required, required
    required |= {Packet.PC, Packet.OPERATION, Packet.TOTAL, Packet.ISSUE} & {*config.layout.packets}
    optional = {Packet.CONTEXT_EL1, Packet.CONTEXT_EL2}
    if config.spe_sme and Event.SMCU in config.events:  # D17.6.1
        required |= {Packet.ALTERNATE_ISSUE} if config.altclk and _has_event(record, Event.SMCU) else set()
    else:
        optional.add(Packet.ALTERNATE_ISSUE)
    if record.operation is not None and not _has_event(record, Event.GENERATED_EXCEPTION):  # D17.6.10
        _add_packets_of_completed(config, record, record.operation, required, optional)
    return required, required | optional & {*config.layout.packets}


def _add_packets_of_completed(
    config: SPUConfig, record: Record, operation: OperationType, required: set[Packet], optional: set[Packet]
) -> None:
    """Add the packets of an operation that generated no exception to `required` and `optional`."""
    optional |= {Packet.IMP_COUNTER, Packet.IMP_ADDRESS}
    if config.pbt_of_all:
        optional.add(Packet.PREVIOUS_TARGET)
    if operation.kind == "branch":  # D17.6.3
        optional.add(Packet.PREVIOUS_TARGET)
        if config.not_taken_target:
            required.add(Packet.TARGET)
        elif not _has_event(record, Event.NOT_TAKEN):
            optional.add(Packet.TARGET)
    if _accesses_memory(operation):  # D17.6.4
        optional.add(Packet.VA)
        if record.va is not None:
            required.add(Packet.TRANSLATION)
            optional.add(Packet.PA)
        if operation.kind != "store":  # D18.2.4
            optional.add(Packet.DATA_SOURCE)


def _accesses_memory(operation: OperationType) -> bool:
    return operation.kind in ("load", "store") or bool(operation.attributes.get("gcs"))


def _locations(record: Record) -> dict[str, InstructionAddress | PhysicalAddress]:
    named = {name: getattr(record, name) for name in ("pc", "target", "previous_target", "pa")}
    return {name: location for name, location in named.items() if location is not None}


def _field_violations(config: SPUConfig, record: Record) -> Iterator[str]:
    """Yield violations in the values of fields: reserved bits, unimplemented fields and the width of counters."""
    for index, count in record.counters.items():
        if count >> config.counter_bits:
            yield f"Counter packet with INDEX {index} holds {count}, more than {config.counter_bits} bits"
    for index in (AddressIndex.PC, AddressIndex.TARGET, AddressIndex.PREVIOUS_TARGET):
        if record.addresses.get(index, 0) >> ADDRESS_BITS & _RESERVED_TOP:
            yield f"bits [59:56] of the Address packet with INDEX {index:d} are not zero"
    for name, location in _locations(record).items():
        if location.nse and not config.rme:
            yield f"NSE of {name} without FEAT_RME"
    pa = record.pa
    if pa is not None:
        if record.addresses[AddressIndex.PA] >> ADDRESS_BITS >> 5 & 1:
            yield "bit 61 of the Address packet with INDEX 3 is not zero"
        if (pa.ch or pa.pat) and not config.mte:
            yield "CH or PAT without FEAT_MTE2"
        if pa.pat and not pa.ch:
            yield "PAT of an access that was not checked"


def _operation_violations(config: SPUConfig, operation: OperationType) -> Iterator[str]:
    """Yield what the version and the features of `config` do not define in an Operation Type packet (D18.2.7)."""
    kind, form, attributes = operation.kind, operation.form, operation.attributes
    if kind == "reserved" or form not in forms(config, kind):
        yield f"{config.name} has no operation of kind {kind!r} and form {form!r}: {attributes}"
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


def _impossible_events(config: SPUConfig, operation: OperationType) -> int:
    """Return the mask of the events that an operation cannot have (D18.2.6)."""
    kind, form, attributes = operation.kind, operation.form, operation.attributes
    impossible = (1 << 64) - 1 - mask(config.events)
    if not _accesses_memory(operation):
        impossible |= mask(events_of(Operations.ACCESSES))
    # A Memory Copy or GCSSS2 whose store was sampled can have events of its load.
    if not _accesses_memory(operation) or (kind == "store" and form not in ("memory_copy", "gcs")):
        impossible |= mask(events_of(Operations.LOADS))
    impossible |= mask(events_of(Operations.EXCEPTIONS if kind == "branch" else Operations.BRANCHES))
    if not attributes.get("conditional", True):
        impossible |= mask(events_of(Operations.CONDITIONAL))
    # Without FEAT_SPE_SME the packet of an SME operation does not identify it as one.
    sme_forms = ("other", "unspecified") if config.sme and not config.spe_sme else ()
    scalar_forms = {"other", "general", "simd_fp", "unspecified", "extended"}.difference(sme_forms)
    if kind == "branch" or form in scalar_forms:
        impossible |= mask(events_of(Operations.VECTORS))
    return impossible
