"""Reader of what a perf.data file contains besides AUX data: processes, mappings, lost records, the machine, the event.

Ref: Linux tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h.
"""

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .format import HEADER_BYTES, Feature, Misc, RecordType, Settings, SymbolType
from .process import Mapping

__all__ = ["KERNEL_PID", "KernelFunction", "MappedFile", "Sideband", "TimeConversion"]

KERNEL_PID = (1 << 32) - 1
"""Process of the mappings of the kernel and its modules: -1."""

_BITMAP = 72  # offset of the feature bitmap in the header
_FEATURES = 256
_ATTRIBUTE = struct.Struct("<2I5Q2I2Q")
_OF_V2, _PMU_TYPE_V1, _PMU_TYPE_V2 = 2, 8, 24  # version of AUXTRACE_INFO; offsets of the type of the PMU
_CONFIG3 = 128  # offset of config3 in an attribute
_FREQUENCY = 1 << 10  # flag of an attribute: the period is a frequency


class MappedFile(NamedTuple):
    """Mapping of a process.

    Members
    -------
    pid : int
    mapping : Mapping
    build_id : bytes
        Empty if the file does not contain it.
    """

    pid: int
    mapping: Mapping
    build_id: bytes


class KernelFunction(NamedTuple):
    """Function that the kernel generated while it ran: a BPF program, or code that calls probes.

    Members
    -------
    address, size : int
    bpf : bool
    name : str
    """

    address: int
    size: int
    bpf: bool
    name: str


class TimeConversion(NamedTuple):
    """Conversion of timestamps to nanoseconds on perf's clock.

    Members
    -------
    shift, multiplier, zero : int
        The time is `zero + (timestamp * multiplier >> shift)`.
    cycles, mask : int
        A timestamp has only the bits of `mask`, and is after `cycles`.
    short : bool
        Whether `cycles` and `mask` are valid.
    """

    shift: int
    multiplier: int
    zero: int
    cycles: int
    mask: int
    short: bool


@dataclass
class Sideband:
    """Processes, mappings, losses, machine and event of a recording.

    Parameters
    ----------
    mappings : list of MappedFile
        In the order of the file.
    kernel_functions : list of KernelFunction
        In the order of the file. A record that a function was removed names one that was there before.
    threads : dict of int to int
        Numbers of processes by the numbers of their threads.
    parents : dict of int to int
        Numbers of processes by the numbers of the processes that they created.
    names : dict of int to str
        Last names of threads.
    lost : int
        Records that the kernel could not write: mappings, names and samples of other events.
    build_ids : dict of str to bytes
        Build IDs of files by their paths. Mappings can have them as well.
    architecture, cpuid, release : str
        Machine and version of its kernel, as perf writes them. Empty if unknown.
    command : list of str
        Recorded command. Empty if unknown.
    time : TimeConversion or None
        None if the file does not contain it.
    """

    mappings: list[MappedFile] = field(default_factory=list[MappedFile])
    kernel_functions: list[KernelFunction] = field(default_factory=list[KernelFunction])
    threads: dict[int, int] = field(default_factory=dict[int, int])
    parents: dict[int, int] = field(default_factory=dict[int, int])
    names: dict[int, str] = field(default_factory=dict[int, str])
    lost: int = 0
    build_ids: dict[str, bytes] = field(default_factory=dict[str, bytes])
    architecture: str = ""
    cpuid: str = ""
    release: str = ""
    command: list[str] = field(default_factory=list[str])
    time: TimeConversion | None = None
    _pmu: int | None = None
    _attributes: list[bytes] = field(default_factory=list[bytes])

    @property
    def settings(self) -> Settings | None:
        """Settings of the SPE event, or None if the file does not contain them."""
        # The descriptions of the events, which follow, can be longer than the attributes of the header.
        for attribute in reversed(self._attributes):
            kind, _, config, period, _, _, flags, _, _, config1, config2 = _ATTRIBUTE.unpack_from(attribute)
            if kind == self._pmu:
                tail = attribute[_CONFIG3 : _CONFIG3 + 16].ljust(16, b"\0")
                config3, config4 = struct.unpack("<2Q", tail)
                period = 0 if flags & _FREQUENCY else period
                return Settings(
                    period=period, config=config, config1=config1, config2=config2, config3=config3, config4=config4
                )
        return None

    def add_attribute(self, attribute: bytes) -> None:
        """Add an attribute of an event."""
        own = attribute[: int.from_bytes(attribute[4:8], "little") or None]
        if len(own) >= _ATTRIBUTE.size:
            self._attributes.append(own)

    def add_record(self, kind: int, misc: int, body: bytes) -> None:
        """Add a record of the data section, without its header. Other records are ignored."""
        match kind:
            case RecordType.MMAP2 if len(body) >= 72:
                self._add_mapping(misc, body)
            case RecordType.MMAP if len(body) >= 40:
                pid, tid, start, length, offset = struct.unpack_from("<2I3Q", body)
                self.threads[tid] = pid
                protection = 0 if misc & Misc.MMAP_DATA else 4
                self.mappings.append(MappedFile(pid, Mapping(start, length, offset, protection, _text(body[32:])), b""))
            case RecordType.COMM if len(body) >= 8:
                pid, tid = struct.unpack_from("<2I", body)
                self.threads[tid] = pid
                self.names[tid] = _text(body[8:])
            case RecordType.FORK if len(body) >= 16:
                pid, parent, tid, _ = struct.unpack_from("<4I", body)
                self.threads[tid] = pid
                if pid != parent:
                    self.parents[pid] = parent
            case RecordType.LOST if len(body) >= 16:
                self.lost += int.from_bytes(body[8:16], "little")
            case RecordType.LOST_SAMPLES if len(body) >= 8:
                self.lost += int.from_bytes(body[:8], "little")
            case RecordType.KSYMBOL if len(body) >= 16:
                address, length, type_, _ = struct.unpack_from("<QI2H", body)
                found = KernelFunction(address, length, type_ == SymbolType.BPF, _text(body[16:]))
                self.kernel_functions.append(found)
            case RecordType.AUXTRACE_INFO if len(body) >= 16:
                at = _PMU_TYPE_V2 if body[8] == _OF_V2 and len(body) > _PMU_TYPE_V2 + 8 else _PMU_TYPE_V1
                self._pmu = int.from_bytes(body[at : at + 4], "little")
            case RecordType.TIME_CONV if len(body) >= 24:
                shift, multiplier, zero, cycles, mask = struct.unpack("<5Q", body[:40].ljust(40, b"\0"))
                # A shift of 64 bits or more is that of a corrupt file.
                self.time = TimeConversion(shift & 63, multiplier, zero, cycles, mask, bool(body[41:42].strip(b"\0")))
            case RecordType.HEADER_BUILD_ID:
                self._add_build_id(misc, body)
            case RecordType.HEADER_FEATURE if len(body) >= 8:
                self._add_feature(int.from_bytes(body[:8], "little"), body[8:])
            case _:
                pass

    def add_features(self, data: bytes) -> None:
        """Add the sections that follow the data section of a file."""
        if len(data) < HEADER_BYTES:
            return
        start, size = struct.unpack_from("<2Q", data, 40)
        bitmap = int.from_bytes(data[_BITMAP : _BITMAP + _FEATURES // 8], "little")
        present = [bit for bit in range(_FEATURES) if bitmap >> bit & 1]
        for index, feature in enumerate(present):
            entry = data[start + size + 16 * index :][:16]
            if size and len(entry) == 16:
                offset, length = struct.unpack("<2Q", entry)
                self._add_feature(feature, data[offset : offset + length])

    def process_of(self, thread: int) -> int:
        """Return the number of the process of a thread. A thread without a record is the first of its process."""
        return self.threads.get(thread, thread)

    def _add_mapping(self, misc: int, body: bytes) -> None:
        pid, tid, start, length, offset = struct.unpack_from("<2I3Q", body)
        build_id = body[36 : 36 + min(body[32], 20)] if misc & Misc.MMAP_BUILD_ID else b""
        self.threads[tid] = pid
        protection = int.from_bytes(body[56:60], "little")
        self.mappings.append(MappedFile(pid, Mapping(start, length, offset, protection, _text(body[64:])), build_id))

    def _add_feature(self, feature: int, section: bytes) -> None:
        match feature:
            case Feature.ARCH:
                self.architecture = next(_strings(section), "")
            case Feature.CPUID:
                self.cpuid = next(_strings(section), "")
            case Feature.OSRELEASE:
                self.release = next(_strings(section), "")
            case Feature.BUILD_ID:
                self._add_build_ids(section)
            case Feature.CMDLINE:
                self.command = list(_strings(section[4:]))
            case Feature.EVENT_DESC if len(section) >= 8:
                self._add_descriptions(section)
            case _:
                pass

    def _add_build_ids(self, section: bytes) -> None:
        """Add the build IDs of a section, which has records without a type."""
        at = 0
        while at + 8 <= len(section):
            _, misc, size = struct.unpack_from("<I2H", section, at)
            if size < 8:
                return
            self._add_build_id(misc, section[at + 8 : at + size])
            at += size

    def _add_build_id(self, misc: int, body: bytes) -> None:
        # Process, 20 bytes for the build ID, its size, three bytes of padding, path.
        if len(body) > 28:
            size = min(body[24], 20) if misc & Misc.BUILD_ID_SIZE else 20
            self.build_ids[_text(body[28:])] = body[4 : 4 + size]

    def _add_descriptions(self, section: bytes) -> None:
        """Add the attributes of the event descriptions, each of which precedes a name and identifiers."""
        count, size = struct.unpack_from("<2I", section)
        at = 8
        for _ in range(min(count, len(section) // max(size, 1))):
            self.add_attribute(section[at : at + size])
            identifiers, length = struct.unpack("<2I", section[at + size :][:8].ljust(8, b"\0"))
            at += size + 8 + length + 8 * identifiers


def _text(content: bytes) -> str:
    return os.fsdecode(content.partition(b"\0")[0])


def _strings(section: bytes) -> Iterator[str]:
    """Yield the strings of a section, each of which follows its size."""
    at = 0
    while at + 4 <= len(section):
        size = int.from_bytes(section[at : at + 4], "little")
        yield _text(section[at + 4 : at + 4 + size])
        at += 4 + size
