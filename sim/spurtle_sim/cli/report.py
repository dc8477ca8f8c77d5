"""Output of `spurtle report`."""

import argparse
import shutil
import sys
from pathlib import Path

from spurtle.support.errors import UserError
from spurtle.support.files import STANDARD_INPUT, check_files, write_file

from ..profile.outputs import midr
from ..report import formats
from ..report.compare import build_comparison
from ..report.exact import exact_path
from ..report.pprof import pprof
from ..report.reading import Names, Profile, read_profile
from ..report.summary import ReportContents, build_report
from ..report.terminal import report_lines
from .report_options import SUFFIXES

__all__ = ["run_report"]

_OF_COMPARISONS = ("", ".html", ".json")
"""Kinds of output of a comparison. The empty one is text."""

_OF_RAW_BUFFERS = {"config": "core", "program": "programs"}
"""Options for raw buffers, and what a perf.data file names in their stead."""


def run_report(options: argparse.Namespace) -> int:
    """Print a report, or write it into a file. Return the exit status."""
    kind = ".json" if options.json else ".csv" if options.csv else ""
    files = [options.file] if options.other is None else [options.file, options.other]
    if options.output is not None:
        kind = _suffix(options.output)
        read = [*files, *map(exact_path, files), options.program, options.kallsyms]
        check_files([options.output], [name for name in read if name is not None])
    if options.other is not None and kind not in _OF_COMPARISONS:
        raise UserError("a comparison of two profiles must be printed, or written as .html or .json")
    names = Names(options.program, options.kallsyms)
    profiles = [_profile(name, options.config, names) for name in files]
    _check_use(options, profiles)
    if not kind:
        terminal = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in report_lines(_contents(profiles, brief=True), terminal=terminal):
            print(line)
    elif options.output is None:
        sys.stdout.buffer.write(_content(kind, profiles))  # UTF-8 for each encoding of the terminal
    else:
        write_file(options.output, _content(kind, profiles))
    return 0


def _check_use(options: argparse.Namespace, profiles: list[Profile]) -> None:
    """Raise UserError if an option for raw buffers is given, and there are none."""
    for option, names in _OF_RAW_BUFFERS.items():
        if getattr(options, option) is not None and not any(profile.raw for profile in profiles):
            raise UserError(
                f"--{option} must come with the contents of a Profiling Buffer: a perf.data file names its {names}"
            )


def _suffix(name: str) -> str:
    """Return the end of the name of an output file."""
    found = [suffix for suffix in SUFFIXES if name.endswith(suffix)]
    if not found:
        raise UserError(f"the name of the report must end in {', '.join(SUFFIXES)}, not {name}")
    return max(found, key=len)


def _contents(profiles: list[Profile], *, brief: bool) -> ReportContents:
    """Return the report on a profile, or on the differences of two."""
    if len(profiles) == 2:
        return build_comparison(*profiles) if brief else build_comparison(*profiles, limit=None)
    return build_report(profiles[0]) if brief else build_report(profiles[0], limit=None)


def _content(kind: str, profiles: list[Profile]) -> bytes:
    """Return the content of a file of the kind that a suffix names."""
    match kind:
        case ".html":
            from ..report.page import report_page  # loads matplotlib

            return report_page(_contents(profiles, brief=True), profiles[0] if len(profiles) == 1 else None)
        case ".json":
            return formats.report_json(_contents(profiles, brief=False))
        case ".csv":
            return formats.report_csv(_contents(profiles, brief=False))
        case ".parquet":
            return formats.samples_parquet(profiles[0])
        case ".folded":
            return formats.folded(profiles[0])
        case ".speedscope.json":
            return formats.speedscope(profiles[0])
        case _:
            return pprof(profiles[0])


def _profile(name: str, config: str | None, names: Names) -> Profile:
    if name == STANDARD_INPUT:
        raise UserError("report reads a file, not standard input, because the exact counts are next to it")
    # The content has no name here, so that the reader can release it.
    return read_profile(name, _read(name), None if config is None else midr(config), names)


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror}") from error
