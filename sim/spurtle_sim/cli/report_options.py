"""Arguments of `spurtle report`."""

import argparse

from spurtle.config import CONFIGS

__all__ = ["SUFFIXES", "add_report_arguments"]

SUFFIXES = {
    ".html": "a page with pictures",
    ".json": "the JSON object",
    ".csv": "the table of lines",
    ".parquet": "all samples",
    ".folded": "stacks for flame graphs",
    ".speedscope.json": "speedscope",
    ".pb.gz": "pprof",
}
"""Ends of the names of output files, and what the files contain. The longest end of a name counts."""


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `spurtle report`."""
    parser.add_argument("file", metavar="FILE", help="perf.data file, or contents of a Profiling Buffer")
    parser.add_argument("other", metavar="FILE2", nargs="?", help="second profile, to compare with the first one")
    parser.add_argument(
        "--config", choices=CONFIGS, help="configuration that wrote the contents of a Profiling Buffer; only for them"
    )
    parser.add_argument(
        "--program",
        metavar="FILE",
        help="program that ran while the contents of a Profiling Buffer were written; only for them",
    )
    parser.add_argument(
        "--kallsyms", metavar="FILE", help="copy of /proc/kallsyms of the recorded machine, with names of the kernel"
    )
    outputs = parser.add_mutually_exclusive_group()
    outputs.add_argument("--json", action="store_true", help="print a JSON object, with all rows of the tables")
    outputs.add_argument("--csv", action="store_true", help="print the table of lines as comma-separated values")
    outputs.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write a file instead; its name ends in "
        + ", ".join(f"{suffix} ({use})" for suffix, use in SUFFIXES.items()),
    )
