"""Command `python -m boards BOARD...`: builds bitstreams, and prints their area, their clock and how to load them.

Without BOARD it lists the boards.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from spurtle.support.errors import UserError
from spurtle.support.files import check_folder

from .board import BOARDS, Board, find
from .build import BuildError, BuildResult, bitstream_path, build, write_plan
from .publish import publish, table

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        Exit status: 0 after success, 1 if a tool failed, 2 if an argument is invalid, a tool or package is not
        installed, or the output cannot be written.
    """
    parser = argparse.ArgumentParser(
        prog="python -m boards",
        description="Build bitstreams in which an SPU samples a program and a host reads the records over the UART.",
    )
    parser.add_argument(
        "boards", nargs="*", metavar="BOARD", help=f"{', '.join(BOARDS)}, or all; default: list the boards"
    )
    parser.add_argument(
        "-o",
        dest="output",
        default="build/boards",
        metavar="FOLDER",
        help="folder that contains one folder for each board; default: build/boards",
    )
    parser.add_argument("--publish", action="store_true", help="write the figures into docs/reference/boards.md")
    options = parser.parse_args(arguments)
    try:
        chosen = [*BOARDS.values()] if options.boards == ["all"] else [find(name) for name in options.boards]
        if not chosen:
            for board in BOARDS.values():
                print(f"{board.name:<16}{board.title}")
        check_folder(options.output)
        output = Path(options.output)
        builds = {board.name: built for board in chosen if (built := _build(board, output))}
        if len(builds) > 1:
            print(table(builds))
        if options.publish:
            publish(builds)
    except (UserError, BuildError) as error:
        print(f"boards: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    return 0


def _build(board: Board, output: Path) -> BuildResult | None:
    """Build the bitstream and return its figures, or write the input of the vendor's tool and return None."""
    print(f"{board.name}: {board.title}; the first run of each tool takes a minute longer", flush=True)
    if board.vendor_tool is not None:
        script = write_plan(board, output)
        built = None
        print(f"{board.name}: {board.vendor_tool} is not on PyPI; where it is installed, run:")
        print(f"build:     cd {shlex.quote(str(script.parent))} && sh {script.name}")
    else:
        built = build(board, output, lambda step: print(f"{board.name}: {step}", flush=True))
        for line in _summary(board, built):
            print(line)
    print(f"load:      {shlex.join([*board.loader, str(bitstream_path(board, output))])}")
    print(f"then:      python -m boards.host {board.serial}", flush=True)
    return built


def _summary(board: Board, built: BuildResult) -> list[str]:
    share = (
        f"{built.cells:,} of {built.cells_available:,} logic cells ({100 * built.cells / built.cells_available:.0f} %)"
    )
    return [
        f"{board.name}: {built.lut4:,} LUT4, {built.ff:,} FF; {share}",
        f"{board.name}: {built.block_rams} of {built.block_rams_available} block RAMs",
        f"{board.name}: {built.fmax_mhz:.1f} MHz possible, {built.clock_mhz:g} MHz needed",
        f"bitstream: {built.bitstream}",
    ]


if __name__ == "__main__":
    sys.exit(main())
