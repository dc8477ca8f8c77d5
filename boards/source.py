"""Operation source of a board: the replay of an excerpt, or a soft core."""

from typing import Any

from spurtle.config import CONFIGS
from spurtle_sim.perf.process import PID, Process

from . import workload
from .board import Board
from .replay import Replay
from .riscv import load
from .softcore import SoftCore

__all__ = ["board_process", "operation_source"]


def board_process(board: Board) -> Process:
    """Return the process that perf.data names for the program of the board."""
    return workload.workload_process() if board.operations else load().process(PID)


def operation_source(board: Board) -> Any:
    """Return the component that provides the operations. It has the ports of `Replay`."""
    config = CONFIGS[board.config]
    if board.operations:
        return Replay(config, workload.excerpt(config, board.operations))
    return SoftCore(config, load())
