"""Records of Neoverse N1, encoded by hand, as the content of perf.data files."""

from spurtle.arch import Event, Header

__all__ = ["HIT", "PID", "REFILL", "branch", "load"]

PID = 1000
_EL0 = 0b1000_0000 << 56
"""Top byte of an address: Non-secure EL0, or the Non-secure physical address space."""

_RETIRED = 1 << Event.RETIRED
HIT = _RETIRED | 1 << Event.L1D_ACCESS | 1 << Event.TLB_ACCESS
REFILL = HIT | 1 << Event.L1D_REFILL


def _record(pc: int, operation: int, events: int, total: int, time: int | None, *addresses: bytes, pid: int) -> bytes:
    """Return a record in the packet order of Neoverse N1, without padding between packets, which perf accepts."""
    packets = [
        bytes([Header.ADDRESS]) + (pc | _EL0).to_bytes(8, "little"),
        bytes([Header.CONTEXT]) + pid.to_bytes(4, "little"),
        operation.to_bytes(2, "big"),
        bytes([Header.EVENTS | Header.size_field(2)]) + events.to_bytes(2, "little"),
        bytes([Header.COUNTER | 1, 1, 0]),
        bytes([Header.COUNTER]) + total.to_bytes(2, "little"),
        *addresses,
        bytes([Header.END]) if time is None else bytes([Header.TIMESTAMP]) + time.to_bytes(8, "little"),
    ]
    octets = b"".join(packets)
    return bytes(64 - len(octets)) + octets


def load(
    pc: int, va: int, pa: int, total: int, time: int | None, source: int | None, *, events: int = HIT, pid: int = PID
) -> bytes:
    """Return the record of a load. `time` and the data source `source` may be absent."""
    return _record(
        pc, 0x4900, events, total, time,
        bytes([Header.ADDRESS | 2]) + va.to_bytes(8, "little"),
        bytes([Header.COUNTER | 2, 1, 0]),
        bytes([Header.ADDRESS | 3]) + (pa | _EL0).to_bytes(8, "little"),
        b"" if source is None else bytes([Header.DATA_SOURCE, source]),
        pid=pid,
    )  # fmt: skip


def branch(pc: int, target: int, total: int, time: int | None, *, pid: int = PID) -> bytes:
    """Return the record of a mispredicted branch."""
    packet = bytes([Header.ADDRESS | 1]) + (target | _EL0).to_bytes(8, "little")
    return _record(pc, 0x4A01, _RETIRED | 1 << Event.MISPREDICTED, total, time, packet, pid=pid)
