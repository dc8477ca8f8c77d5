"""Output of `spurtle report`."""

import argparse
import sys
from pathlib import Path

from spurtle.support.errors import UserError
from spurtle.support.files import STANDARD_INPUT, check_files, write_file

from ..profile.outputs import midr
from ..report import formats
from ..report.pprof import pprof
from ..report.reading import Profile, read_profile
from ..report.summary import build_report
from ..report.terminal import report_lines
from .report_options import SUFFIXES

__all__ = ["run_report"]


def run_report(options: argparse.Namespace) -> int:
    """Print a report, or write it into a file. Return the exit status."""
    kind = ".json" if options.json else ".csv" if options.csv else ""
    if options.output is not None:
        kind = _suffix(options.output)
        check_files([options.output], [options.file])
    profile = _profile(options.file, options.config)
    if not kind:
        for line in report_lines(build_report(profile), bold=sys.stdout.isatty()):
            print(line)
    elif options.output is None:
        print(_content(kind, profile).decode(), end="")
    else:
        write_file(options.output, _content(kind, profile))
    return 0


def _suffix(name: str) -> str:
    """Return the end of the name of an output file."""
    found = [suffix for suffix in SUFFIXES if name.endswith(suffix)]
    if not found:
        raise UserError(f"the name of the report must end in {', '.join(SUFFIXES)}, not {name}")
    return max(found, key=len)


def _content(kind: str, profile: Profile) -> bytes:
    """Return the content of a file of the kind that a suffix names."""
    match kind:
        case ".html":
            from ..report.page import report_page  # loads matplotlib

            return report_page(profile)
        case ".json":
            return formats.report_json(build_report(profile, limit=None))
        case ".csv":
            return formats.report_csv(build_report(profile, limit=None))
        case ".parquet":
            return formats.samples_parquet(profile)
        case ".folded":
            return formats.folded(profile)
        case ".speedscope.json":
            return formats.speedscope(profile)
        case _:
            return pprof(profile)


def _profile(name: str, config: str | None) -> Profile:
    if name == STANDARD_INPUT:
        raise UserError("report reads a file, not standard input, because the exact counts are next to it")
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror}") from error
    return read_profile(name, data, None if config is None else midr(config))
