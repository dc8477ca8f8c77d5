"""Classification of integer data-processing instructions.

Ref: DDI0487 M.a, C4.1 (encodings), D17.6.5 (conditional).
"""

from ...trace.instruction import FACT, NZCV, Instruction, InstructionKind
from .encoding import bits, xregs

__all__ = ["classify_immediate", "classify_register"]


def classify_immediate(word: int) -> Instruction | None:
    """Classify a data-processing instruction with an immediate. Return None if it is unallocated or not supported."""
    opcode, opc, rn, rd = bits(word, 25, 23), bits(word, 30, 29), bits(word, 9, 5), word & 31
    if opcode <= 0b001:  # ADR, ADRP
        return Instruction(InstructionKind.INTEGER, 0, (), xregs(rd))
    if opcode in (0b010, 0b100):  # add and subtract, logical: register 31 is SP unless the flags are set
        flags = opc & 1 if opcode == 0b010 else opc == 3
        sources = (rn,) if opcode == 0b010 else xregs(rn)
        return Instruction(InstructionKind.INTEGER, 0, sources, (*xregs(rd), NZCV) if flags else (rd,))
    if opcode == 0b011 and opc == 0 and bits(word, 22, 20) == 0b100:  # SMAX, UMAX, SMIN, UMIN (FEAT_CSSC)
        return Instruction(InstructionKind.INTEGER, 0, xregs(rn), xregs(rd))
    if opcode == 0b101:  # MOVN, MOVZ, MOVK
        return Instruction(InstructionKind.INTEGER, 0, xregs(rd) if opc == 3 else (), xregs(rd))
    if opcode == 0b110:  # SBFM, BFM, UBFM
        return Instruction(InstructionKind.INTEGER, 0, xregs(rn, rd) if opc == 1 else xregs(rn), xregs(rd))
    if opcode == 0b111:  # EXTR
        return Instruction(InstructionKind.INTEGER, 0, xregs(rn, bits(word, 20, 16)), xregs(rd))
    return None


def classify_register(word: int) -> Instruction | None:
    """Classify a data-processing instruction on registers. Return None if it is unallocated or not supported."""
    rm, ra, rn, rd, opc = bits(word, 20, 16), bits(word, 14, 10), bits(word, 9, 5), word & 31, bits(word, 30, 29)
    if not bits(word, 28, 28):  # logical, add and subtract
        arithmetic, extended = bits(word, 24, 24), bits(word, 24, 24) and bits(word, 21, 21)
        flags = opc & 1 if arithmetic else opc == 3
        kind = InstructionKind.SHIFTED if extended or bits(word, 15, 10) else InstructionKind.INTEGER
        sources = (rn, *xregs(rm)) if extended else xregs(rn, rm)
        written = (rd,) if extended and not flags else xregs(rd)
        return Instruction(kind, 0, sources, (*written, NZCV) if flags else written)
    if bits(word, 24, 24):  # three sources
        return Instruction(InstructionKind.MULTIPLY, 0, xregs(rn, rm, ra), xregs(rd))
    opcode, flags, condition = bits(word, 23, 21), bits(word, 29, 29), bits(word, 15, 12)
    if opcode == 0b000 and bits(word, 14, 10):  # RMIF, SETF
        return Instruction(InstructionKind.INTEGER, 0, (*xregs(rn), NZCV), (NZCV,))
    if opcode == 0b000:  # ADC, SBC
        return Instruction(
            InstructionKind.INTEGER, 0, (*xregs(rn, rm), NZCV), (*xregs(rd), NZCV) if flags else xregs(rd)
        )
    if opcode == 0b010:  # conditional compare
        sources = (*(xregs(rn) if bits(word, 11, 11) else xregs(rn, rm)), NZCV)
        return Instruction(InstructionKind.INTEGER, FACT["conditional"], sources, (NZCV,), condition=condition)
    if opcode == 0b100:  # conditional select
        return Instruction(
            InstructionKind.INTEGER, FACT["conditional"], (*xregs(rn, rm), NZCV), xregs(rd), condition=condition
        )
    if opcode == 0b110:  # one source (bit 30 is set), two sources
        divide = opc & 2 == 0 and bits(word, 15, 11) == 1
        kind = InstructionKind.DIVIDE if divide else InstructionKind.INTEGER
        written = (*xregs(rd), NZCV) if flags else xregs(rd)  # SUBPS
        return Instruction(kind, 0, xregs(rn) if opc & 2 else xregs(rn, rm), written)
    return None
