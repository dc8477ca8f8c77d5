"""The board's driver, at the other end of its UART: `python -m boards.host`, and as a library."""

from .driver import Driver
from .link import Answer, Deframer, Link, LinkError, Port, open_port

__all__ = ["Answer", "Deframer", "Driver", "Link", "LinkError", "Port", "open_port"]
