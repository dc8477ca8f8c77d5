"""What the boards take, kept with the source: the table of docs/boards.md."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from spurtle.config import CONFIGS
from spurtle_sim.files import write_whole

from .board import BOARDS, Board
from .build import Built
from .protocol import CHUNK_BYTES, OVERHEAD_BYTES
from .uart import BITS_PER_BYTE

__all__ = ["PAGE", "publish", "samples_per_second", "table", "with_table"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "boards.md"

_HEADINGS = ("BOARD", "LUT4", "FF", "block RAM", "clock", "possible", "margin", "bytes a sample", "samples a second")


def samples_per_second(board: Board) -> int:
    """That the UART can carry, when it is never idle: full answers, in which each record has its greatest length."""
    record_bytes = CONFIGS[board.config].max_record_bytes
    return board.baud * CHUNK_BYTES // (BITS_PER_BYTE * (CHUNK_BYTES + OVERHEAD_BYTES) * record_bytes)


def table(builds: Mapping[str, Built]) -> list[str]:
    """The rows of `builds`, by the boards' names; below their headings."""
    return [_line(_HEADINGS), "|---" * len(_HEADINGS) + "|", *(_row(BOARDS[name], builds[name]) for name in builds)]


def publish(builds: Mapping[str, Built]) -> None:
    """Puts `builds` in the place of what was published of the same boards. Raises UserError if it cannot be written."""
    write_whole(PAGE, with_table(PAGE.read_text(), builds).encode())


def with_table(page: str, builds: Mapping[str, Built]) -> str:
    """The page with the rows of `builds` between its marks, beside those of other boards."""
    published = re.search(r"<!-- boards -->\n(.*?)<!-- end -->", page, flags=re.DOTALL)
    if published is None:
        raise ValueError(f"{PAGE.name} must have a line `<!-- boards -->`, and `<!-- end -->` below it")
    heading, rule, *rows = table(builds)
    known = dict(re.findall(r"^(\| `(\w+)` .*)$", published[1], re.MULTILINE))
    known = {name: row for row, name in known.items()} | dict(zip(builds, rows, strict=True))
    lines = [heading, rule, *(known[name] for name in BOARDS if name in known)]
    return page[: published.start(1)] + "".join(f"{line}\n" for line in lines) + page[published.end(1) :]


def _row(board: Board, built: Built) -> str:
    return _line(
        (
            f"`{board.name}`",
            f"{built.lut4:,}",
            f"{built.ff:,}",
            f"{built.block_rams} of {built.block_rams_available}",
            f"{built.clock_mhz:.0f} MHz",
            f"{built.fmax_mhz:.0f} MHz",
            f"{built.fmax_mhz / built.clock_mhz - 1:.0%}",
            f"{CONFIGS[board.config].max_record_bytes}",
            f"{samples_per_second(board):,}",
        )
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
