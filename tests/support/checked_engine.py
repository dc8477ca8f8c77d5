"""The compiled SPU with the reference that checks it."""

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import Register
from spurtle.config import SPUConfig
from spurtle_sim.cosim.engine import Engine
from spurtle_sim.model.buffer import Fault
from spurtle_sim.model.pe import PEState
from spurtle_sim.profile.scoreboard import Checker

__all__ = ["CheckedEngine"]


class CheckedEngine:
    """The compiled SPU and its checker, which receive the same register accesses and operations.

    Parameters
    ----------
    config : SPUConfig
    pe : PEState
        The state of the PE in which the program runs.

    Attributes
    ----------
    engine : Engine
        The compiled SPU. Its PE state is that of reset.
    checker : Checker
        The reference.
    """

    def __init__(self, config: SPUConfig, pe: PEState):
        self.config = config
        self.engine = Engine(config)
        self.checker = Checker(config, pe)

    def read(self, register: Register) -> int:
        """Read a register and check its value."""
        value = self.engine.read(register)
        self.checker.read(register, value)
        return value

    def write(self, register: Register, value: int) -> None:
        """Write a register."""
        self.engine.write(register, value)
        self.checker.write(register, value)

    def check_operations(
        self, passed: NDArray[np.void], *, settled: bool
    ) -> tuple[NDArray[np.void], NDArray[np.void], list[Fault | None]]:
        """Check the outcome of operations that the engine has played, and of those in flight from earlier calls.

        Parameters
        ----------
        passed : array of TIMED
            Operations that have passed since the last call.
        settled : bool
            Whether no sampled operation is in flight, and the SPU has drained or its buffer has stopped.

        Returns
        -------
        selections, finishes, answers
            The outcome as the engine reports it, see `Engine`.
        """
        selections, finishes, answers = self.engine.selections(), self.engine.finishes(), self.engine.answers()
        self.checker.passed(passed, selections, finishes, answers, settled=settled)
        return selections, finishes, answers
