"""Published figures of the bitstreams: the table in docs/reference/boards.md."""

from collections.abc import Mapping
from pathlib import Path

from docs import markdown
from spurtle.config import CONFIGS
from spurtle.support.files import write_file

from .board import BOARDS, Board
from .build import BuildResult
from .protocol import CHUNK_BYTES, OVERHEAD_BYTES
from .uart import BITS_PER_BYTE

__all__ = ["PAGE", "publish", "samples_per_second", "table"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "boards.md"

_HEADINGS = ("BOARD", "LUT4", "FF", "block RAM", "clock", "possible", "margin", "bytes a sample", "samples a second")


def samples_per_second(board: Board) -> int:
    """Return the samples that a UART transfers in a second if it is never idle.

    All answers are full, and each record has its maximum size.
    """
    record_bytes = CONFIGS[board.config].max_record_bytes
    return board.baud * CHUNK_BYTES // (BITS_PER_BYTE * (CHUNK_BYTES + OVERHEAD_BYTES) * record_bytes)


def table(builds: Mapping[str, BuildResult]) -> str:
    """Return the Markdown table of `builds`, a mapping from the name of a board to its figures."""
    return markdown.table(_HEADINGS, *(_row(BOARDS[name], built) for name, built in builds.items()))


def publish(builds: Mapping[str, BuildResult]) -> None:
    """Replace the published figures of the boards in `builds`.

    Raises
    ------
    UserError
        If the page cannot be written.
    """
    write_file(PAGE, _with_figures(PAGE.read_text(), builds).encode())


def _with_figures(page: str, builds: Mapping[str, BuildResult]) -> str:
    """Return the page with the rows of `builds` in its table. The rows of other boards are not changed."""
    rows = {f"`{name}`": _row(BOARDS[name], built) for name, built in builds.items()}
    rows = markdown.rows(page, "boards") | rows
    return markdown.with_table(page, "boards", _HEADINGS, (rows[f"`{name}`"] for name in BOARDS if f"`{name}`" in rows))


def _row(board: Board, built: BuildResult) -> tuple[str, ...]:
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
