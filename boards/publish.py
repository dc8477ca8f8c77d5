"""What the boards take, kept with the source: the table of docs/reference/boards.md."""

from collections.abc import Mapping
from pathlib import Path

from docs import markdown
from spurtle.config import CONFIGS
from spurtle.support.files import write_file

from .board import BOARDS, Board
from .build import Built
from .protocol import CHUNK_BYTES, OVERHEAD_BYTES
from .uart import BITS_PER_BYTE

__all__ = ["PAGE", "publish", "samples_per_second", "table"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "boards.md"

_HEADINGS = ("BOARD", "LUT4", "FF", "block RAM", "clock", "possible", "margin", "bytes a sample", "samples a second")


def samples_per_second(board: Board) -> int:
    """That the UART can carry, when it is never idle: full answers, in which each record has its greatest length."""
    record_bytes = CONFIGS[board.config].max_record_bytes
    return board.baud * CHUNK_BYTES // (BITS_PER_BYTE * (CHUNK_BYTES + OVERHEAD_BYTES) * record_bytes)


def table(builds: Mapping[str, Built]) -> str:
    """Return a table of `builds`, by the names of the boards."""
    return markdown.table(_HEADINGS, *(_row(BOARDS[name], built) for name, built in builds.items()))


def publish(builds: Mapping[str, Built]) -> None:
    """Puts `builds` in the place of what was published of the same boards. Raises UserError if it cannot be written."""
    write_file(PAGE, _with_figures(PAGE.read_text(), builds).encode())


def _with_figures(page: str, builds: Mapping[str, Built]) -> str:
    """Return the page with the rows of `builds` in its table, beside those of other boards."""
    known = {f"`{name}`": _row(BOARDS[name], built) for name, built in builds.items()}
    known = markdown.rows(page, "boards") | known
    return markdown.with_table(
        page, "boards", _HEADINGS, (known[f"`{name}`"] for name in BOARDS if f"`{name}`" in known)
    )


def _row(board: Board, built: Built) -> tuple[str, ...]:
    return (
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
