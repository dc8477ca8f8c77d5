"""Files of a profile: perf.data for the perf tool, the contents of the Profiling Buffer, and exact counts."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from spurtle.support.files import check_files, write_files

from ..perf.events import NOTHING_LOST, Aux
from ..perf.format import AuxFlag
from ..perf.writer import NO_SILICON, Recording, chunks
from ..records.decode import decode_records
from ..report.exact import ExactCounts, HashedChunks, exact_path

__all__ = ["aux_event", "check_output", "midr", "raw_path", "reader_commands", "save", "write"]

_MIDRS = {
    "neoverse_n1": 0x410F_D0C1,  # r3p1: with it, perf names the data sources
    "kunpeng_920": 0x481F_D010,
}
"""MIDR_EL1 of the silicon that a configuration resembles, if it is known."""


def midr(config: str) -> int:
    """Return MIDR_EL1 for the name of a configuration."""
    return _MIDRS.get(config, NO_SILICON)


def aux_event(pid: int, data: bytes, flags: AuxFlag = NOTHING_LOST) -> Aux:
    """Return the event of a buffer of unknown time: one cycle after its last timestamp."""
    last = max((record.timestamp or 0 for record in decode_records(data)), default=0)
    return Aux(time=last + 1, pid=pid, tid=pid, data=data, flags=flags)


def raw_path(output: str) -> str:
    """Return the name of the file with the contents of the buffer."""
    return f"{output}.spe"


def reader_commands(output: str) -> str:
    """Return the commands that read a profile, as a line for the user."""
    return f"next: perf report -i {output}    or: spurtle report {output}"


def check_output(output: str, *inputs: str, also: Sequence[str] = ()) -> None:
    """Raise UserError if `save` cannot write its files, or those of `also`, or would replace one of `inputs`."""
    check_files([output, raw_path(output), exact_path(output), *also], inputs)


def save(output: str, recording: Recording, exact: ExactCounts | None = None) -> None:
    """Write a profile: `output` for perf, its AUX data into `raw_path`, and exact counts, if given, into `exact_path`.

    Raises
    ------
    UserError
        If a file cannot be written.
    """
    data = (bytes(event.data) for event in recording.events if isinstance(event, Aux))
    files: dict[Path, Iterable[bytes]] = {Path(raw_path(output)): data, Path(output): chunks(recording)}
    if exact is not None:
        hashed = HashedChunks(files[Path(output)], exact)
        # The exact counts follow the profile, of which they contain the hash.
        files |= {Path(output): hashed.profile(), Path(exact_path(output)): hashed.counts()}
    write_files(files)


def write(path: str | Path, recording: Recording) -> None:
    """Write a complete perf.data file, or none. Raises UserError if it cannot be written."""
    write_files({Path(path): chunks(recording)})
