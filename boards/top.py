"""Top level of a bitstream: the demonstration with the pins of a board."""

from amaranth import *
from amaranth.lib import io
from amaranth.lib.cdc import FFSynchronizer

from spurtle.support.arguments import check_type

from .board import Board
from .demonstration import Demonstration

__all__ = ["LEDS", "Top"]

LEDS = ("running", "full", "sending", "collision")
"""Members of `Demonstration` that the LEDs show, in the order of the LEDs."""


class Top(Elaboratable):
    """Demonstration with pins: UART, button, and as many of `LEDS` as the board has.

    Parameters
    ----------
    board : Board
    """

    def __init__(self, board: Board):
        check_type("board", board, Board)
        self._board = board

    @property
    def board(self) -> Board:
        """Board for which the bitstream is built."""
        return self._board

    def elaborate(self, platform):
        m = Module()

        m.submodules.demonstration = demonstration = Demonstration(self._board)
        uart = platform.request("uart", dir="-")
        outputs = {"tx": (uart.tx, demonstration.tx)}
        for name, port in zip(LEDS, self._led_ports(platform), strict=False):
            outputs[f"led_{name}"] = port, getattr(demonstration, name)
        for name, (port, signal) in outputs.items():
            m.submodules[name] = buffer = io.Buffer("o", port)
            m.d.comb += buffer.o.eq(signal)

        inputs = {"rx": (uart.rx, demonstration.rx)}
        if self._board.has_button:
            inputs["button"] = platform.request("button", 0, dir="-"), demonstration.button
        for name, (port, signal) in inputs.items():
            m.submodules[name] = buffer = io.Buffer("i", port)
            # Both inputs are asynchronous. The synchronizers reset to the idle levels of the demonstration.
            m.submodules[f"{name}_synchronizer"] = FFSynchronizer(buffer.i, signal, init=signal.init)

        return m

    @staticmethod
    def _led_ports(platform):
        single = [("led", number) for number in range(len(LEDS)) if ("led", number) in platform.resources]
        if single:
            return [platform.request(*led, dir="-") for led in single]
        rgb = platform.request("rgb_led", 0, dir="-")
        return [rgb.r, rgb.g, rgb.b]
