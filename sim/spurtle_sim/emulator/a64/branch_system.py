"""Classification of branches, exception generation, barriers, hints and System instructions.

Ref: DDI0487 M.a, C4.1 (encodings), D17.6.5 (conditional), D18.2.7 (call).
"""

from ...trace.instruction import FACT, NZCV, Instruction, InstructionKind
from .encoding import bits, fact_bits, xregs

__all__ = ["classify_branch_system"]

_ZVA_BYTES = 64
"""Number of bytes that DC ZVA zeroes, as DCZID_EL0 of the emulated PE reports it."""


def classify_branch_system(word: int) -> Instruction | None:
    """Classify an instruction of this group. Return None if it is unallocated or not supported."""
    top, link, rn, rt = word >> 24, bool(word >> 31), bits(word, 9, 5), word & 31
    if top & 0x7C == 0x14:  # B, BL
        if link:
            return Instruction(InstructionKind.CALL, fact_bits("branch", "link"), destinations=(30,))
        return Instruction(InstructionKind.BRANCH, FACT["branch"])
    if top & 0x7C == 0x34:  # CBZ, CBNZ, TBZ, TBNZ
        return Instruction(InstructionKind.BRANCH, fact_bits("branch", "conditional"), xregs(rt))
    if top == 0x54:  # B.cond, BC.cond
        return Instruction(InstructionKind.BRANCH, fact_bits("branch", "conditional"), (NZCV,))
    if top == 0xD4:  # exception generation
        return Instruction(InstructionKind.SYNCHRONIZE, FACT["exception"])
    if top & 0xFE == 0xD6:  # BR, BLR, RET, and their forms with pointer authentication
        opc, facts = bits(word, 22, 21), fact_bits("branch", "indirect")
        if bits(word, 23, 23):
            return None  # ERET and DRPS are UNDEFINED at EL0
        if opc == 0b00:
            return Instruction(InstructionKind.BRANCH, facts, xregs(rn))
        if opc == 0b01:
            return Instruction(InstructionKind.CALL, facts | FACT["link"], xregs(rn), (30,))
        if opc == 0b10:  # RETAA has no register field: it uses X30
            return Instruction(InstructionKind.RETURN, facts | FACT["procedure_return"], xregs(rn) or (30,))
        return None
    if word >> 22 != 0x354:
        return None  # not a System instruction
    if word & 0xFFD8FF00 == 0xD5087700 or word & 0xFFFFFFE0 in (0xD50B7460, 0xD50B7480):
        return None  # Guarded control stack; DC GVA, DC GZVA
    if word & 0xFFFFF01F == 0xD503301F:  # barriers, CLREX
        kind = {4: InstructionKind.MEMORY_BARRIER, 5: InstructionKind.MEMORY_BARRIER, 6: InstructionKind.SYNCHRONIZE}
        return Instruction(kind.get(bits(word, 7, 5), InstructionKind.INTEGER))
    if word & 0xFFFFFFE0 == 0xD50B7420:  # DC ZVA
        return Instruction(
            InstructionKind.STORE, fact_bits("store", "unspecified"), xregs(rt), traffic=_ZVA_BYTES, irregular=True
        )
    if word & 0xFFFFF01F == 0xD503201F:  # hints
        return Instruction(InstructionKind.INTEGER)
    # The general-purpose register is the destination of MRS and SYSL (bit 21 is set), and a source of MSR and SYS.
    return Instruction(
        InstructionKind.SYSTEM, 0, () if bits(word, 21, 21) else xregs(rt), xregs(rt) if bits(word, 21, 21) else ()
    )
