"""The group of an instruction word, and the module that classifies its instructions."""

# Ref: DDI0487 M.a, C4.1.

from functools import cache

from ...trace.instruction import Instruction
from .branch_system import branch_system
from .data_processing import immediate, register
from .encoding import bits
from .load_store import load_store
from .simd_fp import simd_fp

__all__ = ["UnsupportedError", "classify"]


class UnsupportedError(ValueError):
    """Not an instruction that the models know: SVE, SME, memory tags, memory copy, Guarded control stack, 64-byte and
    floating-point atomics, or unallocated.
    """


@cache
def classify(word: int) -> Instruction:
    """The instruction that the 32-bit `word` encodes.

    Raises
    ------
    UnsupportedError
        If the models do not know it.
    """
    group = bits(word, 28, 25)
    if group & 0b0101 == 0b0100:
        found = load_store(word)
    elif group & 0b0111 == 0b0101:
        found = register(word)
    elif group & 0b0111 == 0b0111:
        found = simd_fp(word)
    elif group >> 1 == 0b100:
        found = immediate(word)
    elif group >> 1 == 0b101:
        found = branch_system(word)
    else:
        found = None
    if found is None:
        raise UnsupportedError(f"0x{word:08x}")
    return found
