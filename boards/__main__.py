"""`python -m boards BOARD...`: build bitstreams, say what they take and how to load them. Without BOARD: a list."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from spurtle.support.errors import UserError

from .board import BOARDS, Board, find
from .build import BuildError, Built, bitstream_of, build, write_plan
from .publish import publish, table

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0: there are bitstreams, or a list; 1: a tool failed; 2: the arguments name what is not there."""
    parser = argparse.ArgumentParser(
        prog="python -m boards",
        description="Bitstreams in which the SPU samples a program for a host at the UART.",
    )
    parser.add_argument(
        "boards", nargs="*", metavar="BOARD", help=f"{', '.join(BOARDS)}, or all; without it, what these are"
    )
    parser.add_argument(
        "-o",
        dest="output",
        type=Path,
        default=Path("build/boards"),
        metavar="FOLDER",
        help="for each board's own folder (build/boards)",
    )
    parser.add_argument("--publish", action="store_true", help="keep the figures in docs/reference/boards.md as well")
    options = parser.parse_args(arguments)
    try:
        chosen = [*BOARDS.values()] if options.boards == ["all"] else [find(name) for name in options.boards]
        if not chosen:
            for board in BOARDS.values():
                print(f"{board.name:<16}{board.title}")
        builds = {board.name: built for board in chosen if (built := _build(board, options.output))}
        if len(builds) > 1:
            print(table(builds))
        if options.publish:
            publish(builds)
    except (UserError, BuildError) as error:
        print(f"boards: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    return 0


def _build(board: Board, output: Path) -> Built | None:
    """What nextpnr says; nothing of a board whose tool is not ours to run."""
    print(f"{board.name}: {board.title}; the first run of each tool takes a minute more", flush=True)
    if board.vendor_tool is not None:
        script = write_plan(board, output)
        built = None
        print(f"{board.name}: PyPI has no {board.vendor_tool}; where it is installed:")
        print(f"build:     cd {shlex.quote(str(script.parent))} && sh {script.name}")
    else:
        built = build(board, output, lambda what: print(f"{board.name}: {what}", flush=True))
        for line in _summary(board, built):
            print(line)
    print(f"load:      {shlex.join([*board.loader, str(bitstream_of(board, output))])}")
    print(f"then:      python -m boards.host {board.serial}", flush=True)
    return built


def _summary(board: Board, built: Built) -> list[str]:
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
