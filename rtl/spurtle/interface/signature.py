"""Signatures that compare by their members."""

from typing import Any

from amaranth.lib import wiring

__all__ = ["StructuralSignature"]


class StructuralSignature(wiring.Signature):
    """Signature that is equal to any other of its class with the same members.

    Amaranth compares instances of a signature subclass by identity. Two instances for one configuration have the same
    members and must be equal.
    """

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self.members == other.members

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.members!r})"
