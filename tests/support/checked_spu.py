"""The compiled SPU with the reference that checks it."""

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import Register
from spurtle.config import SPUConfig
from spurtle_sim.cosim.spu import CompiledSPU
from spurtle_sim.model.buffer import Fault
from spurtle_sim.model.pe import PEState
from spurtle_sim.profile.scoreboard import Checker

__all__ = ["CheckedSPU"]


class CheckedSPU:
    """The compiled SPU and its checker, which receive the same register accesses and operations.

    Parameters
    ----------
    config : SPUConfig
    pe : PEState
        The state of the PE in which the program runs.

    Attributes
    ----------
    spu : CompiledSPU
        The compiled SPU. Its PE state is that of reset.
    checker : Checker
        The reference.
    """

    def __init__(self, config: SPUConfig, pe: PEState):
        self.config = config
        self.spu = CompiledSPU(config)
        self.checker = Checker(config, pe)

    def read(self, register: Register) -> int:
        """Read a register and check its value."""
        value = self.spu.read(register)
        self.checker.read(register, value)
        return value

    def write(self, register: Register, value: int) -> None:
        """Write a register."""
        self.spu.write(register, value)
        self.checker.write(register, value)

    def check_operations(
        self, passed: NDArray[np.void], *, settled: bool
    ) -> tuple[NDArray[np.void], NDArray[np.void], list[Fault | None]]:
        """Check the outcome of operations that the SPU has executed, and of those in flight from earlier calls.

        Parameters
        ----------
        passed : array of TIMED_OPERATION
            Operations that have passed since the last call.
        settled : bool
            Whether no sampled operation is in flight, and the SPU has drained or its buffer has stopped.

        Returns
        -------
        selections, finishes, responses
            The outcome as the SPU reports it, see `CompiledSPU`.
        """
        selections, finishes, responses = self.spu.selections(), self.spu.finishes(), self.spu.responses()
        self.checker.check_operations(passed, selections, finishes, responses, settled=settled)
        return selections, finishes, responses
