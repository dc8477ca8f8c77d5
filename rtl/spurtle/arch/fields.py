"""Bit fields of registers and packets."""

from dataclasses import dataclass

__all__ = ["BitField"]


@dataclass(frozen=True)
class BitField:
    """Field of a register or packet: `width` bits from bit `lsb` upward.

    Parameters
    ----------
    lsb, width : int
    """

    lsb: int
    width: int

    @property
    def mask(self) -> int:
        """Bits of the field within the register or packet."""
        return self.max_value << self.lsb

    @property
    def max_value(self) -> int:
        """Largest value of the field."""
        return (1 << self.width) - 1

    def of(self, value: int) -> int:
        """Return the value of the field in `value`, a value of the register or packet."""
        return (value >> self.lsb) & self.max_value
