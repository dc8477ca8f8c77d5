"""Fields, register numbers and conditions of instruction words, and bits of facts.

Ref: DDI0487 M.a, C4.1.
"""

from ...trace.instruction import FACT, Registers

__all__ = ["bits", "condition_holds", "fact_bits", "vregs", "xregs"]


def bits(word: int, high: int, low: int) -> int:
    """Return bits [`high`:`low`] of `word`."""
    return word >> low & (1 << high - low + 1) - 1


def fact_bits(*names: str) -> int:
    """Return the bits of the facts `names`."""
    return sum(FACT[name] for name in names)


def xregs(*numbers: int) -> Registers:
    """Return the numbers of general-purpose registers, without the zero register, 31."""
    return tuple(number for number in numbers if number != 31)


def vregs(first: int, count: int = 1) -> Registers:
    """Return the numbers of consecutive SIMD&FP registers. V0 follows V31."""
    return tuple(32 + (first + index) % 32 for index in range(count))


def condition_holds(condition: int, nzcv: int) -> bool:
    """Return whether `condition` (4 bits) holds for PSTATE.{N, Z, C, V} in bits [31:28] of `nzcv`."""
    n, z, c, v = (bool(nzcv >> bit & 1) for bit in (31, 30, 29, 28))
    result = (z, c, n, v, c and not z, n == v, n == v and not z, True)[condition >> 1]
    return result != (condition & 1 and condition != 0b1111)
