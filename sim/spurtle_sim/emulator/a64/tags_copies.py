"""Classification of instructions on Allocation Tags (FEAT_MTE2), and of Memory Copy and Memory Set (FEAT_MOPS).

Ref: DDI0487 M.a, C4.1 (encodings), D17.6.4 (allocation tags, copies).
"""

from ...trace.instruction import FACT, Instruction, InstructionKind
from .encoding import bits, fact_bits, xregs

__all__ = ["classify_tags_copies"]

_TAG_BYTES = 16
"""Bytes of memory with one Allocation Tag."""
_BLOCK_BYTES = 64
"""Bytes whose tags DC GVA and DC GZVA set, as DCZID_EL0 of the emulated PE reports them."""


def classify_tags_copies(word: int) -> Instruction | None:
    """Classify an instruction of these features. Return None if it is another one, or UNDEFINED at EL0."""
    rm, rn, rd = bits(word, 20, 16), bits(word, 9, 5), word & 31
    if word & 0xBFC0C000 == 0x91800000:  # ADDG, SUBG
        return Instruction(InstructionKind.INTEGER, 0, (rn,), (rd,))
    if word & 0xFF200000 == 0xD9200000:
        return _classify_tag(word)
    if word & 0xFE400000 == 0x68000000 and bits(word, 24, 23):  # STGP
        base = (rn,) if bits(word, 23, 23) else ()
        registers = (rn, *xregs(rd, bits(word, 14, 10)))
        return Instruction(InstructionKind.STORE, FACT["store"], registers, (), base, _TAG_BYTES)
    if word & 0xFFFFFFE0 == 0xD50B7460:  # DC GVA
        facts = fact_bits("store", "allocation_tag")
        return Instruction(InstructionKind.STORE, facts, xregs(rd), irregular=True)
    if word & 0xFFFFFFE0 == 0xD50B7480:  # DC GZVA
        facts = fact_bits("store", "unspecified")
        return Instruction(InstructionKind.STORE, facts, xregs(rd), traffic=_BLOCK_BYTES, irregular=True)
    if word & 0xFB200C00 == 0x19000400:  # CPYP and similar; SETP and similar
        registers = tuple({*xregs(rm, rn, rd)})
        if bits(word, 23, 22) == 3:
            facts = fact_bits("store", "memory_set")
            return Instruction(InstructionKind.STORE, facts, registers, xregs(rd, rn), irregular=True)
        facts = fact_bits("load", "store", "memory_copy")
        return Instruction(InstructionKind.ATOMIC, facts, registers, registers, irregular=True)
    return None


def _classify_tag(word: int) -> Instruction | None:
    """Classify a load or store of tags. The register that is not the address has the tag."""
    opcode, mode, rn, rt = bits(word, 23, 22), bits(word, 11, 10), bits(word, 9, 5), word & 31
    if not mode:  # LDG; STZGM, STGM and LDGM are UNDEFINED at EL0
        facts = fact_bits("load", "allocation_tag")
        return (
            Instruction(InstructionKind.LOAD, facts, (rn, *xregs(rt)), xregs(rt), irregular=True)
            if opcode == 1
            else None
        )
    base = (rn,) if mode != 2 else ()
    sources = tuple(dict.fromkeys((rn, rt)))
    if not opcode & 1:  # STG, ST2G
        return Instruction(
            InstructionKind.STORE, fact_bits("store", "allocation_tag"), sources, (), base, irregular=True
        )
    traffic = _TAG_BYTES << (opcode >> 1)  # STZG, STZ2G
    return Instruction(
        InstructionKind.STORE, fact_bits("store", "unspecified"), sources, (), base, traffic, irregular=True
    )
