"""Supported boards and their parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType
from typing import Any

from spurtle.support.errors import UserError

__all__ = ["BOARDS", "Board", "find"]


@dataclass(frozen=True, kw_only=True)
class Board:
    """A board of amaranth-boards with the parameters of its demonstration.

    Parameters
    ----------
    name : str
        Name on the command line of `python -m boards`.
    title : str
        Board and FPGA.
    number : int
        Number in the IDENTITY register, by which the host recognizes the board.
    platform : tuple of str
        Module and class of amaranth-boards.
    suffix : str
        Suffix of the bitstream file.
    vendor_tool : str or None
        Tool that builds the bitstream and is not on PyPI; None if PyPI has all tools.
    clock_hz : int
        Frequency of the oscillator.
    baud : int
        Baud rate of the UART. It divides `clock_hz`, and the USB bridge of the board supports it.
    uart_pins : tuple of str, or None
        Pins of the connector `io` for RX and TX, 3.3 V; None if the board has a UART.
    serial : str
        Serial port on a Linux host to which no other serial adapter is connected.
    loader : tuple of str
        Command that loads the bitstream; the path of the bitstream is appended.
    has_button : bool
        Whether the board has a button, which starts the program.
    config : str
        Configuration of the SPU, a name of `spurtle.config.CONFIGS`.
    half_bytes : int
        Size of each half of the Profiling Buffer.
    operations : int
        Number of operations of the excerpt in block RAM, a power of two; 0 selects the soft core.
    """

    name: str
    title: str
    number: int
    platform: tuple[str, str]
    suffix: str
    vendor_tool: str | None = None
    clock_hz: int
    baud: int = 1_000_000
    uart_pins: tuple[str, str] | None = None
    serial: str
    loader: tuple[str, ...]
    has_button: bool = True
    config: str = "neoverse_n1"
    half_bytes: int = 4096
    operations: int = 4096

    def make_platform(self) -> Any:
        """Create the Amaranth platform of the board, for one build.

        Raises
        ------
        UserError
            If amaranth-boards is not installed.
        """
        module, name = self.platform
        try:
            platform = getattr(import_module(f"amaranth_boards.{module}"), name)()
            if self.uart_pins is not None:
                platform.add_resources([_uart(*self.uart_pins)])
        except ModuleNotFoundError as error:
            raise UserError("amaranth-boards is not installed: run `pip install -e .[boards]`") from error
        return platform


def find(name: str) -> Board:
    """Return the board of that name.

    Raises
    ------
    UserError
        If no board has that name.
    """
    if name not in BOARDS:
        *others, last = BOARDS
        raise UserError(f"BOARD must be {', '.join(others)} or {last}, not {name!r}")
    return BOARDS[name]


def _uart(rx: str, tx: str) -> Any:
    build = import_module("amaranth.build")
    resources = import_module("amaranth_boards.resources")
    # The pull-up keeps the line idle while no adapter is connected.
    attributes = build.Attrs(IO_TYPE="LVCMOS33", PULLMODE="UP")
    return resources.UARTResource(0, rx=rx, tx=tx, conn=("io", 0), attrs=attributes)


_HX8K = Board(
    name="hx8k",
    title="Lattice iCE40-HX8K breakout board",
    number=1,
    platform=("ice40_hx8k_b_evn", "ICE40HX8KBEVNPlatform"),
    suffix=".bin",
    clock_hz=12_000_000,
    serial="/dev/ttyUSB1",
    loader=("openFPGALoader", "-b", "ice40_generic"),
    has_button=False,
    config="minimal",
    half_bytes=2048,
    operations=256,
)

_ULX3S = Board(
    name="ulx3s",
    title="ULX3S with an ECP5 85F",
    number=3,
    platform=("ulx3s", "ULX3S_85F_Platform"),
    suffix=".bit",
    clock_hz=25_000_000,
    serial="/dev/ttyUSB0",
    loader=("openFPGALoader", "-b", "ulx3s"),
)

BOARDS: Mapping[str, Board] = MappingProxyType(
    {
        board.name: board
        for board in (
            _HX8K,
            replace(
                _HX8K,
                name="icebreaker",
                title="iCEBreaker, iCE40 UP5K",
                number=2,
                platform=("icebreaker", "ICEBreakerPlatform"),
                has_button=True,
            ),
            _ULX3S,
            replace(
                _ULX3S,
                name="ulx3s_picorv32",
                title="ULX3S with an ECP5 85F, soft core PicoRV32",
                number=4,
                operations=0,
            ),
            Board(
                name="orangecrab",
                title="OrangeCrab r0.2 with an ECP5 85F",
                number=5,
                platform=("orangecrab_r0_2", "OrangeCrabR0_2_85FPlatform"),
                suffix=".bit",
                clock_hz=48_000_000,
                uart_pins=("0", "1"),
                serial="/dev/ttyUSB0",
                loader=("dfu-util", "-a", "0", "-D"),
            ),
            Board(
                name="arty_a7",
                title="Arty A7-35T, Artix-7",
                number=6,
                platform=("arty_a7", "ArtyA7_35Platform"),
                suffix=".bit",
                vendor_tool="Vivado",
                clock_hz=100_000_000,
                serial="/dev/ttyUSB1",
                loader=("openFPGALoader", "-b", "arty_a7_35t"),
            ),
        )
    }
)
