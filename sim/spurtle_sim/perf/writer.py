"""Writer of perf.data files.

The files have the format that `perf record -d -e arm_spe_0//` writes. With timestamps a file is a recording of CPUs, in
which each sample has its time. Without timestamps it is a recording of a thread, which perf calls timeless. It decodes
the same, but perf 6.1 then outputs an empty sample before the first one.

Ref: Linux tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h;
drivers/perf/arm_spe_pmu.c.
"""

import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .events import Aux, Comm, Exit, Fork, Mmap, TimedEvent
from .format import ARM_SPE, HEADER_BYTES, MAGIC, Attribute, Feature, Misc, RecordType, SampleField, Settings
from .spool import Data

__all__ = ["NO_SILICON", "Recording", "chunks", "content"]

NO_SILICON = 0x000F_0000
"""MIDR_EL1 of a core that is not silicon. Implementer 0 is reserved for software use."""

_ATTR_BYTES = 128
"""Size of an attribute in the attribute section, up to sig_data. perf 6.1 rejects a file with larger attributes."""

_EVENT_DESC_ATTR_BYTES = 144
"""Size of an attribute in the event descriptions, up to config4. Each version reads the members that it knows."""

_PMU_TYPE = 1000  # types of PMUs are small numbers, so the host that runs perf has no PMU of this type
_SOFTWARE, _DUMMY = 1, 9  # PERF_TYPE_SOFTWARE and PERF_COUNT_SW_DUMMY: type and config of the dummy event
_SPE_ID, _DUMMY_ID = 1, 2
_NO_SETTINGS = Settings()
_ALIGNMENT = 8  # of AUX data, in bytes
_MAP_PRIVATE = 2
_COMM_BYTES = 15  # the kernel truncates names of threads
_MEMORY_BASE = 2 << 30  # physical address, see docs/explanation/timing-model.md
_MEMORY_BYTES = 4 << 30
_MEMORY_BLOCK = 128 << 20
_ALL = (1 << 64) - 1


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Content of a perf.data file.

    Parameters
    ----------
    argv : sequence of str
        The profiled command.
    events : sequence of TimedEvent
        Events in the order of their times.
    midr : int
        MIDR_EL1, which selects how perf decodes Data Source packets.
    settings : Settings
    timed : bool
        Whether the records have timestamps.
    """

    argv: Sequence[str]
    events: Sequence[TimedEvent]
    midr: int = NO_SILICON
    settings: Settings = _NO_SETTINGS
    timed: bool = True

    @property
    def cpus(self) -> int:
        """Number of CPUs."""
        return 1 + max((event.cpu for event in self.events if isinstance(event, Aux)), default=0)


def content(recording: Recording) -> bytes:
    """Return the bytes of the perf.data file of a recording."""
    return b"".join(chunks(recording))


def chunks(recording: Recording) -> Iterator[bytes]:
    """Yield the bytes of the perf.data file of a recording in parts.

    The AUX data of at most one event is in memory.
    """
    identifiers = struct.pack("<2Q", _SPE_ID, _DUMMY_ID)
    table_offset = HEADER_BYTES + len(identifiers)
    table = b"".join(
        attribute + struct.pack("<2Q", HEADER_BYTES + 8 * index, 8)
        for index, attribute in enumerate(_attributes(recording, _ATTR_BYTES))
    )
    data_offset = table_offset + len(table)
    records = [*_Records(recording).all()]
    size = sum(record.size for record in records)
    features = _features(recording, _traces(records, data_offset))
    bitmap = sum(1 << feature for feature in features)
    header = struct.pack(
        "<8s8Q4Q",
        MAGIC, HEADER_BYTES, _ATTR_BYTES + 16, table_offset, len(table), data_offset, size, 0, 0,
        bitmap, 0, 0, 0,
    )  # fmt: skip
    index, sections = b"", b""
    offset = data_offset + size + 16 * len(features)
    for _, section in sorted(features.items()):
        index += struct.pack("<2Q", offset + len(sections), len(section))
        sections += section
    yield from (header, identifiers, table)
    for record in records:
        yield record.head
        yield _padded(bytes(record.data), _ALIGNMENT)
    yield from (index, sections)


def _attributes(recording: Recording, size: int) -> tuple[bytes, bytes]:
    """Return perf_event_attr of the SPE event, and of the dummy event for mappings and names."""
    common = SampleField.IP | SampleField.TID | SampleField.IDENTIFIER
    if recording.timed:
        common |= SampleField.TIME | SampleField.CPU
    values = SampleField.DATA_SRC | SampleField.PHYS_ADDR | SampleField.ADDR | SampleField.PERIOD | SampleField.WEIGHT
    everywhere = Attribute.EXCLUDE_KERNEL | Attribute.EXCLUDE_HV | Attribute.SAMPLE_ID_ALL
    side_band = Attribute.MMAP | Attribute.MMAP_DATA | Attribute.MMAP2 | Attribute.BUILD_ID
    side_band |= Attribute.COMM | Attribute.COMM_EXEC | Attribute.TASK

    def attribute(kind: int, settings: Settings, fields: SampleField, flags: Attribute) -> bytes:
        # read_format, wakeup_events and all other members are zero.
        head = (kind, size, settings.config, settings.period, fields, 0, flags | everywhere, 0, 0)
        configs = struct.pack("<2Q", settings.config1, settings.config2)
        return (
            struct.pack("<2I5Q2I", *head) + configs + bytes(56) + struct.pack("<2Q", settings.config3, settings.config4)
        )[:size]

    return (
        attribute(_PMU_TYPE, recording.settings, common | values, Attribute(0)),
        attribute(_SOFTWARE, Settings(config=_DUMMY), common, side_band),
    )


class _Bytes(NamedTuple):
    """Record of the data section, and the AUX data after it, which is padded with zeros to a multiple of 8 bytes."""

    kind: RecordType
    head: bytes
    data: Data = b""

    @property
    def size(self) -> int:
        return len(self.head) + _aligned(len(self.data))


def _traces(records: Sequence[_Bytes], offset: int) -> list[tuple[int, int]]:
    """Return offset and size of each AUXTRACE record, without its data. The first record begins at `offset`."""
    traces: list[tuple[int, int]] = []
    for record in records:
        if record.kind is RecordType.AUXTRACE:
            traces.append((offset, len(record.head)))
        offset += record.size
    return traces


class _Records:
    """Records of the data section."""

    def __init__(self, recording: Recording):
        self._recording = recording
        self._offsets: dict[int, int] = {}  # bytes of AUX data so far, by queue

    def all(self) -> Iterator[_Bytes]:
        timed = self._recording.timed
        if timed:
            # perf converts a timestamp to nanoseconds: (count * multiplier) >> shift. One cycle is one nanosecond.
            yield self._plain(RecordType.TIME_CONV, struct.pack("<5Q2B6x", 0, 1, 0, 0, _ALL, 1, 0))
        yield self._plain(RecordType.AUXTRACE_INFO, struct.pack("<2I2Q", ARM_SPE, 0, _PMU_TYPE, timed))
        for event in self._recording.events:
            match event:
                case Comm():
                    yield self._comm(event)
                    if event.executed:
                        yield self._timed(RecordType.ITRACE_START, event, struct.pack("<2I", event.pid, event.tid))
                case Mmap():
                    yield self._mmap(event)
                case Fork():
                    yield self._task(RecordType.FORK, event)
                case Exit():
                    yield self._task(RecordType.EXIT, event)
                case Aux():
                    yield from self._aux(event)
                case _:
                    raise TypeError(f"{event!r} has no record")

    @staticmethod
    def _plain(kind: RecordType, body: bytes, misc: int = 0) -> _Bytes:
        return _Bytes(kind, struct.pack("<I2H", kind, misc, 8 + len(body)) + body)

    def _timed(self, kind: RecordType, event: TimedEvent, body: bytes, misc: int = 0) -> _Bytes:
        """Return a record that ends with thread, time, CPU and event (`sample_id_all`)."""
        sample = struct.pack("<2I", event.pid, event.tid)
        if self._recording.timed:
            cpu = event.cpu if isinstance(event, Aux) else 0
            sample += struct.pack("<Q2I", event.time, cpu, 0)
        identifier = _SPE_ID if isinstance(event, Aux) else _DUMMY_ID
        return self._plain(kind, body + sample + struct.pack("<Q", identifier), misc)

    def _comm(self, event: Comm) -> _Bytes:
        name = _padded(os.fsencode(event.name)[:_COMM_BYTES] + b"\0", 8)
        misc = Misc.COMM_EXEC if event.executed else Misc(0)
        return self._timed(RecordType.COMM, event, struct.pack("<2I", event.pid, event.tid) + name, misc)

    def _mmap(self, event: Mmap) -> _Bytes:
        mapping = event.mapping
        misc = Misc.USER
        if not mapping.executable:
            misc |= Misc.MMAP_DATA
        file = bytes(24)  # device and inode numbers, or with MMAP_BUILD_ID the build ID
        if event.build_id:
            misc |= Misc.MMAP_BUILD_ID
            file = struct.pack("<B3x20s", len(event.build_id), event.build_id)
        body = struct.pack("<2I3Q", event.pid, event.tid, mapping.start, mapping.length, mapping.offset)
        body += file + struct.pack("<2I", mapping.protection, _MAP_PRIVATE)
        return self._timed(RecordType.MMAP2, event, body + _padded(os.fsencode(mapping.path) + b"\0", 8), misc)

    def _task(self, kind: RecordType, event: Fork | Exit) -> _Bytes:
        body = struct.pack("<4IQ", event.pid, event.parent_pid, event.tid, event.parent_tid, event.time)
        return self._timed(kind, event, body)

    def _aux(self, event: Aux) -> Iterator[_Bytes]:
        """Yield the AUX record, and the AUXTRACE record with the data.

        Linux reports neither of them if there is no data and no loss.
        """
        cpu, thread = (event.cpu, -1) if self._recording.timed else (-1, event.tid)
        queue = max(cpu, 0)
        offset = self._offsets.get(queue, 0)
        self._offsets[queue] = offset + len(event.data)
        if event.data or event.flags:
            yield self._timed(RecordType.AUX, event, struct.pack("<3Q", offset, len(event.data), event.flags))
        if event.data:
            body = struct.pack("<3QIiiI", _aligned(len(event.data)), offset, 0, queue, thread, cpu, 0)
            yield self._plain(RecordType.AUXTRACE, body)._replace(data=event.data)


def _features(recording: Recording, traces: Sequence[tuple[int, int]]) -> dict[Feature, bytes]:
    """Return the sections that describe the command and the machine.

    The machine is the timing model, so its description is the same on every host.
    """
    cpus = recording.cpus
    names = ("arm_spe_0//", "dummy:u")
    attributes = _attributes(recording, _EVENT_DESC_ATTR_BYTES)
    events = struct.pack("<2I", len(attributes), _EVENT_DESC_ATTR_BYTES)
    for attribute, name, identifier in zip(attributes, names, (_SPE_ID, _DUMMY_ID), strict=True):
        events += attribute + struct.pack("<I", 1) + _string(name) + struct.pack("<Q", identifier)
    times = [event.time for event in recording.events]
    return {
        Feature.BUILD_ID: _build_ids(recording.events),
        Feature.HOSTNAME: _string("spurtle"),
        Feature.OSRELEASE: _string("6.1.0"),
        Feature.VERSION: _string("6.1.0"),
        Feature.ARCH: _string("aarch64"),
        Feature.NRCPUS: struct.pack("<2I", cpus, cpus),
        Feature.CPUID: _string(f"0x{recording.midr:016x}"),
        Feature.CMDLINE: struct.pack("<I", len(recording.argv)) + b"".join(map(_string, recording.argv)),
        Feature.EVENT_DESC: events,
        Feature.NUMA_TOPOLOGY: struct.pack("<2I2Q", 1, 0, _MEMORY_BYTES >> 10, _MEMORY_BYTES >> 10)
        + _string(f"0-{cpus - 1}"),
        Feature.AUXTRACE: struct.pack("<Q", len(traces)) + b"".join(struct.pack("<2Q", *trace) for trace in traces),
        Feature.SAMPLE_TIME: struct.pack("<2Q", min(times, default=0), max(times, default=0)),
        Feature.MEM_TOPOLOGY: _memory_topology(),
    }


def _memory_topology() -> bytes:
    """Return the memory blocks of the only node, as a bitmap."""
    first, last = _MEMORY_BASE // _MEMORY_BLOCK, (_MEMORY_BASE + _MEMORY_BYTES) // _MEMORY_BLOCK
    blocks = sum(1 << block for block in range(first, last))
    version, nodes, node = 1, 1, 0
    return struct.pack("<7Q", version, _MEMORY_BLOCK, nodes, node, last, last, blocks)


def _build_ids(events: Sequence[TimedEvent]) -> bytes:
    """Return one record for each file with a build ID."""
    files = {event.mapping.path: event.build_id for event in events if isinstance(event, Mmap) and event.build_id}
    section = b""
    for path, build_id in files.items():
        body = struct.pack("<i20sB3x", -1, build_id, len(build_id)) + _padded(os.fsencode(path) + b"\0", 64)
        section += struct.pack("<I2H", 0, Misc.USER | Misc.BUILD_ID_SIZE, 8 + len(body)) + body
    return section


def _aligned(size: int, alignment: int = _ALIGNMENT) -> int:
    return -(-size // alignment) * alignment


def _padded(content: bytes, alignment: int) -> bytes:
    return content.ljust(_aligned(len(content), alignment), b"\0")


def _string(text: str) -> bytes:
    content = _padded(os.fsencode(text) + b"\0", 64)
    return struct.pack("<I", len(content)) + content
