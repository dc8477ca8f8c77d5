"""Output of `spurtle report`."""

import argparse
import sys
from pathlib import Path

from spurtle.support.errors import UserError
from spurtle.support.files import STANDARD_INPUT

from ..profile.outputs import midr
from ..report.reading import Profile, read_profile
from ..report.summary import build_report
from ..report.terminal import report_lines

__all__ = ["run_report"]


def run_report(options: argparse.Namespace) -> int:
    """Print a report. Return the exit status."""
    contents = build_report(_profile(options.file, options.config))
    for line in report_lines(contents, bold=sys.stdout.isatty()):
        print(line)
    return 0


def _profile(name: str, config: str | None) -> Profile:
    if name == STANDARD_INPUT:
        raise UserError("report reads a file, not standard input, because the exact counts are next to it")
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror}") from error
    return read_profile(name, data, None if config is None else midr(config))
