"""Classification of loads, stores, atomic memory operations and prefetches.

Ref: DDI0487 M.a, C4.1 (encodings), D17.5.1 (types of operation), D18.2.7 (atomic).
"""

from ...trace.instruction import Instruction, InstructionKind, Registers
from .encoding import bits, fact_bits, vregs, xregs

__all__ = ["classify_load_store"]

_ORDERED = ("acquire_release",)

_SCALAR = ("simd_fp",)

_VECTOR = ("simd_fp", "vector")


def classify_load_store(word: int) -> Instruction | None:
    """Classify an instruction of this group. Return None if it is unallocated or not supported."""
    kind, vector, high = bits(word, 29, 28), bits(word, 26, 26), bits(word, 24, 24)
    if kind == 0b00:
        if vector:
            return _classify_structure(word)
        return None if high else _classify_exclusive(word)
    if kind == 0b01:
        return _classify_ordered_unscaled(word) if high else _classify_literal(word)
    return _classify_pair(word) if kind == 0b10 else _classify_single(word)


def _access(
    load: bool, names: tuple[str, ...], registers: Registers, traffic: int, address: Registers, base: Registers = ()
) -> Instruction:
    """Return a load to, or a store of, `registers`. `names` are its facts."""
    if load:
        return Instruction(InstructionKind.LOAD, fact_bits("load", *names), address, registers, base, traffic)
    return Instruction(InstructionKind.STORE, fact_bits("store", *names), (*address, *registers), (), base, traffic)


def _simd_fp_names(width: int) -> tuple[str, ...]:
    """Return the facts of a load or store of SIMD&FP registers of `width` bytes. Q registers are vectors (D17.5.1)."""
    return _VECTOR if width == 16 else _SCALAR


def _classify_structure(word: int) -> Instruction | None:
    """Classify LD1 to LD4 and ST1 to ST4: multiple structures, single structures, and loads that replicate."""
    rm, size, rn, rt = bits(word, 20, 16), bits(word, 11, 10), bits(word, 9, 5), word & 31
    load, opcode = bool(bits(word, 22, 22)), bits(word, 15, 12)
    merged = False
    if not bits(word, 24, 24):
        count = {0b0000: 4, 0b0010: 4, 0b0100: 3, 0b0110: 3, 0b0111: 1, 0b1000: 2, 0b1010: 2}.get(opcode)
        if count is None:
            return None
        width = 16 if bits(word, 30, 30) else 8
    else:
        count = ((opcode >> 1 & 1) << 1 | bits(word, 21, 21)) + 1
        scale = opcode >> 2
        merged = load and scale != 3
        width = 1 << (size if scale == 3 else 3 if scale == 2 and size & 1 else scale)
    registers = vregs(rt, count)
    post_indexed = bool(bits(word, 23, 23))
    address = (rn, *(xregs(rm) if post_indexed else ()), *(registers if merged else ()))
    return _access(load, _VECTOR, registers, count * width, address, (rn,) if post_indexed else ())


def _classify_exclusive(word: int) -> Instruction | None:
    """Classify Load-Exclusive and Store-Exclusive, Load-Acquire and Store-Release, and compare and swap."""
    size, rs, rt2, rn, rt = bits(word, 31, 30), bits(word, 20, 16), bits(word, 14, 10), bits(word, 9, 5), word & 31
    ordered, load, pair, release = (bool(bits(word, bit, bit)) for bit in (23, 22, 21, 15))
    if pair and (ordered or size < 2):
        registers = 1 if ordered else 2
        width = 1 << size if ordered else 4 << size
        names = ("load", "store", "atomic", *(_ORDERED if load or release else ()))
        compared = xregs(*range(rs, rs + registers))
        sources = (rn, *compared, *xregs(*range(rt, rt + registers)))
        return Instruction(InstructionKind.ATOMIC, fact_bits(*names), sources, compared, traffic=2 * registers * width)
    if ordered:
        return _access(load, _ORDERED, xregs(rt), 1 << size, (rn,))
    registers = xregs(rt, rt2) if pair else xregs(rt)
    names = ("exclusive", *(_ORDERED if release else ()))
    traffic = (1 << size) * (2 if pair else 1)
    if load:
        return _access(True, names, registers, traffic, (rn,))
    return Instruction(
        InstructionKind.STORE, fact_bits("store", *names), (rn, *registers), xregs(rs), (), traffic, irregular=True
    )


def _classify_literal(word: int) -> Instruction | None:
    """Classify a load or prefetch of a literal."""
    size, vector, rt = bits(word, 31, 30), bits(word, 26, 26), word & 31
    if vector:
        return None if size == 3 else _access(True, _simd_fp_names(4 << size), vregs(rt), 4 << size, ())
    return Instruction(InstructionKind.INTEGER) if size == 3 else _access(True, (), xregs(rt), (4, 8, 4)[size], ())


def _classify_ordered_unscaled(word: int) -> Instruction | None:
    """Classify LDAPUR and STLUR."""
    if bits(word, 26, 26) or bits(word, 21, 21) or bits(word, 11, 10):
        return None
    return _access(bits(word, 23, 22) != 0, _ORDERED, xregs(word & 31), 1 << bits(word, 31, 30), (bits(word, 9, 5),))


def _classify_pair(word: int) -> Instruction | None:
    """Classify a load or store of a pair of registers."""
    size, vector, mode, load = bits(word, 31, 30), bits(word, 26, 26), bits(word, 24, 23), bool(bits(word, 22, 22))
    rt2, rn, rt = bits(word, 14, 10), bits(word, 9, 5), word & 31
    base = (rn,) if mode & 1 else ()
    if size == 3 or (not vector and size == 1 and not load):
        return None
    if vector:
        return _access(load, _simd_fp_names(4 << size), (*vregs(rt), *vregs(rt2)), 2 * (4 << size), (rn,), base)
    return _access(load, (), xregs(rt, rt2), 2 * (8 if size == 2 else 4), (rn,), base)


def _classify_single(word: int) -> Instruction | None:
    """Classify a load or store of one register in any addressing mode except literal, or an atomic operation."""
    size, vector, opc = bits(word, 31, 30), bits(word, 26, 26), bits(word, 23, 22)
    rn, rt = bits(word, 9, 5), word & 31
    address, base = (rn,), ()
    if not bits(word, 24, 24):
        mode = bits(word, 11, 10)
        if not bits(word, 21, 21):
            base = (rn,) if mode & 1 else ()
        elif mode == 0b10:
            address = (rn, *xregs(bits(word, 20, 16)))
        elif mode == 0b00:
            return None if vector else _classify_atomic(word)
        elif size == 3 and not vector:  # LDRAA, LDRAB
            return _access(True, (), xregs(rt), 8, address, (rn,) if mode & 2 else ())
        else:
            return None
    if vector:
        width = 16 if opc & 2 else 1 << size
        return (
            None if opc & 2 and size else _access(bool(opc & 1), _simd_fp_names(width), vregs(rt), width, address, base)
        )
    if size == 3 and opc == 2:  # prefetch
        return Instruction(InstructionKind.INTEGER, sources=address)
    return None if size == 3 and opc == 3 else _access(opc != 0, (), xregs(rt), 1 << size, address, base)


def _classify_atomic(word: int) -> Instruction | None:
    """Classify LDADD and similar, SWP, and LDAPR. With XZR as result, LDADD and similar are no loads."""
    size, acquire, release, rs = bits(word, 31, 30), bits(word, 23, 23), bits(word, 22, 22), bits(word, 20, 16)
    swap, opc, rn, rt = bits(word, 15, 15), bits(word, 14, 12), bits(word, 9, 5), word & 31
    names = _ORDERED if acquire or release else ()
    if swap and opc == 0b100:
        return _access(True, names, xregs(rt), 1 << size, (rn,))
    if swap and opc:
        return None
    loads = ("load",) if swap or rt != 31 else ()
    facts = fact_bits(*loads, "store", "atomic", *names)
    return Instruction(InstructionKind.ATOMIC, facts, (rn, *xregs(rs)), xregs(rt), traffic=2 << size)
