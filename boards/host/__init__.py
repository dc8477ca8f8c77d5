"""Host of a board: the driver at the other end of its UART, as the command `python -m boards.host` and as a library."""

from .driver import BoardDriver
from .link import Answer, Deframer, Link, LinkError, SerialPort, open_port

__all__ = ["Answer", "BoardDriver", "Deframer", "Link", "LinkError", "SerialPort", "open_port"]
