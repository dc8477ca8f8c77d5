"""Reader of the Arm SPE data in perf.data files, of `spurtle profile` or of the perf tool on an Arm machine.

Ref: Linux tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from spurtle.support.arguments import check_type
from spurtle.support.errors import UserError
from spurtle.support.numerals import counted

from .format import ARM_SPE, HEADER_BYTES, MAGIC, Attribute, AuxFlag, RecordType, SampleField
from .sideband import Sideband

__all__ = ["AuxBuffer", "AuxRecord", "Contents", "is_perf_data", "read_perf_data"]

_PIPE_HEADER_BYTES = 16  # magic and size, the header of `perf record -o -`
_MIN_ATTR_BYTES = 64  # PERF_ATTR_SIZE_VER0: the members that every perf has
_NONE = (1 << 32) - 1  # -1: no CPU, no thread


class AuxBuffer(NamedTuple):
    """Contents of one Profiling Buffer, which are in one AUXTRACE record.

    Members
    -------
    number : int
        Index of its AUXTRACE record in the file, from 0.
    cpu, tid : int or None
        CPU, or in a recording of threads, thread.
    data : bytes
    """

    number: int
    cpu: int | None
    tid: int | None
    data: bytes


class AuxRecord(NamedTuple):
    """Report of the kernel on a part of the AUX data.

    Members
    -------
    cpu, tid, time : int or None
        CPU, thread, and nanoseconds on perf's clock. None if the file does not contain them.
    size : int
    flags : AuxFlag
    """

    cpu: int | None
    tid: int | None
    time: int | None
    size: int
    flags: AuxFlag


@dataclass
class Contents:
    """Arm SPE data of a perf.data file.

    Parameters
    ----------
    buffers : list of AuxBuffer
        Sorted by CPU and thread. Buffers of one CPU and thread are in the order of the file.
    aux : list of AuxRecord
        In the order of the file.
    problems : list of str
        One sentence for each part of the file that could not be read.
    sideband : Sideband
        Processes, mappings, losses, machine and event.
    """

    buffers: list[AuxBuffer] = field(default_factory=list[AuxBuffer])
    aux: list[AuxRecord] = field(default_factory=list[AuxRecord])
    problems: list[str] = field(default_factory=list[str])
    sideband: Sideband = field(default_factory=Sideband)


class _Trailer(NamedTuple):
    """Members that are present at the end of each record of the kernel (`sample_id_all`)."""

    thread: bool
    time: bool
    cpu: bool
    identifier: bool


def is_perf_data(data: bytes) -> bool:
    """Return whether `data` is the content of a perf.data file, in either byte order."""
    return data[: len(MAGIC)] in (MAGIC, MAGIC[::-1])


def read_perf_data(data: bytes) -> Contents:
    """Return the Arm SPE data of a perf.data file.

    Parameters
    ----------
    data : bytes
        Content of the file.

    Raises
    ------
    TypeError
        If `data` is not of the type `bytes`.
    UserError
        If the data is not that of a perf.data file, the file has another byte order or architecture, its header is cut
        off, or it has no AUX data.
    """
    check_type("data", data, bytes)
    if not is_perf_data(data):
        raise UserError(f"a perf.data file must begin with {MAGIC!r}, not {data[: len(MAGIC)]!r}")
    if not data.startswith(MAGIC):
        raise UserError("the perf.data file must be little-endian, and it is big-endian")
    contents = Contents()
    trailers: dict[int, _Trailer] = {}
    start, end = _data_section(data, trailers, contents.sideband)
    for kind, misc, offset, size in _records(data, start, end, contents):
        body = data[offset + 8 : offset + size]
        contents.sideband.add_record(kind, misc, body)
        match kind:
            case RecordType.ATTR:
                _add_trailer(trailers, body, _pipe_identifiers(body))
                contents.sideband.add_attribute(body)
            case RecordType.AUXTRACE_INFO if len(body) >= 4 and (found := _word(body, 0)) != ARM_SPE:
                raise UserError(f"the AUX data of the perf.data file must be of Arm SPE, type {ARM_SPE}, not {found}")
            case RecordType.AUXTRACE if len(body) >= 40:
                _add_buffer(contents, data, offset + size, body)
            case RecordType.AUX if len(body) >= 24:
                # Other bits of the flags are the PMU's format of the data.
                _, aux_size, flags = struct.unpack_from("<3Q", body)
                contents.aux.append(AuxRecord(*_source(trailers, body), aux_size, AuxFlag(flags & 0xF)))
            case RecordType.COMPRESSED | RecordType.COMPRESSED2 if not contents.problems:
                contents.problems.append("compressed records of the kernel were not read: lost data is unknown")
            case _:
                pass
    if not contents.buffers:
        _check_architecture(contents.sideband)
        raise UserError("the perf.data file must hold AUX data of Arm SPE, and it holds none")
    contents.buffers.sort(key=lambda buffer: (buffer.cpu is None, buffer.cpu or 0, buffer.tid or 0))
    return contents


def _check_architecture(sideband: Sideband) -> None:
    """Raise UserError if the file names a machine that cannot have Arm SPE."""
    if sideband.architecture not in ("", "aarch64"):
        raise UserError(f"the perf.data file must be of an AArch64 machine, and it is of {sideband.architecture}")


def _data_section(data: bytes, trailers: dict[int, _Trailer], sideband: Sideband) -> tuple[int, int]:
    """Return start and end of the data section. Add what the attributes define, and the sections after the data."""
    size = _number(data, 8)
    if size == _PIPE_HEADER_BYTES:
        return _PIPE_HEADER_BYTES, len(data)
    if size < HEADER_BYTES or len(data) < HEADER_BYTES:
        raise UserError(f"the header of the perf.data file must have {HEADER_BYTES} bytes, and it is cut off")
    attr_size, attrs, attrs_size, start, size = struct.unpack_from("<5Q", data, 16)
    # Limit of the total size of the identifiers. In a corrupt file, the identifiers of many attributes can overlap.
    remaining = len(data)
    for offset in range(attrs, min(attrs + attrs_size, len(data)), max(attr_size, _MIN_ATTR_BYTES)):
        attribute = data[offset : offset + attr_size]
        ids, ids_size = struct.unpack("<2Q", attribute[-16:]) if len(attribute) >= _MIN_ATTR_BYTES else (0, 0)
        identifiers = data[ids : ids + min(ids_size, remaining)]
        remaining -= len(identifiers)
        sideband.add_attribute(attribute)
        _add_trailer(trailers, attribute, [_number(identifiers, at) for at in range(0, len(identifiers) - 7, 8)])
    sideband.add_features(data)
    # The size is zero if `perf record` was killed.
    return start, min(start + size, len(data)) if size else len(data)


def _pipe_identifiers(body: bytes) -> list[int]:
    """Return the identifiers that follow an attribute in a record."""
    if len(body) < _MIN_ATTR_BYTES:
        return []
    first = max(_word(body, 4), _MIN_ATTR_BYTES)
    return [_number(body, at) for at in range(first, len(body) - 7, 8)]


def _add_trailer(trailers: dict[int, _Trailer], attribute: bytes, identifiers: list[int]) -> None:
    if len(attribute) < _MIN_ATTR_BYTES:
        return
    fields, flags = _number(attribute, 24), _number(attribute, 40)
    if flags & Attribute.SAMPLE_ID_ALL:
        members = (SampleField.TID, SampleField.TIME, SampleField.CPU, SampleField.IDENTIFIER)
        trailer = _Trailer(*(bool(fields & each) for each in members))
        trailers.update(dict.fromkeys(identifiers, trailer))


def _source(trailers: dict[int, _Trailer], body: bytes) -> tuple[int | None, int | None, int | None]:
    """Return CPU, thread and time in the trailer of an AUX record."""
    first = next(iter(trailers.values()), None)
    trailer = trailers.get(_number(body, len(body) - 8), first) if first and first.identifier else first
    if trailer is None:
        return None, None, None
    # The trailer follows the 24 bytes of offset, size and flags. Its first member is process and thread. Its last
    # ones are CPU and identifier.
    last = len(body) - (16 if trailer.identifier else 8)
    at = 32 if trailer.thread else 24
    return (
        _word(body, last) if trailer.cpu and last >= 24 else None,
        _word(body, 28) if trailer.thread and len(body) >= 32 else None,
        _number(body, at) if trailer.time and len(body) >= at + 8 else None,
    )


def _records(data: bytes, start: int, end: int, contents: Contents) -> Iterator[tuple[int, int, int, int]]:
    """Yield type, misc word, offset and size of each record. The data after an AUXTRACE record is skipped."""
    offset = start
    while offset < end:
        kind, misc, size = struct.unpack("<I2H", data[offset : min(offset + 8, end)].ljust(8, b"\0"))
        if size < 8 or offset + size > end:
            contents.problems.append(
                f"offset {offset:#x} of the perf.data file: a record of {counted(size, 'byte')} must have "
                f"from 8 to {end - offset:,}"
            )
            return
        yield kind, misc, offset, size
        offset += size
        if kind == RecordType.AUXTRACE and size >= 16:
            offset += _number(data, offset - size + 8)


def _add_buffer(contents: Contents, data: bytes, start: int, body: bytes) -> None:
    """Add the buffer that begins at `start`, after its AUXTRACE record."""
    size, _, _, _, tid, cpu = struct.unpack_from("<3Q3I", body)
    number = len(contents.buffers)
    if start + size > len(data):
        message = (
            f"buffer {number} must have {counted(size, 'byte')}, and the file ends after {len(data) - start:,} of them"
        )
        contents.problems.append(message)
    content = data[start : start + size]
    contents.buffers.append(AuxBuffer(number, None if cpu == _NONE else cpu, None if tid == _NONE else tid, content))


def _number(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 8], "little")


def _word(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "little")
