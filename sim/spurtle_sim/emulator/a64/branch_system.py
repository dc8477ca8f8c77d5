"""Classification of branches, exception generation, barriers, hints and System instructions.

Ref: DDI0487 M.a, C4.1 (encodings), D17.6.5 (conditional), D18.2.7 (call).
"""

from ...trace.instruction import FACT, NZCV, Instruction, InstructionKind
from .encoding import bits, fact_bits, general

__all__ = ["branch_system"]

_ZVA_BYTES = 64
"""Number of bytes that DC ZVA zeroes, as DCZID_EL0 of the emulated PE reports it."""


def branch_system(word: int) -> Instruction | None:
    """Classify an instruction of this group. Return None if it is unallocated or not supported."""
    top, link, rn, rt = word >> 24, bool(word >> 31), bits(word, 9, 5), word & 31
    if top & 0x7C == 0x14:  # B, BL
        if link:
            return Instruction(InstructionKind.CALL, fact_bits("branch", "link"), destinations=(30,))
        return Instruction(InstructionKind.BRANCH, FACT["branch"])
    if top & 0x7C == 0x34:  # CBZ, CBNZ, TBZ, TBNZ
        return Instruction(InstructionKind.BRANCH, fact_bits("branch", "conditional"), general(rt))
    if top == 0x54:
        return Instruction(InstructionKind.BRANCH, fact_bits("branch", "conditional"), (NZCV,))
    if top == 0xD4:
        return Instruction(InstructionKind.SYNCHRONIZE, FACT["exception"])
    if top & 0xFE == 0xD6:
        opc, facts = bits(word, 22, 21), fact_bits("branch", "indirect")
        if bits(word, 23, 23):
            return None  # ERET and DRPS are UNDEFINED at EL0
        if opc == 0b00:
            return Instruction(InstructionKind.BRANCH, facts, general(rn))
        if opc == 0b01:
            return Instruction(InstructionKind.CALL, facts | FACT["link"], general(rn), (30,))
        if opc == 0b10:  # RETAA has no register field: it uses X30
            return Instruction(InstructionKind.RETURN, facts | FACT["procedure_return"], general(rn) or (30,))
        return None
    if word >> 22 != 0x354:
        return None
    if word & 0xFFD8FF00 == 0xD5087700 or word & 0xFFFFFFE0 in (0xD50B7460, 0xD50B7480):
        return None  # Guarded control stack; DC GVA, DC GZVA
    if word & 0xFFFFF01F == 0xD503301F:
        kind = {4: InstructionKind.MEMORY_BARRIER, 5: InstructionKind.MEMORY_BARRIER, 6: InstructionKind.SYNCHRONIZE}
        return Instruction(kind.get(bits(word, 7, 5), InstructionKind.INTEGER))
    if word & 0xFFFFFFE0 == 0xD50B7420:
        return Instruction(
            InstructionKind.STORE, fact_bits("store", "unspecified"), general(rt), traffic=_ZVA_BYTES, irregular=True
        )
    if word & 0xFFFFF01F == 0xD503201F:  # hints
        return Instruction(InstructionKind.INTEGER)
    return Instruction(
        InstructionKind.SYSTEM, 0, () if bits(word, 21, 21) else general(rt), general(rt) if bits(word, 21, 21) else ()
    )
