"""Classification of SVE instructions.

capstone decodes the operands. Predicate registers have no numbers in the timing model, so an instruction does not wait
for its predicate.

Ref: DDI0487 M.a, C4.1.54 (SVE encodings), D17.5.1 (types of operation), D17.6.6 (SVE operations).
"""

import re
from typing import Any

from ...trace.instruction import NZCV, SP, Instruction, InstructionKind
from ...trace.vectors import pack_vectors
from .encoding import bits, fact_bits
from .simd_fp import FLOATING_POINT, MERGING, REGISTER_OPERAND, disassembler, register_numbers, simd_kind

__all__ = ["classify_scalable"]

_MEMORY_OPERAND = 3  # CS_OP_MEM of capstone, which is imported later
_STORES = 0b111  # bits [31:29]. Bit [31] is set for all loads, stores and prefetches
_ACCESS = ("simd_fp", "vector")
_FUSED = ("fmad", "fmsb", "fnmad", "fnmsb", "fnmla", "fnmls")  # in addition to those of Advanced SIMD
_COUNTING = re.compile("[su]?q?(inc|dec)")
_SELECT, _SELECT_MASK = 0x0520C000, 0xFF20C000


def classify_scalable(word: int) -> Instruction | None:
    """Classify an SVE instruction. Return None if it is another one, or if capstone cannot decode it."""
    if bits(word, 28, 25) != 0b0010:
        return None
    decoded = next(disassembler().disasm(word.to_bytes(4, "little"), 0), None)
    if decoded is None:
        return None
    registers = [operand.reg for operand in decoded.operands if operand.type == REGISTER_OPERAND]
    return _access(word, decoded, registers) if bits(word, 31, 31) else _processing(word, decoded, registers)


def _access(word: int, decoded: Any, registers: list[int]) -> Instruction:
    """Classify a load, store or prefetch. The predicate decides which bytes it accesses."""
    memory = [operand.mem for operand in decoded.operands if operand.type == _MEMORY_OPERAND]
    numbers = register_numbers(registers)
    address = register_numbers([register for mem in memory for register in (mem.base, mem.index)])
    if not memory:  # capstone lists a vector of addresses as the last register
        numbers, address = numbers[:-1], numbers[-1:]
    if decoded.mnemonic.startswith("prf"):
        return Instruction(InstructionKind.INTEGER, sources=address)
    # LDR and STR access a complete register, of vectors or of predicates.
    predicated = decoded.mnemonic not in ("ldr", "str")
    gather_scatter = any(number > SP for number in address)
    vectors = pack_vectors(count=max(len(numbers), 1), predicated=predicated, gather_scatter=gather_scatter)
    if bits(word, 31, 29) == _STORES:
        facts = fact_bits("store", *_ACCESS)
        return Instruction(InstructionKind.STORE, facts, (*address, *numbers), irregular=True, vectors=vectors)
    facts = fact_bits("load", *_ACCESS)
    return Instruction(InstructionKind.LOAD, facts, address, numbers, irregular=True, vectors=vectors)


def _processing(word: int, decoded: Any, registers: list[int]) -> Instruction:
    """Classify an instruction that accesses no memory."""
    numbers = register_numbers(registers)
    names = map(disassembler().reg_name, registers)
    vectors = any(number > SP for number in numbers)
    predicates = any(name.startswith("p") for name in names)
    facts = ["vector"] if vectors or predicates else []
    if vectors and decoded.mnemonic.startswith(FLOATING_POINT):
        facts.append("floating_point")
    written = register_numbers(registers[:1])
    packed = pack_vectors(predicated=_is_predicated(word, decoded)) if facts else 0
    if not written:  # the result is a predicate: compares and WHILE set NZCV
        return Instruction(InstructionKind.INTEGER, fact_bits(*facts), numbers, (NZCV,), vectors=packed)
    # The destination is a source if elements are merged into it, or if it is incremented.
    merged = "/m" in decoded.op_str or MERGING.fullmatch(decoded.mnemonic) or _COUNTING.match(decoded.mnemonic)
    sources = numbers if merged else register_numbers(registers[1:])
    kind = simd_kind(decoded.mnemonic) if vectors else InstructionKind.INTEGER
    if decoded.mnemonic.startswith(_FUSED):
        kind = InstructionKind.FP_FUSED
    if vectors and any(number <= SP for number in numbers):
        kind = InstructionKind.TRANSFER
    return Instruction(kind, fact_bits(*facts), sources, written, vectors=packed)


def _is_predicated(word: int, decoded: Any) -> bool:
    """Return whether an instruction writes a vector with zeroing or merging predication.

    SEL does not, but has an alias with the syntax of merging.
    """
    select = word & _SELECT_MASK == _SELECT
    return not select and decoded.op_str.startswith("z") and ("/z" in decoded.op_str or "/m" in decoded.op_str)
