"""Reader of a profile: its records as columns, with the place of each instruction and the variable of each access."""

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spurtle.arch import ADDRESS_BITS, Event
from spurtle.support.errors import UserError

from ..emulator.elf import read_headers
from ..perf.format import ConfigBit, Settings
from ..perf.reader import AuxBuffer, Contents, is_perf_data, read_perf_data
from ..perf.sideband import MappedFile, Sideband
from ..records.operation_type import operation_type
from .columns import ABSENT, Array, PacketSlot, RecordColumns, decode_columns
from .exact import ExactCounts, read_exact
from .levels import levels
from .places import Place, Resolver

__all__ = ["KINDS", "Names", "Profile", "read_profile"]

KINDS = ("load", "store", "branch", "other")
"""Kinds of operations. The elements of `Profile.kind` are indices of this tuple."""

_COUNTED_AMONG = {Event.L1D_REFILL: Event.L1D_ACCESS, Event.TLB_WALK: Event.TLB_ACCESS}
_NO_PROCESS = -1
_CONTEXT = (1 << 32) - 1  # bits of CONTEXTIDR. The payload in a corrupt record can be larger
_TYPE_FILTERS = (
    ConfigBit.BRANCH_FILTER,
    ConfigBit.LOAD_FILTER,
    ConfigBit.STORE_FILTER,
    ConfigBit.SIMD_FILTER,
    ConfigBit.FLOAT_FILTER,
)


@dataclass
class Profile:
    """Samples of a profile.

    Parameters
    ----------
    path : str
    raw : bool
        Whether the file contains raw buffers and nothing else.
    columns : RecordColumns
        Complete records with a PC, in order of time for each buffer.
    contents : Contents
        What else the file contains. The data of the buffers is empty.
    skipped : int
        Records that are incomplete or have no PC.
    midr : int
        MIDR_EL1, or 0 if it is unknown.
    places : list of Place
    place : array
        Index of the place of each sample.
    exact : ExactCounts or None
    exact_problem : str
        Reason why there are no exact counts.
    notes : list of str
        One sentence for each file whose symbols cannot be used.
    """

    path: str
    raw: bool
    columns: RecordColumns
    contents: Contents
    skipped: int
    midr: int
    places: list[Place]
    place: Array
    exact: ExactCounts | None
    exact_problem: str
    notes: list[str]
    _resolver: Resolver
    _process: Array

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def settings(self) -> Settings | None:
        """Settings of the event, if the file contains them."""
        return self.contents.sideband.settings

    @cached_property
    def kind(self) -> Array:
        """Index of KINDS for each sample."""
        values, inverse = np.unique(self.columns.operation, return_inverse=True)
        return np.array([_kind(value) for value in values.tolist()], np.int8)[inverse]

    @cached_property
    def level(self) -> Array:
        """Index of LEVELS for each sample. It means something for loads only."""
        return levels(self.columns.source, self.columns.events, self.midr)

    @cached_property
    def functions(self) -> tuple[Array, list[str]]:
        """Index of the function of each sample, and the names of the functions."""
        return self._grouped([place.function for place in self.places])

    @cached_property
    def lines(self) -> tuple[Array, list[str]]:
        """Index of the source line of each sample, and the lines. Without lines, instructions."""
        return self._grouped([place.line for place in self.places])

    @cached_property
    def variables(self) -> tuple[Array, list[str]]:
        """Index of the variable or memory region of each sample, -1 for samples without a data address; the names."""
        result = np.full(len(self), -1, np.int32)
        numbers: dict[str, int] = {}
        accesses = np.flatnonzero(self.columns.has(PacketSlot.VA))
        process = self._process[accesses]
        for pid in np.unique(process).tolist():
            chosen = accesses[process == pid]
            index, names = self._resolver.data(pid, self.columns.va[chosen])
            result[chosen] = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)[index]
        return result, list(numbers)

    def has_event(self, event: Event) -> Array:
        """Return which samples have an event."""
        return (self.columns.events >> int(event) & 1).astype(bool)

    def may_have(self, event: Event) -> Array:
        """Return the samples among which the rate of an event is counted: accesses, or branches."""
        if event is Event.MISPREDICTED:
            return self.kind == KINDS.index("branch")
        return self.has_event(_COUNTED_AMONG[event])

    def exact_share(self, names: list[str], *, by_line: bool) -> Array | None:
        """Return the exact shares of functions or lines. None if they are unknown."""
        if self.exact is None or self.filters:
            return None
        totals = self._exact_lines if by_line else self._exact_functions
        return np.array([totals.get(name, 0) for name in names], float) / max(sum(self.exact.counts.values()), 1)

    @cached_property
    def _exact_lines(self) -> dict[str, int]:
        return self._exact_totals([place.line for place in self._exact_places])

    @cached_property
    def _exact_functions(self) -> dict[str, int]:
        return self._exact_totals([place.function for place in self._exact_places])

    def _exact_totals(self, names: list[str]) -> dict[str, int]:
        """Return the executed operations of each name. `names` has one name for each address of `exact`."""
        totals: dict[str, int] = {}
        for name, count in zip(names, self.exact.counts.values() if self.exact else (), strict=True):
            totals[name] = totals.get(name, 0) + count
        return totals

    @cached_property
    def _exact_places(self) -> list[Place]:
        """Place of each address of `exact`, which is of the process with the most samples."""
        if self.exact is None:
            return []
        known = self._process[self._process >= 0]
        pid = int(np.bincount(known).argmax()) if len(known) else _NO_PROCESS
        return self._resolver.code(pid, list(self.exact.counts))

    @property
    def jitter(self) -> bool:
        """Whether the distances of the samples are random. True if this is unknown."""
        return self.settings is None or bool(self.settings.config >> ConfigBit.JITTER & 1)

    @property
    def filters(self) -> list[str]:
        """Filters of the event, as terms of perf's `arm_spe` event."""
        return _filter_terms(self.settings) if self.settings else []

    def _grouped(self, names: list[str]) -> tuple[Array, list[str]]:
        numbers: dict[str, int] = {}
        index = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)
        return index[self.place], list(numbers)


def _filter_terms(settings: Settings) -> list[str]:
    """Return the filters of the event, as terms of perf's `arm_spe` event."""
    terms = [f"{bit.name.lower()}=1" for bit in _TYPE_FILTERS if settings.config >> bit & 1]
    for name, value in (
        ("event_filter", settings.config1),
        ("min_latency", settings.config2),
        ("inv_event_filter", settings.config3),
        ("inv_data_src_filter", settings.config4),
    ):
        if value:
            terms.append(f"{name}={value}" if name == "min_latency" else f"{name}={value:#x}")
    return terms


class Names(NamedTuple):
    """Files with names that a profile does not name itself.

    Members
    -------
    program : str or None
        Path of the program that ran while raw buffers were written, at the addresses at which it was linked. A
        perf.data file names its programs.
    kallsyms : str or None
        Path of a copy of /proc/kallsyms of the recorded machine.
    """

    program: str | None = None
    kallsyms: str | None = None


_NO_NAMES = Names()


def read_profile(path: str, data: bytes, midr: int | None, names: Names = _NO_NAMES) -> Profile:
    """Read a perf.data file, or raw buffers.

    Parameters
    ----------
    path : str
        Name of the file, next to which the exact counts are.
    data : bytes
        Content of the file.
    midr : int or None
        MIDR_EL1 of the core that wrote raw buffers. A perf.data file contains its own.
    names : Names

    Raises
    ------
    UserError
        If a file cannot be used, or contains no complete record with a PC.
    """
    if raw := not is_perf_data(data):
        if midr is None:
            raise UserError(f"{path} is not a perf.data file; the contents of a Profiling Buffer need --config")
        contents = _raw_contents(data, names.program)
        exact, problem = None, "raw buffers have no exact counts or settings"
        if names.program is None:
            problem += ", and no names: --program FILE names the program that ran"
    else:
        contents = read_perf_data(data)
        exact, problem = read_exact(path, data)
    del data  # not in memory together with the columns, if the caller does not keep it
    columns = decode_columns([buffer.data for buffer in contents.buffers])
    contents.buffers = [buffer._replace(data=b"") for buffer in contents.buffers]
    usable = columns.complete & columns.has(PacketSlot.PC) & columns.has(PacketSlot.EVENTS)
    if not usable.any():
        raise UserError(f"{path} must contain complete records of Arm SPE with a PC, and it contains none")
    skipped = int(np.count_nonzero(~usable))
    if skipped:
        columns = RecordColumns(**{each.name: getattr(columns, each.name)[usable] for each in fields(columns)})
    resolver = Resolver(contents.sideband, names.kallsyms)
    process = _processes(contents, columns)
    places, place = _places(resolver, process, columns.pc & np.uint64((1 << ADDRESS_BITS) - 1))
    found = contents.sideband.cpuid
    return Profile(
        path, raw, columns, contents, skipped, midr if raw and midr else _number(found), places, place, exact, problem,
        [*resolver.problems.values()], resolver, process,
    )  # fmt: skip


def _raw_contents(data: bytes, program: str | None) -> Contents:
    """Return raw buffers as the contents of a file, with the mappings of the program that ran."""
    sideband = Sideband() if program is None else Sideband(mappings=_mappings(program))
    return Contents(buffers=[AuxBuffer(0, None, None, data)], sideband=sideband)


def _mappings(program: str) -> list[MappedFile]:
    """Return the mappings of a program that is at the addresses at which it was linked."""
    headers = read_headers(program)
    if headers.relocatable:
        raise UserError(f"{program} must be linked at fixed addresses (-no-pie), because raw buffers have no mappings")
    found = headers.mappings(0, str(Path(program).resolve()))
    return [MappedFile(0, mapping, headers.build_id) for mapping in found]


def _number(cpuid: str) -> int:
    try:
        return int(cpuid, 16)
    except ValueError:
        return 0


def _kind(operation: int) -> int:
    name = "other" if operation == ABSENT else operation_type(operation >> 8, operation & 0xFF).kind
    return KINDS.index(name) if name in KINDS else KINDS.index("other")


def _processes(contents: Contents, columns: RecordColumns) -> Array:
    """Return the process of each sample: from its Context packet, or from the thread of its buffer."""
    threads, inverse = np.unique(columns.context, return_inverse=True)
    process = np.array([contents.sideband.process_of(thread & _CONTEXT) for thread in threads.tolist()], np.int64)[
        inverse
    ]
    without = ~(columns.has(PacketSlot.CONTEXT_EL1) | columns.has(PacketSlot.CONTEXT_EL2))
    if without.any():
        owners = [
            _NO_PROCESS if each.tid is None else contents.sideband.process_of(each.tid) for each in contents.buffers
        ]
        process = np.where(without, np.array(owners)[columns.buffer], process)
    return process


def _places(resolver: Resolver, process: Array, pc: Array) -> tuple[list[Place], Array]:
    """Return all places, and the index of the place of each sample."""
    places: list[Place] = []
    index = np.zeros(len(pc), np.int32)
    for pid in np.unique(process).tolist():
        chosen = np.flatnonzero(process == pid)
        addresses, inverse = np.unique(pc[chosen], return_inverse=True)
        index[chosen] = inverse + len(places)
        places += resolver.code(pid, addresses.tolist())
    return places, index
