"""`python -m boards BOARD`: build a bitstream, say what it takes and how to load it. Without BOARD: list the boards."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from spurtle_sim.errors import UserError

from .board import BOARDS, Board
from .build import BuildError, Built, build

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0: there is a bitstream, or a list; 1: a tool failed; 2: the arguments name what is not there."""
    parser = argparse.ArgumentParser(
        prog="python -m boards",
        description="A bitstream in which the SPU samples a loop and sends its records over a UART.",
    )
    parser.add_argument("board", nargs="?", metavar="BOARD", help=f"{', '.join(BOARDS)}; without it, what these are")
    parser.add_argument(
        "-o",
        dest="output",
        type=Path,
        default=Path("build/boards"),
        metavar="FOLDER",
        help="for the board's own folder (build/boards)",
    )
    options = parser.parse_args(arguments)
    try:
        if options.board is None:
            for board in BOARDS.values():
                print(f"{board.name:<12}{board.title}")
        else:
            _build(_board(options.board), options.output)
    except (UserError, BuildError) as error:
        print(f"boards: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 1
    return 0


def _board(name: str) -> Board:
    if name not in BOARDS:
        *others, last = BOARDS
        raise UserError(f"BOARD must be {', '.join(others)} or {last}, not {name!r}")
    return BOARDS[name]


def _build(board: Board, output: Path) -> None:
    print(f"{board.name}: {board.title}; the first run of each tool takes a minute more")
    built = build(board, output, lambda what: print(f"{board.name}: {what}", flush=True))
    for line in _summary(board, built):
        print(line)


def _summary(board: Board, built: Built) -> list[str]:
    share = (
        f"{built.cells:,} of {built.cells_available:,} logic cells ({100 * built.cells / built.cells_available:.0f} %)"
    )
    load = shlex.join([*board.loader, str(built.bitstream)])
    return [
        f"{board.name}: {built.lut4:,} LUT4, {built.ff:,} FF; {share}",
        f"{board.name}: {built.fmax_mhz:.1f} MHz possible, {built.clock_mhz:g} MHz needed",
        f"bitstream: {built.bitstream}",
        f"load:      {load}",
        f"records:   stty -F {board.serial} {board.baud} raw -echo && cat {board.serial} > records.bin",
        "then:      spurtle decode records.bin",
    ]


if __name__ == "__main__":
    sys.exit(main())
