"""Arguments of `spurtle report`."""

import argparse

from spurtle.config import CONFIGS

__all__ = ["add_report_arguments"]


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `spurtle report`."""
    parser.add_argument("file", metavar="FILE", help="perf.data file, or contents of a Profiling Buffer")
    parser.add_argument(
        "--config", choices=CONFIGS, help="configuration that wrote the contents of a Profiling Buffer; only for them"
    )
