"""Top level of the classification: the encoding group of an instruction.

Ref: DDI0487 M.a, C4.1.
"""

from functools import cache

from ...trace.instruction import Instruction
from .branch_system import classify_branch_system
from .data_processing import classify_immediate, classify_register
from .encoding import bits
from .load_store import classify_load_store
from .scalable import classify_scalable
from .simd_fp import classify_simd_fp
from .tags_copies import classify_tags_copies

__all__ = ["UnsupportedInstructionError", "classify", "classify_every"]


class UnsupportedInstructionError(ValueError):
    """Instruction that Unicorn does not support, or unallocated.

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


@cache
def classify_every(word: int) -> Instruction | None:
    """Return the classification of an instruction that one of the front ends executes.

    In addition to those of `classify`, these are the instructions of SVE, of Allocation Tags, and of Memory Copy and
    Memory Set. The result is None for other ones, and for many unallocated ones.
    """
    try:
        return classify(word)
    except UnsupportedInstructionError:
        return classify_scalable(word) or classify_tags_copies(word)
