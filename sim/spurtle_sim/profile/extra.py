"""Files of a run in addition to its profile: timed operations and waveforms."""

import argparse
import os
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spurtle.support.errors import UserError
from spurtle.support.files import replace_file
from spurtle.support.numerals import counted, decimal_option
from spurtle.support.streams import print_stderr

from .names import file_name

if TYPE_CHECKING:  # the command line is also used without the packages of the extra `profile`
    from ..cosim.waves import WaveFile
    from ..perf.process import Process

__all__ = ["ExtraFiles", "OpenFiles", "add_extra_arguments", "parse_extra"]

_MAX = (1 << 62) - 1


@dataclass(frozen=True, kw_only=True)
class ExtraFiles:
    """Names of the files of a run in addition to its profile. The default is none.

    Parameters
    ----------
    operations : str or None
        File for the timed operations, which `replay` plays.
    waves : WaveFile or None
        File for the waveforms of some samples.
    """

    operations: str | None = None
    waves: "WaveFile | None" = None

    def check(self, *, fast_forward: bool) -> None:
        """Check that the files can be written by a run with or without fast-forward.

        Raises
        ------
        ValueError
            If there are waveforms with fast-forward.
        """
        if self.waves and fast_forward:
            raise ValueError("fast_forward must be False with waves, which shows the complete simulation")

    @property
    def names(self) -> list[str]:
        """Names of the files."""
        return [*([self.operations] if self.operations else []), *([str(self.waves.path)] if self.waves else [])]


class OpenFiles:
    """Files that are written during a run. They get their names when they are complete.

    Parameters
    ----------
    output : str
        Name of the perf.data file. The records are stored in its folder.
    extra : ExtraFiles

    Attributes
    ----------
    spool : Spool
    saver : OperationsSaver or None
    waves : WaveFile or None
        The file under its temporary name.

    Raises
    ------
    UserError
        If a file cannot be created.
    """

    def __init__(self, output: str, extra: ExtraFiles) -> None:
        from ..perf.spool import Spool

        self._extra = extra
        self.saver = None
        self.waves: WaveFile | None = None
        with ExitStack() as stack:
            self.spool = stack.enter_context(closing(Spool(_folder(output))))
            if extra.operations:
                from .saved import OperationsSaver

                self.saver = stack.enter_context(closing(OperationsSaver(extra.operations)))
            if extra.waves:
                folder = _folder(extra.waves.path)
                try:
                    unfinished = tempfile.TemporaryDirectory(dir=folder, prefix=".unfinished-")
                except OSError as error:
                    raise UserError(f"cannot write into {folder}: {error.strerror}") from error
                path = Path(stack.enter_context(unfinished), extra.waves.path.name)
                self.waves = replace(extra.waves, path=path)
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Close the files. Those that have no name yet are removed."""
        self._stack.close()

    def save(self, process: "Process", sampled: int) -> None:
        """Give the files their names. `sampled` is the number of samples. Raises UserError if this fails."""
        if self.saver:
            self.saver.save(process)
        if self.waves and self._extra.waves:
            target = self._extra.waves.path
            replace_file(target, self.waves.path)
            if sampled < self.waves.last:
                print_stderr(f"spurtle: {target} ends with the run, which has {counted(sampled, 'sample')}")


def _folder(name: str | Path) -> Path:
    return Path(os.path.realpath(name)).parent


def add_extra_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for `parse_extra`."""
    parser.add_argument(
        "--save-ops", metavar="FILE", type=file_name, help="file for the profiled operations with their times"
    )
    parser.add_argument(
        "--waves",
        metavar="FILE",
        type=file_name,
        help="file for the waveforms of the RTL around some samples; it ends in .fst or .vcd",
    )
    parser.add_argument("--from", dest="first", metavar="N", help="first sample of --waves, from 1; default: 1")
    parser.add_argument("--to", dest="last", metavar="M", help="last sample of --waves; default: the first one")


def parse_extra(options: argparse.Namespace) -> ExtraFiles:
    """Return the files that the options of `add_extra_arguments` name.

    Raises
    ------
    UserError
        If the value of an option is not allowed.
    """
    if not options.waves:
        for option, text in (("--from", options.first), ("--to", options.last)):
            if text is not None:
                raise UserError(f"{option} must come with --waves, whose samples it selects")
        return ExtraFiles(operations=options.save_ops)
    from ..cosim.waves import WaveFile

    first = 1 if options.first is None else decimal_option("--from", options.first, 1, _MAX)
    last = first if options.last is None else decimal_option("--to", options.last, first, _MAX)
    return ExtraFiles(operations=options.save_ops, waves=WaveFile(path=Path(options.waves), first=first, last=last))
