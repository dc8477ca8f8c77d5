"""Bit fields of registers and packets."""

from dataclasses import dataclass

__all__ = ["BitField"]


@dataclass(frozen=True)
class BitField:
    """A field of a register or packet: `width` bits from bit `lsb` upward.

    Parameters
    ----------
    lsb, width : int
    """

    lsb: int
    width: int

    @property
    def mask(self) -> int:
        """Bits of the field, in place."""
        return self.max_value << self.lsb

    @property
    def max_value(self) -> int:
        """The largest value."""
        return (1 << self.width) - 1

    def of(self, value: int) -> int:
        """Return the value of the field in `value`, the value of the whole."""
        return (value >> self.lsb) & self.max_value
