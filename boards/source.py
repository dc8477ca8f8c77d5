"""Where the operations of a board come from: an excerpt of a workload, or a soft core."""

from typing import Any

from spurtle.config import CONFIGS
from spurtle_sim.perf.process import PID, Process

from . import workload
from .board import Board
from .replay import Replay
from .riscv import load
from .softcore import SoftCore

__all__ = ["process", "source"]


def process(board: Board) -> Process:
    """Of the board's program, what perf.data says."""
    return workload.process() if board.operations else load().process(PID)


def source(board: Board) -> Any:
    """The component. Its ports are those of `Replay`."""
    config = CONFIGS[board.config]
    if board.operations:
        return Replay(config, workload.excerpt(config, board.operations))
    return SoftCore(config, load())
