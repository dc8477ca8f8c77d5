"""The boards, and what is particular to each."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any

from spurtle_sim.errors import UserError

__all__ = ["BOARDS", "Board"]


@dataclass(frozen=True, kw_only=True)
class Board:
    """A board of amaranth-boards, with a UART and LEDs.

    Parameters
    ----------
    name : str
        As given to `python -m boards`.
    title : str
        Board and FPGA.
    platform : tuple of str
        Module of amaranth-boards, and class.
    suffix : str
        Of the bitstream's file.
    baud : int
        Of the UART; the board's USB bridge can do it, and it divides the clock.
    serial : str
        The UART on a Linux host with nothing else plugged in.
    loader : tuple of str
        The command that loads the bitstream, to which its file is added.
    """

    name: str
    title: str
    platform: tuple[str, str]
    suffix: str
    baud: int = 1_000_000
    serial: str
    loader: tuple[str, ...]

    def make_platform(self) -> Any:
        """A fresh platform: it can be used for one build. Raises UserError if amaranth-boards is not installed."""
        module, name = self.platform
        try:
            return getattr(import_module(f"amaranth_boards.{module}"), name)()
        except ModuleNotFoundError as error:
            raise UserError("amaranth-boards is not installed: `pip install -e .[boards]` brings it") from error


BOARDS: Mapping[str, Board] = MappingProxyType(
    {
        board.name: board
        for board in (
            Board(
                name="hx8k",
                title="Lattice iCE40-HX8K breakout board",
                platform=("ice40_hx8k_b_evn", "ICE40HX8KBEVNPlatform"),
                suffix=".bin",
                serial="/dev/ttyUSB1",
                loader=("openFPGALoader", "-b", "ice40_generic"),
            ),
            Board(
                name="icebreaker",
                title="iCEBreaker, iCE40 UP5K",
                platform=("icebreaker", "ICEBreakerPlatform"),
                suffix=".bin",
                serial="/dev/ttyUSB1",
                loader=("openFPGALoader", "-b", "ice40_generic"),
            ),
            Board(
                name="ulx3s",
                title="ULX3S with an ECP5 85F",
                platform=("ulx3s", "ULX3S_85F_Platform"),
                suffix=".bit",
                serial="/dev/ttyUSB0",
                loader=("openFPGALoader", "-b", "ulx3s"),
            ),
        )
    }
)
