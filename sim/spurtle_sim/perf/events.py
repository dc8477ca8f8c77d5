"""Timed events of processes and threads, which the kernel reports to perf in addition to the samples.

Ref: Linux include/uapi/linux/perf_event.h; kernel/events/core.c (names of memory without a file).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from spurtle.arch import PMBSR_EL1

from .format import AuxFlag
from .process import Mapping, Process
from .spool import Data

__all__ = [
    "NOTHING_LOST",
    "Aux",
    "Comm",
    "Exit",
    "Fork",
    "Mmap",
    "TimedEvent",
    "loss_flags",
    "mmap_event",
    "process_events",
]

NOTHING_LOST = AuxFlag(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedEvent:
    """Event of one thread.

    Parameters
    ----------
    time : int
        Time in nanoseconds. One cycle is one nanosecond.
    pid, tid : int
        Numbers of process and thread. The first thread of a process has the number of the process.
    """

    time: int
    pid: int
    tid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comm(TimedEvent):
    """Change of the name of the thread to `name`.

    Parameters
    ----------
    name : str
    executed : bool
        Whether it has changed because the thread executed another program.
    """

    name: str
    executed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Mmap(TimedEvent):
    """New mapping of the process.

    Parameters
    ----------
    mapping : Mapping
        The new mapping.
    build_id : bytes
        Build ID of the file. Empty if it has none.
    """

    mapping: Mapping
    build_id: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork(TimedEvent):
    """Start of the thread, which the thread `parent_tid` of the process `parent_pid` created."""

    parent_pid: int
    parent_tid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit(TimedEvent):
    """End of the thread."""

    parent_pid: int
    parent_tid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Aux(TimedEvent):
    """Records that the driver has read from the Profiling Buffer of a CPU.

    Parameters
    ----------
    data : Data
        Complete records.
    flags : AuxFlag
        Losses before these records were read.
    cpu : int
        Number of the CPU.
    """

    data: Data
    flags: AuxFlag = NOTHING_LOST
    cpu: int = 0


def loss_flags(pmbsr: int) -> AuxFlag:
    """Return the flags that the Linux driver reports for a value of PMBSR_EL1."""
    status = PMBSR_EL1.unpack(pmbsr)
    flags = AuxFlag.COLLISION if status.COLL else NOTHING_LOST
    return flags | AuxFlag.TRUNCATED | AuxFlag.PARTIAL if status.DL else flags


def mmap_event(process: Process, time: int, mapping: Mapping) -> Mmap:
    """Return the event of a mapping that the process made at `time`."""
    build_id = process.build_id if mapping.path == str(process.path) else b""
    return Mmap(time=time, pid=process.pid, tid=process.pid, mapping=mapping, build_id=build_id)


def process_events(
    process: Process, aux: Sequence[Aux], *, later: Sequence[TimedEvent] = (), end: int | None = None
) -> list[TimedEvent]:
    """Return the events of a process and of all that it started, in the order of their times.

    Parameters
    ----------
    process : Process
    aux : sequence of Aux
    later : sequence of TimedEvent
        Events after the start of the process, in order: mappings, and other threads.
    end : int or None
        Time of the exit. None for the time of the last event.
    """
    pid = process.pid
    events: list[TimedEvent] = [
        Comm(time=0, pid=pid, tid=pid, name=process.path.name),
        *(mmap_event(process, 0, mapping) for mapping in process.mappings),
        *sorted([*later, *aux], key=lambda event: event.time),
    ]
    last = events[-1].time if end is None else end
    return [*events, Exit(time=last, pid=pid, tid=pid, parent_pid=pid, parent_tid=pid)]
