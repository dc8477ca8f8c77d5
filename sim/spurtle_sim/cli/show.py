"""Output of `spurtle decode`."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from spurtle.support.numerals import counted
from spurtle.support.streams import print_stderr

from .. import decode
from ..perf.format import AuxFlag
from ..perf.reader import AuxBuffer, Contents, is_perf_data, read_perf_data
from ..records import text
from ..records.decode import decode_packets
from ..records.json_object import to_json

__all__ = ["show"]

_LOST = {
    AuxFlag.TRUNCATED: "lost data (truncated)",
    AuxFlag.PARTIAL: "lost data (partial)",
    AuxFlag.COLLISION: "lost samples (collision)",
}


@dataclass
class _Printer:
    """Printer of records, which counts them and their problems."""

    as_json: bool
    records: int = 0
    problems: int = 0

    def problem(self, message: str) -> None:
        self.problems += 1
        print_stderr(f"spurtle: {message}")

    def buffer(self, data: bytes, prefix: str, members: dict[str, int]) -> None:
        """Print the records of a buffer, with `prefix` before each problem and `members` in each JSON object."""
        if not self.as_json:
            for packet in decode_packets(data):
                print(text.line(data, packet))
        for record in decode(data):
            self.records += 1
            if self.as_json:
                print(json.dumps(to_json(record, members)))
            for problem in record.problems:
                self.problem(f"{prefix}offset {problem.offset:#x}: {problem.message}")


def show(data: bytes, *, as_json: bool) -> bool:
    """Print the records in a Profiling Buffer or a perf.data file. Return whether they have no problems.

    Raises
    ------
    UserError
        If a perf.data file cannot be used.
    """
    printer = _Printer(as_json)
    if is_perf_data(data):
        _perf_data(printer, read_perf_data(data))
    else:
        printer.buffer(data, "", {})
    if printer.problems:
        sys.stdout.flush()
        print_stderr(f"spurtle: {counted(printer.problems, 'problem')} in {counted(printer.records, 'record')}")
    return printer.problems == 0


def _perf_data(printer: _Printer, contents: Contents) -> None:
    for buffer in contents.buffers:
        title = ", ".join(_title(buffer))
        if not printer.as_json:
            print(f"{title}: {counted(len(buffer.data), 'byte')}")
        members = {"cpu": buffer.cpu, "tid": buffer.tid, "buffer": buffer.number}
        printer.buffer(buffer.data, f"{title}, ", {name: value for name, value in members.items() if value is not None})
    for problem in contents.problems:
        printer.problem(problem)
    sys.stdout.flush()
    for line in _losses(contents):
        print_stderr(f"spurtle: {line}")


def _title(buffer: AuxBuffer) -> Iterator[str]:
    if buffer.cpu is not None:
        yield f"CPU {buffer.cpu}"
    if buffer.tid is not None:
        yield f"thread {buffer.tid}"
    yield f"buffer {buffer.number}"


def _losses(contents: Contents) -> Iterator[str]:
    """Yield one sentence for each CPU and each kind of loss that the kernel reported."""
    totals = Counter(record.cpu for record in contents.aux)
    for cpu in sorted(totals, key=lambda cpu: -1 if cpu is None else cpu):
        prefix = "" if cpu is None else f"CPU {cpu}: "
        for flag, loss in _LOST.items():
            count = sum(1 for record in contents.aux if record.cpu == cpu and record.flags & flag)
            if count:
                yield f"{prefix}{count:,} of {counted(totals[cpu], 'AUX record')} {loss}"
