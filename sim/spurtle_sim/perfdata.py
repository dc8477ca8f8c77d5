"""The bytes of a Profiling Buffer as a perf.data file, for `perf report`, `perf script` and `perf annotate`.

The file looks like what `perf record -e arm_spe_0//` leaves of one process on one CPU: its name, its executable
mappings, and the buffer as AUX data. With timestamps it is a recording of the CPU in which each record has its time,
one cycle being one nanosecond. Without, it is one of the thread, which perf calls timeless: it decodes the same, but
perf 6.1 then gives an empty sample before the first one.
"""

# Ref: Linux tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h.

import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag, unique
from pathlib import Path

from .files import check_files, write_files, write_whole
from .loader import Mapping

__all__ = ["NEOVERSE_N1", "Process", "check", "raw", "readers", "save", "write"]

NEOVERSE_N1 = 0x410FD0C1
"""MIDR_EL1 of Arm Neoverse N1 r3p1: with it, perf names the data sources."""


@dataclass(frozen=True, slots=True)
class Process:
    """Whose records the buffer holds.

    Parameters
    ----------
    path : Path
        The executable. Absolute: perf opens it to find symbols.
    argv : sequence of str
    pid : int
        As in the Context packets (CONTEXTIDR_EL1): perf finds the process by it.
    mappings : sequence of Mapping
        Executable parts of the file.
    """

    path: Path
    argv: Sequence[str]
    pid: int
    mappings: Sequence[Mapping]


@unique
class _Record(IntEnum):
    """Types of the records in the data section."""

    COMM = 3
    EXIT = 4
    MMAP2 = 10
    AUX = 11
    ITRACE_START = 12
    AUXTRACE_INFO = 70
    AUXTRACE = 71
    TIME_CONV = 79


class _Sample(IntFlag):
    """Bits of sample_type."""

    IP = 1 << 0
    TID = 1 << 1
    TIME = 1 << 2
    ADDR = 1 << 3
    CPU = 1 << 7
    PERIOD = 1 << 8
    WEIGHT = 1 << 14
    DATA_SRC = 1 << 15
    IDENTIFIER = 1 << 16
    PHYS_ADDR = 1 << 19


class _Flag(IntFlag):
    """Bits of the flag word of perf_event_attr."""

    MMAP = 1 << 8
    COMM = 1 << 9
    TASK = 1 << 13
    SAMPLE_ID_ALL = 1 << 18
    MMAP2 = 1 << 23
    COMM_EXEC = 1 << 24


@unique
class _Feature(IntEnum):
    """Bits of the feature bitmap: what follows the data section."""

    HOSTNAME = 3
    OSRELEASE = 4
    VERSION = 5
    ARCH = 6
    NRCPUS = 7
    CPUID = 9
    CMDLINE = 11
    EVENT_DESC = 12


_HEADER_BYTES = 104
_ATTR_BYTES = 128
_PMU_TYPE = 8  # any dynamic PMU type would do
_SOFTWARE, _DUMMY = 1, 9
_SPE_ID, _DUMMY_ID = 1, 2
_ARM_SPE = 4  # auxtrace type
_EXECUTABLE = 5  # PROT_READ | PROT_EXEC
_MAP_PRIVATE = 2
_USER, _COMM_EXEC = 2, 1 << 13  # misc of a record


def raw(output: str) -> str:
    """The file beside `output` that has the buffer alone."""
    return f"{output}.spe"


def readers(output: str) -> str:
    """What to do with them."""
    return f"next: perf report -i {output}    or: spurtle decode {raw(output)}"


def check(output: str, *inputs: str) -> None:
    """Raise UserError if `save` could not write, or would replace one of `inputs`."""
    check_files([output, raw(output)], inputs)


def save(output: str, buffer: bytes, process: Process) -> None:
    """Write a profile: `output` for perf, and the buffer beside it."""
    write_files({Path(raw(output)): buffer, Path(output): _file(buffer, process, NEOVERSE_N1, timed=True)})


def write(path: str | Path, *, buffer: bytes, process: Process, midr: int = NEOVERSE_N1, timed: bool = True) -> None:
    """Write `path`: a perf.data file with the records in `buffer`.

    Parameters
    ----------
    path : str or Path
        Whole afterwards, or as it was.
    buffer : bytes
        Whole records.
    process : Process
    midr : int
        MIDR_EL1: decides how perf reads Data Source packets.
    timed : bool
        The records have timestamps.

    Raises
    ------
    UserError
        If `path` cannot be written.
    """
    write_whole(path, _file(buffer, process, midr, timed))


def _file(buffer: bytes, process: Process, midr: int, timed: bool) -> bytes:
    """Header, attributes, data, features: the whole file."""
    attributes = _attributes(timed)
    identifiers = struct.pack("<2Q", _SPE_ID, _DUMMY_ID)
    table_offset = _HEADER_BYTES + len(identifiers)
    table = b"".join(
        attribute + struct.pack("<2Q", _HEADER_BYTES + 8 * index, 8) for index, attribute in enumerate(attributes)
    )
    data_offset = table_offset + len(table)
    data = b"".join(_data(buffer, process, timed))
    features = _features(process, midr, attributes)
    bitmap = sum(1 << feature for feature in features)
    header = struct.pack(
        "<8s8Q4Q",
        b"PERFILE2", _HEADER_BYTES, _ATTR_BYTES + 16, table_offset, len(table), data_offset, len(data), 0, 0,
        bitmap, 0, 0, 0,
    )  # fmt: skip
    index, sections = b"", b""
    offset = data_offset + len(data) + 16 * len(features)
    for _, section in sorted(features.items()):
        index += struct.pack("<2Q", offset + len(sections), len(section))
        sections += section
    return b"".join((header, identifiers, table, data, index, sections))


def _attributes(timed: bool) -> tuple[bytes, bytes]:
    """perf_event_attr of the SPE event, and of the dummy event that carries mappings and names."""
    common = _Sample.IP | _Sample.TID | _Sample.IDENTIFIER
    if timed:
        common |= _Sample.TIME | _Sample.CPU
    values = _Sample.DATA_SRC | _Sample.PHYS_ADDR | _Sample.ADDR | _Sample.PERIOD | _Sample.WEIGHT
    task = _Flag.MMAP | _Flag.COMM | _Flag.TASK | _Flag.MMAP2 | _Flag.COMM_EXEC

    def attribute(kind: int, config: int, samples: _Sample, flags: _Flag) -> bytes:
        fields = (kind, _ATTR_BYTES, config, 1, samples, 0, flags | _Flag.SAMPLE_ID_ALL)
        return struct.pack("<2I5Q", *fields).ljust(_ATTR_BYTES, b"\0")

    return attribute(_PMU_TYPE, 0, common | values, _Flag(0)), attribute(_SOFTWARE, _DUMMY, common, task)


def _data(buffer: bytes, process: Process, timed: bool) -> Iterable[bytes]:
    """The records of the data section."""
    pid = process.pid
    sample_id = struct.pack("<2I", pid, pid)
    if timed:
        sample_id += struct.pack("<Q2I", 0, 0, 0)
    sample_id += struct.pack("<Q", _DUMMY_ID)

    def record(kind: _Record, body: bytes, misc: int = 0) -> bytes:
        return struct.pack("<I2H", kind, misc, 8 + len(body)) + body

    if timed:
        # perf turns a timestamp into nanoseconds: (count * multiplier) >> shift. One cycle is one nanosecond here.
        yield record(_Record.TIME_CONV, struct.pack("<5Q2B6x", 0, 1, 0, 0, (1 << 64) - 1, 1, 0))
    yield record(_Record.AUXTRACE_INFO, struct.pack("<2I2Q", _ARM_SPE, 0, _PMU_TYPE, timed))
    name = os.fsencode(process.path.name)[:15]
    yield record(_Record.COMM, struct.pack("<2I", pid, pid) + _padded(name + b"\0", 8) + sample_id, _COMM_EXEC)
    path = _padded(os.fsencode(process.path) + b"\0", 8)
    for mapping in process.mappings:
        place = struct.pack("<2I3Q", pid, pid, mapping.start, mapping.length, mapping.offset)
        rest = struct.pack("<2I2Q2I", 0, 0, 0, 0, _EXECUTABLE, _MAP_PRIVATE)
        yield record(_Record.MMAP2, place + rest + path + sample_id, _USER)
    yield record(_Record.ITRACE_START, struct.pack("<2I", pid, pid) + sample_id)
    yield record(_Record.AUX, struct.pack("<3Q", 0, len(buffer), 0) + sample_id)
    content = _padded(buffer, 8)
    cpu, thread = (0, -1) if timed else (-1, pid)
    yield record(_Record.AUXTRACE, struct.pack("<3QIiiI", len(content), 0, 0, 0, thread, cpu, 0)) + content
    yield record(_Record.EXIT, struct.pack("<4IQ", pid, pid, pid, pid, 0) + sample_id)


def _features(process: Process, midr: int, attributes: Sequence[bytes]) -> dict[_Feature, bytes]:
    """The sections that describe the machine, which is the model and so the same everywhere, and the command."""
    names = ("arm_spe_0//", "dummy:u")
    events = struct.pack("<2I", len(attributes), _ATTR_BYTES)
    for attribute, name, identifier in zip(attributes, names, (_SPE_ID, _DUMMY_ID), strict=True):
        events += attribute + struct.pack("<I", 1) + _string(name) + struct.pack("<Q", identifier)
    return {
        _Feature.HOSTNAME: _string("spurtle"),
        _Feature.OSRELEASE: _string("6.1.0"),
        _Feature.VERSION: _string("6.1.0"),
        _Feature.ARCH: _string("aarch64"),
        _Feature.NRCPUS: struct.pack("<2I", 1, 1),
        _Feature.CPUID: _string(f"0x{midr:016x}"),
        _Feature.CMDLINE: struct.pack("<I", len(process.argv)) + b"".join(map(_string, process.argv)),
        _Feature.EVENT_DESC: events,
    }


def _padded(content: bytes, size: int) -> bytes:
    return content.ljust(-(-len(content) // size) * size, b"\0")


def _string(text: str) -> bytes:
    content = _padded(os.fsencode(text) + b"\0", 64)
    return struct.pack("<I", len(content)) + content
