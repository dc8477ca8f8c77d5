"""Command `python -m boards.simulate BOARD`: simulates a complete board, whose UART is a pseudo-terminal."""

import argparse
import contextlib
import ctypes
import os
import sys
import threading
import tty
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from spurtle.export import verilog
from spurtle.support.errors import UserError
from spurtle.support.numerals import counted
from spurtle_sim.cosim.compiled import load_model
from spurtle_sim.native.header import constants

from .board import BOARDS, Board, find
from .demonstration import Demonstration
from .softcore import picorv32
from .top import LEDS

__all__ = ["WAIVERS", "Simulation", "main"]

_BATCH = 20_000
"""Cycles between two checks of whether to stop."""


WAIVERS = ("-Wno-UNOPTFLAT", "-Wno-PINMISSING", "-Wno-TIMESCALEMOD")
"""Verilator options that disable warnings.

UNOPTFLAT: one bit of a struct may depend on another bit, which Verilator reports as a combinational loop and evaluates
twice. PINMISSING and TIMESCALEMOD: the soft core has unconnected pins and a timescale.
"""


class Simulation:
    """Context manager that simulates a board in a thread, as fast as possible.

    Parameters
    ----------
    board : Board
    divisor : int or None
        Clock cycles of a bit on the line, as in `Demonstration`. A small value makes the simulation faster.

    Attributes
    ----------
    port : str
        Path of the pseudo-terminal, to be opened like the serial port of the board.

    Raises
    ------
    UserError
        If there is no C++ compiler.
    """

    def __init__(self, board: Board, divisor: int | None = None) -> None:
        self._library = _library(board, divisor)
        self._simulation = ctypes.c_void_p(self._library.simulation_new())
        self._master, slave = os.openpty()
        tty.setraw(slave)
        os.set_blocking(self._master, False)
        self._slave = slave  # stays open: the pseudo-terminal would close with its last user
        self.port = os.ttyname(slave)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Simulation":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        os.close(self._master)
        os.close(self._slave)
        self._library.simulation_delete(self._simulation)

    @property
    def cycles(self) -> int:
        """Number of simulated cycles."""
        return self._library.simulation_cycles(self._simulation)

    def press(self, level: int) -> None:
        """Set the level of the button."""
        self._library.simulation_button(self._simulation, level)

    def read_leds(self) -> set[str]:
        """Return the LEDs of `LEDS` that were lit for at least one cycle since the last call."""
        lit = self._library.simulation_read_leds(self._simulation)
        return {led for index, led in enumerate(LEDS) if lit >> index & 1}

    def _run(self) -> None:
        while not self._stop.is_set():
            # ctypes releases the interpreter's lock, so that the host can run in another thread.
            self._library.simulation_run(self._simulation, self._master, ctypes.c_uint64(_BATCH))


def _library(board: Board, divisor: int | None) -> Any:
    divisor = divisor or board.clock_hz // board.baud
    library = "" if board.operations else picorv32()
    design = verilog.generate(Demonstration(board, divisor), f"spurtle_{board.name}", library=library)
    driver = Path(__file__).with_name("simulate.cpp")
    options = ("--top-module", design.module, *WAIVERS)
    declarations = [constants("", "unsigned", {"DIVISOR": divisor})]
    simulator = load_model(design.module, design.text + library, driver, declarations, options)
    simulator.simulation_new.restype = ctypes.c_void_p
    simulator.simulation_cycles.restype = ctypes.c_uint64
    return simulator


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        Exit status: 0 after Ctrl-C, 2 if there is no such board or no C++ compiler, 130 after Ctrl-C before the
        simulation has started.
    """
    parser = argparse.ArgumentParser(
        prog="python -m boards.simulate", description="Simulate a board to which `python -m boards.host` can connect."
    )
    parser.add_argument("board", metavar="BOARD", help=", ".join(BOARDS))
    options = parser.parse_args(arguments)
    try:
        board = find(options.board)
        with Simulation(board) as simulation:
            print(f"{board.name} is at {simulation.port}; Ctrl-C ends it", flush=True)
            print(f"next: python -m boards.host {simulation.port}", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                threading.Event().wait()
            cycles = simulation.cycles
            print(f"\n{counted(cycles, 'cycle')}: {cycles / board.clock_hz:.2f} s of the board")
    except UserError as error:
        print(f"boards.simulate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
