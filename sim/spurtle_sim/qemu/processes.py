"""Processes and threads that QEMU executes, and their events for perf."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from mmap import PROT_READ, PROT_WRITE
from pathlib import Path

from spurtle.support.errors import UserError
from spurtle.support.streams import print_stderr

from ..emulator.elf import Headers, page_start, read_headers
from ..perf.events import Comm, Exit, Fork, Mmap, TimedEvent
from ..perf.process import PAGE_BYTES, PID, Mapping
from .reader import Step, ThreadEvent

__all__ = ["Processes"]

_STACK = "[stack]"


@dataclass
class _Process:
    """Process on the host, with its number in the profile.

    `executing` is the program that it is about to execute. `heap` and `heap_end` are the bounds of the heap, or zero.
    `initial` has the mappings at the start of the program, until they are complete; `files` has later ones of files.
    """

    number: int
    path: str
    executing: str = ""
    heap: int = 0
    heap_end: int = 0
    initial: list[Mapping] = field(default_factory=list[Mapping])
    files: list[Mapping] = field(default_factory=list[Mapping])


class Processes:
    """Processes and threads of a program. Their numbers in the profile are counted from PID, and so are repeatable.

    Parameters
    ----------
    path : Path
        Program of the first process.
    sysroot : str
        Folder of the files of dynamically linked programs, or an empty string.
    """

    def __init__(self, path: Path, sysroot: str) -> None:
        self._path = path
        self._sysroot = sysroot
        self._next = PID
        self._threads: dict[int, int] = {}
        self._processes: dict[int, _Process] = {}
        self._refused: set[str] = set()
        self._headers: dict[str, Headers | None] = {}

    def number(self, thread: int) -> int:
        """Return the number in the profile of a thread of the host."""
        return self._threads.get(thread, PID)

    def events(self, report: Step) -> Iterator[TimedEvent]:
        """Yield the events for perf of a report with an event. Their times are zero."""
        if report.event is ThreadEvent.THREAD:
            yield from self._start(report)
            return
        process = self._processes[report.process]
        thread = self.number(report.thread)
        match report.event:
            case ThreadEvent.INITIAL:
                start, length, offset = report.values()[:3]
                if length:
                    process.initial.append(Mapping(start, length, offset, 0, report.text(3)))
                else:
                    yield from self._initial(process, thread)
            case ThreadEvent.MAP:
                start, length, offset, protection = report.values()[:4]
                mapping = Mapping(start, _aligned(length), offset, protection, report.text(4))
                if mapping.path.startswith("/") and not mapping.path.startswith("//"):
                    process.files.append(mapping)
                yield self._mmap(process, thread, mapping)
            case ThreadEvent.HEAP:
                [end] = report.values()
                process.heap = process.heap or page_start(end)
                if end > max(process.heap, process.heap_end):
                    process.heap_end = end
                    yield self._mmap(process, thread, _memory(process.heap, end - process.heap, "[heap]"))
            case ThreadEvent.PROTECT:
                start, length, protection = report.values()
                yield self._mmap(process, thread, _protected(process, start, _aligned(length), protection))
            case ThreadEvent.NAME:
                yield Comm(time=0, pid=process.number, tid=thread, name=report.text(0), executed=False)
            case ThreadEvent.EXECUTE:
                process.executing = report.text(0)
            case ThreadEvent.REFUSED:
                self._refuse(report.text(0))
            case _:
                pass

    def end(self, report: Step) -> Iterator[TimedEvent]:
        """Yield the event of the end of a thread. A thread that is about to execute a program does not end."""
        process = self._processes.get(report.process)
        if process is None or process.executing:
            return
        number = self._threads.pop(report.thread, PID)
        if number != PID:
            parent = process.number
            yield Exit(time=0, pid=parent, tid=number, parent_pid=parent, parent_tid=parent)

    def _start(self, report: Step) -> Iterator[TimedEvent]:
        if report.thread in self._threads:
            return  # it executes another program
        number = self._threads[report.thread] = self._next
        self._next += 1
        process = self._processes.get(report.process)
        if process is not None and report.process != report.thread:
            parent = process.number
            yield Fork(time=0, pid=parent, tid=number, parent_pid=parent, parent_tid=parent)
        elif self._processes:
            source = self._processes.get(report.parent) or next(iter(self._processes.values()))
            self._processes[report.process] = _Process(number, source.path, heap=source.heap)
            yield Fork(time=0, pid=number, tid=number, parent_pid=source.number, parent_tid=source.number)
        else:
            self._processes[report.process] = _Process(number, str(self._path))

    def _initial(self, process: _Process, thread: int) -> Iterator[TimedEvent]:
        """Yield the mappings of the program, of its interpreter, and of its stack."""
        initial, process.initial = process.initial, []
        if process.executing:
            process.path, process.executing = process.executing, ""
            process.files = []
            process.heap = process.heap_end = 0
            yield Comm(time=0, pid=process.number, tid=thread, name=Path(process.path).name)
        program = self._read(process.path)
        interpreter = program.interpreter if program else None
        names = [process.path, *((self._sysroot + interpreter, interpreter) if interpreter else ())]
        shown = {str(Path(name).resolve()): name for name in reversed(names)}
        for path in dict.fromkeys(mapping.path for mapping in initial):
            present = [mapping for mapping in initial if mapping.path == path]
            headers = self._read(path) if path in shown else None
            if headers and headers.loaded:
                for mapping in headers.mappings(
                    _base(headers, present), shown[path] if shown[path] == process.path else path
                ):
                    yield self._mmap(process, thread, mapping)
            elif path == _STACK:
                yield self._mmap(process, thread, _memory(present[0].start, present[0].length, _STACK))

    def _mmap(self, process: _Process, thread: int, mapping: Mapping) -> Mmap:
        headers = self._read(mapping.path) if mapping.path.startswith("/") else None
        build_id = headers.build_id if headers else b""
        return Mmap(time=0, pid=process.number, tid=thread, mapping=mapping, build_id=build_id)

    def _read(self, path: str) -> Headers | None:
        """Return the headers of a file. None if it is not an executable or a library."""
        if path not in self._headers:
            try:
                self._headers[path] = read_headers(path)
            except UserError:
                self._headers[path] = None
        return self._headers[path]

    def _refuse(self, path: str) -> None:
        if path not in self._refused:
            self._refused.add(path)
            print_stderr(f"spurtle: {path} is not an AArch64 program: it runs on the host, and is not profiled")


def _base(headers: Headers, present: Sequence[Mapping]) -> int:
    """Return the load address of a file: the one at which most of its segments are among the mappings.

    QEMU can leave a part of a first mapping of the file below the load address.
    """

    def segments(base: int) -> int:
        return sum(
            any(
                each.start <= wanted.start < each.end and wanted.start - wanted.offset == each.start - each.offset
                for each in present
            )
            for wanted in headers.mappings(base, "")
        )

    first = headers.loaded[0]
    bases = [each.start - page_start(first.vaddr) for each in present if each.offset == page_start(first.offset)]
    return max(bases, key=segments, default=0)


def _protected(process: _Process, start: int, length: int, protection: int) -> Mapping:
    """Return the mapping of memory that becomes executable."""
    for file in reversed(process.files):
        if file.start <= start < file.end:
            return Mapping(start, length, file.offset + start - file.start, protection, file.path)
    return Mapping(start, length, 0, protection, "//anon")


def _memory(start: int, length: int, name: str) -> Mapping:
    return Mapping(start, _aligned(length), 0, PROT_READ | PROT_WRITE, name)


def _aligned(length: int) -> int:
    return page_start(length + PAGE_BYTES - 1)
