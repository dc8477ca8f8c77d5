"""Top level of the classification: the encoding group of an instruction.

Ref: DDI0487 M.a, C4.1.
"""

from functools import cache

from ...trace.instruction import Instruction
from .branch_system import classify_branch_system
from .data_processing import classify_immediate, classify_register
from .encoding import bits
from .load_store import classify_load_store
from .simd_fp import classify_simd_fp

__all__ = ["UnsupportedInstructionError", "classify"]


class UnsupportedInstructionError(ValueError):
    """Instruction that is not supported, or unallocated.

    SVE, SME, Allocation Tags, Memory Copy and Memory Set, Guarded control stack, 64-byte loads and stores, and
    floating-point atomic operations are not supported.
    """


@cache
def classify(word: int) -> Instruction:
    """Return the classification of the 32-bit instruction `word`.

    Raises
    ------
    UnsupportedInstructionError
        If the instruction is unallocated or not supported.
    """
    group = bits(word, 28, 25)
    if group & 0b0101 == 0b0100:
        instruction = classify_load_store(word)
    elif group & 0b0111 == 0b0101:
        instruction = classify_register(word)
    elif group & 0b0111 == 0b0111:
        instruction = classify_simd_fp(word)
    elif group >> 1 == 0b100:
        instruction = classify_immediate(word)
    elif group >> 1 == 0b101:
        instruction = classify_branch_system(word)
    else:
        instruction = None
    if instruction is None:
        raise UnsupportedInstructionError(f"0x{word:08x}")
    return instruction
