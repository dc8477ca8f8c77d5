"""What an A64 instruction is: its facts, its memory traffic, the registers that it needs and those that it makes.

Loads, stores, branches and integer operations are read from the encoding. capstone names the operands of Advanced SIMD
and floating-point data processing; its lists of the registers that are read and written have gaps and errors.
"""

# Ref: DDI0487 M.a, C4.1 (encodings), D17.5.1 (types of operation), D17.6.5 (conditional), D18.2.7 (atomic, call).
# docs/operations.md has the facts of each kind of instruction.

import re
from dataclasses import dataclass
from enum import IntEnum, auto, unique
from functools import cache
from typing import Any

from ..model.records import Facts

__all__ = [
    "FACT",
    "NZCV",
    "REGISTERS",
    "SP",
    "Instruction",
    "InstructionKind",
    "UnsupportedError",
    "classify",
    "condition_holds",
]

FACT: dict[str, int] = {name: 1 << bit for bit, name in enumerate(Facts.__slots__)}
"""The bit of each member of `interface.operation.Facts`. The reference has the same order, and loads no Amaranth."""

SP = 31
NZCV = 64
REGISTERS = 65
"""X0 to X30 are 0 to 30, SP is 31, V0 to V31 are 32 to 63, NZCV is 64. XZR and WZR are no register."""

Registers = tuple[int, ...]


class UnsupportedError(ValueError):
    """Not an instruction that the models know: SVE, SME, memory tags, memory copy, Guarded control stack, 64-byte and
    floating-point atomics, or unallocated.
    """


@unique
class InstructionKind(IntEnum):
    """What the timing model distinguishes."""

    INTEGER = auto()
    SHIFTED = auto()  # integer operation with a shifted or extended operand
    MULTIPLY = auto()
    DIVIDE = auto()
    SIMD = auto()
    SIMD_MULTIPLY = auto()
    FP_ADD = auto()
    FP_MULTIPLY = auto()
    FP_FUSED = auto()
    FP_DIVIDE = auto()
    TRANSFER = auto()  # between general-purpose and SIMD&FP registers
    LOAD = auto()
    STORE = auto()
    ATOMIC = auto()
    BRANCH = auto()
    CALL = auto()  # branch with link
    RETURN = auto()
    SYSTEM = auto()
    MEMORY_BARRIER = auto()
    SYNCHRONIZE = auto()  # ISB, and instructions that generate an exception


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction word, as the front end and the timing model need it.

    Parameters
    ----------
    kind : Kind
    facts : int
        Bits of `spurtle.interface.operation.FactsLayout` that are the same at each execution.
    sources, destinations : tuple of int
        Register numbers. A base register that is written back is in `base` instead of `destinations`.
    base : tuple of int
        The address register of a pre-indexed or post-indexed access, or none.
    traffic : int
        Bytes read plus bytes written; zero without a memory access.
    irregular : bool
        The access may not happen (Store-Exclusive), or is not a run of `traffic` bytes for an emulator (DC ZVA).
    condition : int or None
        Condition code of a conditional select or compare, whose outcome the next PC does not tell.
    """

    kind: InstructionKind
    facts: int = 0
    sources: Registers = ()
    destinations: Registers = ()
    base: Registers = ()
    traffic: int = 0
    irregular: bool = False
    condition: int | None = None


def condition_holds(condition: int, nzcv: int) -> bool:
    """Whether `condition` (4 bits) holds for PSTATE.{N, Z, C, V} in bits [31:28] of `nzcv`."""
    n, z, c, v = (bool(nzcv >> bit & 1) for bit in (31, 30, 29, 28))
    result = (z, c, n, v, c and not z, n == v, n == v and not z, True)[condition >> 1]
    return result != (condition & 1 and condition != 0b1111)


@cache
def classify(word: int) -> Instruction:
    """The instruction that the 32-bit `word` encodes.

    Raises
    ------
    UnsupportedError
        If the models do not know it.
    """
    group = _bits(word, 28, 25)
    if group & 0b0101 == 0b0100:
        found = _load_store(word)
    elif group & 0b0111 == 0b0101:
        found = _register(word)
    elif group & 0b0111 == 0b0111:
        found = _simd_fp(word)
    elif group >> 1 == 0b100:
        found = _immediate(word)
    elif group >> 1 == 0b101:
        found = _branch_system(word)
    else:
        found = None
    if found is None:
        raise UnsupportedError(f"0x{word:08x}")
    return found


def _bits(word: int, high: int, low: int) -> int:
    return word >> low & (1 << high - low + 1) - 1


def _facts(*names: str) -> int:
    return sum(FACT[name] for name in names)


def _x(*numbers: int) -> Registers:
    """General-purpose registers, where 31 is the zero register."""
    return tuple(number for number in numbers if number != 31)


def _v(first: int, count: int = 1) -> Registers:
    """Consecutive SIMD&FP registers; V0 follows V31."""
    return tuple(32 + (first + index) % 32 for index in range(count))


_ORDERED = ("acquire_release",)
_SCALAR = ("simd_fp",)
_VECTOR = ("simd_fp", "vector")


def _access(
    load: bool, names: tuple[str, ...], registers: Registers, traffic: int, address: Registers, base: Registers = ()
) -> Instruction:
    """A load to, or a store of, `registers`."""
    if load:
        return Instruction(InstructionKind.LOAD, _facts("load", *names), address, registers, base, traffic)
    return Instruction(InstructionKind.STORE, _facts("store", *names), (*address, *registers), (), base, traffic)


def _simd_fp_names(width: int) -> tuple[str, ...]:
    """Of a load or store of SIMD&FP registers of so many bytes each: Q registers are vectors (D17.5.1)."""
    return _VECTOR if width == 16 else _SCALAR


def _load_store(word: int) -> Instruction | None:
    kind, vector, high = _bits(word, 29, 28), _bits(word, 26, 26), _bits(word, 24, 24)
    if kind == 0b00:
        if vector:
            return _structure(word)
        return None if high else _exclusive(word)
    if kind == 0b01:
        return _ordered_unscaled(word) if high else _literal(word)
    return _pair(word) if kind == 0b10 else _single(word)


def _structure(word: int) -> Instruction | None:
    """LD1 to LD4, ST1 to ST4: of whole registers, of one lane, or replicating."""
    rm, size, rn, rt = _bits(word, 20, 16), _bits(word, 11, 10), _bits(word, 9, 5), word & 31
    load, opcode = bool(_bits(word, 22, 22)), _bits(word, 15, 12)
    merged = False
    if not _bits(word, 24, 24):
        count = {0b0000: 4, 0b0010: 4, 0b0100: 3, 0b0110: 3, 0b0111: 1, 0b1000: 2, 0b1010: 2}.get(opcode)
        if count is None:
            return None
        width = 16 if _bits(word, 30, 30) else 8
    else:
        count = ((opcode >> 1 & 1) << 1 | _bits(word, 21, 21)) + 1
        scale = opcode >> 2
        merged = load and scale != 3
        width = 1 << (size if scale == 3 else 3 if scale == 2 and size & 1 else scale)
    registers = _v(rt, count)
    posted = bool(_bits(word, 23, 23))
    address = (rn, *(_x(rm) if posted else ()), *(registers if merged else ()))
    return _access(load, _VECTOR, registers, count * width, address, (rn,) if posted else ())


def _exclusive(word: int) -> Instruction | None:
    """Exclusive pairs and singles, ordered accesses, compare and swap."""
    size, rs, rt2, rn, rt = _bits(word, 31, 30), _bits(word, 20, 16), _bits(word, 14, 10), _bits(word, 9, 5), word & 31
    ordered, load, pair, release = (bool(_bits(word, bit, bit)) for bit in (23, 22, 21, 15))
    if pair and (ordered or size < 2):
        registers = 1 if ordered else 2
        width = 1 << size if ordered else 4 << size
        names = ("load", "store", "atomic", *(_ORDERED if load or release else ()))
        compared = _x(*range(rs, rs + registers))
        sources = (rn, *compared, *_x(*range(rt, rt + registers)))
        return Instruction(InstructionKind.ATOMIC, _facts(*names), sources, compared, traffic=2 * registers * width)
    if ordered:
        return _access(load, _ORDERED, _x(rt), 1 << size, (rn,))
    registers = _x(rt, rt2) if pair else _x(rt)
    names = ("exclusive", *(_ORDERED if release else ()))
    traffic = (1 << size) * (2 if pair else 1)
    if load:
        return _access(True, names, registers, traffic, (rn,))
    return Instruction(
        InstructionKind.STORE, _facts("store", *names), (rn, *registers), _x(rs), (), traffic, irregular=True
    )


def _literal(word: int) -> Instruction | None:
    size, vector, rt = _bits(word, 31, 30), _bits(word, 26, 26), word & 31
    if vector:
        return None if size == 3 else _access(True, _simd_fp_names(4 << size), _v(rt), 4 << size, ())
    return Instruction(InstructionKind.INTEGER) if size == 3 else _access(True, (), _x(rt), (4, 8, 4)[size], ())


def _ordered_unscaled(word: int) -> Instruction | None:
    """LDAPUR and STLUR."""
    if _bits(word, 26, 26) or _bits(word, 21, 21) or _bits(word, 11, 10):
        return None
    return _access(_bits(word, 23, 22) != 0, _ORDERED, _x(word & 31), 1 << _bits(word, 31, 30), (_bits(word, 9, 5),))


def _pair(word: int) -> Instruction | None:
    size, vector, mode, load = _bits(word, 31, 30), _bits(word, 26, 26), _bits(word, 24, 23), bool(_bits(word, 22, 22))
    rt2, rn, rt = _bits(word, 14, 10), _bits(word, 9, 5), word & 31
    base = (rn,) if mode & 1 else ()
    if size == 3 or (not vector and size == 1 and not load):
        return None
    if vector:
        return _access(load, _simd_fp_names(4 << size), (*_v(rt), *_v(rt2)), 2 * (4 << size), (rn,), base)
    return _access(load, (), _x(rt, rt2), 2 * (8 if size == 2 else 4), (rn,), base)


def _single(word: int) -> Instruction | None:
    """One register: every addressing mode but literal; and the atomic memory operations."""
    size, vector, opc = _bits(word, 31, 30), _bits(word, 26, 26), _bits(word, 23, 22)
    rn, rt = _bits(word, 9, 5), word & 31
    address, base = (rn,), ()
    if not _bits(word, 24, 24):
        mode = _bits(word, 11, 10)
        if not _bits(word, 21, 21):
            base = (rn,) if mode & 1 else ()
        elif mode == 0b10:
            address = (rn, *_x(_bits(word, 20, 16)))
        elif mode == 0b00:
            return None if vector else _atomic(word)
        elif size == 3 and not vector:  # LDRAA, LDRAB
            return _access(True, (), _x(rt), 8, address, (rn,) if mode & 2 else ())
        else:
            return None
    if vector:
        width = 16 if opc & 2 else 1 << size
        return None if opc & 2 and size else _access(bool(opc & 1), _simd_fp_names(width), _v(rt), width, address, base)
    if size == 3 and opc == 2:  # prefetch
        return Instruction(InstructionKind.INTEGER, sources=address)
    return None if size == 3 and opc == 3 else _access(opc != 0, (), _x(rt), 1 << size, address, base)


def _atomic(word: int) -> Instruction | None:
    """LDADD and its family, SWP, LDAPR. Without a result (XZR) the first are stores, not loads."""
    size, acquire, release, rs = _bits(word, 31, 30), _bits(word, 23, 23), _bits(word, 22, 22), _bits(word, 20, 16)
    swap, opc, rn, rt = _bits(word, 15, 15), _bits(word, 14, 12), _bits(word, 9, 5), word & 31
    names = _ORDERED if acquire or release else ()
    if swap and opc == 0b100:
        return _access(True, names, _x(rt), 1 << size, (rn,))
    if swap and opc:
        return None
    loads = ("load",) if swap or rt != 31 else ()
    facts = _facts(*loads, "store", "atomic", *names)
    return Instruction(InstructionKind.ATOMIC, facts, (rn, *_x(rs)), _x(rt), traffic=2 << size)


_ZVA_BYTES = 64
"""What DCZID_EL0 of the emulated PE says."""


def _branch_system(word: int) -> Instruction | None:
    top, link, rn, rt = word >> 24, bool(word >> 31), _bits(word, 9, 5), word & 31
    if top & 0x7C == 0x14:  # B, BL
        if link:
            return Instruction(InstructionKind.CALL, _facts("branch", "link"), destinations=(30,))
        return Instruction(InstructionKind.BRANCH, FACT["branch"])
    if top & 0x7C == 0x34:  # CBZ, CBNZ, TBZ, TBNZ
        return Instruction(InstructionKind.BRANCH, _facts("branch", "conditional"), _x(rt))
    if top == 0x54:
        return Instruction(InstructionKind.BRANCH, _facts("branch", "conditional"), (NZCV,))
    if top == 0xD4:
        return Instruction(InstructionKind.SYNCHRONIZE, FACT["exception"])
    if top & 0xFE == 0xD6:
        opc, facts = _bits(word, 22, 21), _facts("branch", "indirect")
        if _bits(word, 23, 23):
            return None  # ERET and DRPS are UNDEFINED at EL0
        if opc == 0b00:
            return Instruction(InstructionKind.BRANCH, facts, _x(rn))
        if opc == 0b01:
            return Instruction(InstructionKind.CALL, facts | FACT["link"], _x(rn), (30,))
        if opc == 0b10:  # RETAA names no register: it is X30
            return Instruction(InstructionKind.RETURN, facts | FACT["procedure_return"], _x(rn) or (30,))
        return None
    if word >> 22 != 0x354:
        return None
    if word & 0xFFD8FF00 == 0xD5087700 or word & 0xFFFFFFE0 in (0xD50B7460, 0xD50B7480):
        return None  # Guarded control stack; DC GVA, DC GZVA
    if word & 0xFFFFF01F == 0xD503301F:
        kind = {4: InstructionKind.MEMORY_BARRIER, 5: InstructionKind.MEMORY_BARRIER, 6: InstructionKind.SYNCHRONIZE}
        return Instruction(kind.get(_bits(word, 7, 5), InstructionKind.INTEGER))
    if word & 0xFFFFFFE0 == 0xD50B7420:
        return Instruction(
            InstructionKind.STORE, _facts("store", "unspecified"), _x(rt), traffic=_ZVA_BYTES, irregular=True
        )
    if word & 0xFFFFF01F == 0xD503201F:  # hints
        return Instruction(InstructionKind.INTEGER)
    return Instruction(
        InstructionKind.SYSTEM, 0, () if _bits(word, 21, 21) else _x(rt), _x(rt) if _bits(word, 21, 21) else ()
    )


# Data processing.


def _immediate(word: int) -> Instruction | None:
    opcode, opc, rn, rd = _bits(word, 25, 23), _bits(word, 30, 29), _bits(word, 9, 5), word & 31
    if opcode <= 0b001:
        return Instruction(InstructionKind.INTEGER, 0, (), _x(rd))
    if opcode in (0b010, 0b100):  # add and subtract, logical: SP unless flags are set
        flags = opc & 1 if opcode == 0b010 else opc == 3
        sources = (rn,) if opcode == 0b010 else _x(rn)
        return Instruction(InstructionKind.INTEGER, 0, sources, (*_x(rd), NZCV) if flags else (rd,))
    if opcode == 0b011 and opc == 0 and _bits(word, 22, 20) == 0b100:  # SMAX, UMAX, SMIN, UMIN (FEAT_CSSC)
        return Instruction(InstructionKind.INTEGER, 0, _x(rn), _x(rd))
    if opcode == 0b101:
        return Instruction(InstructionKind.INTEGER, 0, _x(rd) if opc == 3 else (), _x(rd))
    if opcode == 0b110:
        return Instruction(InstructionKind.INTEGER, 0, _x(rn, rd) if opc == 1 else _x(rn), _x(rd))
    if opcode == 0b111:
        return Instruction(InstructionKind.INTEGER, 0, _x(rn, _bits(word, 20, 16)), _x(rd))
    return None


def _register(word: int) -> Instruction | None:
    rm, ra, rn, rd, opc = _bits(word, 20, 16), _bits(word, 14, 10), _bits(word, 9, 5), word & 31, _bits(word, 30, 29)
    if not _bits(word, 28, 28):
        arithmetic, extended = _bits(word, 24, 24), _bits(word, 24, 24) and _bits(word, 21, 21)
        flags = opc & 1 if arithmetic else opc == 3
        kind = InstructionKind.SHIFTED if extended or _bits(word, 15, 10) else InstructionKind.INTEGER
        sources = (rn, *_x(rm)) if extended else _x(rn, rm)
        written = (rd,) if extended and not flags else _x(rd)
        return Instruction(kind, 0, sources, (*written, NZCV) if flags else written)
    if _bits(word, 24, 24):
        return Instruction(InstructionKind.MULTIPLY, 0, _x(rn, rm, ra), _x(rd))
    opcode, flags, condition = _bits(word, 23, 21), _bits(word, 29, 29), _bits(word, 15, 12)
    if opcode == 0b000 and _bits(word, 14, 10):  # RMIF, SETF
        return Instruction(InstructionKind.INTEGER, 0, (*_x(rn), NZCV), (NZCV,))
    if opcode == 0b000:
        return Instruction(InstructionKind.INTEGER, 0, (*_x(rn, rm), NZCV), (*_x(rd), NZCV) if flags else _x(rd))
    if opcode == 0b010:
        sources = (*(_x(rn) if _bits(word, 11, 11) else _x(rn, rm)), NZCV)
        return Instruction(InstructionKind.INTEGER, FACT["conditional"], sources, (NZCV,), condition=condition)
    if opcode == 0b100:
        return Instruction(
            InstructionKind.INTEGER, FACT["conditional"], (*_x(rn, rm), NZCV), _x(rd), condition=condition
        )
    if opcode == 0b110:
        divide = opc & 2 == 0 and _bits(word, 15, 11) == 1
        kind = InstructionKind.DIVIDE if divide else InstructionKind.INTEGER
        return Instruction(kind, 0, _x(rn) if opc & 2 else _x(rn, rm), _x(rd))
    return None


@cache
def _disassembler() -> Any:
    # Imported here because it takes 40 ms, and many programs have no such instruction.
    import capstone

    disassembler = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    disassembler.detail = True
    return disassembler


_SIMD_KINDS = (
    (("fdiv", "fsqrt"), InstructionKind.FP_DIVIDE),
    (("fmadd", "fmsub", "fnmadd", "fnmsub", "fmla", "fmls", "fcmla"), InstructionKind.FP_FUSED),
    (("fmul", "fnmul", "frecps", "frsqrts"), InstructionKind.FP_MULTIPLY),
    (("f", "scvtf", "ucvtf", "bfcvt"), InstructionKind.FP_ADD),
    (("mul", "mla", "mls", "smul", "umul", "smla", "umla", "smls", "umls", "pmul", "sqd", "sqrd",
      "sdot", "udot", "usdot", "sudot", "smmla", "ummla", "usmmla", "bfdot", "bfmmla", "bfmlal"),
     InstructionKind.SIMD_MULTIPLY),
)  # fmt: skip


_FLOATING_POINT = ("f", "bf", "scvtf", "ucvtf")
"""How the mnemonics of Advanced SIMD begin that compute with floating-point numbers; no other begins so."""


def _simd_fp(word: int) -> Instruction | None:
    found = next(_disassembler().disasm(word.to_bytes(4, "little"), 0), None)
    if found is None:
        return None
    sources, destinations = _accesses(found)
    kind = next((kind for prefixes, kind in _SIMD_KINDS if found.mnemonic.startswith(prefixes)), InstructionKind.SIMD)
    if any(register <= SP for register in (*sources, *destinations)):
        kind = InstructionKind.TRANSFER
    # All of the scalar floating-point group is floating point, FMOV too; all else is Advanced SIMD, scalar or not.
    if word & 0x50000000 == 0x10000000:
        names = ("floating_point",)
    else:
        names = ("vector", "floating_point") if found.mnemonic.startswith(_FLOATING_POINT) else ("vector",)
    if word & 0xFF200400 == 0x1E200400:  # FCCMP, FCSEL
        condition = _bits(word, 15, 12)
        return Instruction(kind, _facts("conditional", *names), sources, destinations, condition=condition)
    return Instruction(kind, _facts(*names), sources, destinations)


_MERGING = re.compile(
    r"mla|mls|[su]ml[as]l2?|sqdml[as]l2?|sqrdml[as]h|fml[as]|fml[as]l2?|fcmla"  # multiply and accumulate
    r"|(s|u|us|su|bf)dot|(s|u|us|bf)mmla|bfmlal[bt]"
    r"|[su]abal?2?|[su]adalp|[su]r?sra|suqadd|usqadd"  # accumulate
    r"|s[lr]i|bit|bif|bsl|tbx|(?!trn).*n2"  # insert; narrow into the upper half
    r"|aes[de]|sha1(c|p|m|su0|su1)|sha(256|512).*|sm3(partw|tt).*|sm4e"
)
"""Mnemonics whose destination is also a source. ORR and BIC (immediate) and INS are others, which have aliases."""


def _accesses(found: Any) -> tuple[Registers, Registers]:
    """Return sources and destinations. The first operand is the destination, except that compares write the flags."""
    operands = [operand for operand in found.operands if operand.type == _REGISTER_OPERAND]
    first, others = operands[0], operands[1:]
    flags = (NZCV,) if found.mnemonic.startswith(("fccmp", "fcsel")) else ()
    if found.mnemonic.startswith(("fcmp", "fccmp")):
        return (*flags, *_numbers(operands)), (NZCV,)
    immediate = not others and found.mnemonic in ("orr", "bic")
    element = first.vector_index >= 0
    merged = _MERGING.fullmatch(found.mnemonic) or immediate or element
    made = (*_numbers([first]), NZCV) if found.mnemonic == "fjcvtzs" else _numbers([first])
    return (*flags, *_numbers(operands if merged else others)), made


_REGISTER_OPERAND = 1  # CS_OP_REG of capstone, which is not loaded yet
_NUMBERS = {
    **{f"{letter}{number}": number for letter in "xw" for number in range(31)},
    **{f"{letter}{number}": 32 + number for letter in "vqdshb" for number in range(32)},
    **{"fp": 29, "lr": 30, "sp": SP, "wsp": SP, "nzcv": NZCV},
}


def _numbers(operands: list[Any]) -> Registers:
    """Return our numbers of capstone's operands, without the zero register."""
    names = (_disassembler().reg_name(operand.reg) for operand in operands)
    return tuple(_NUMBERS[name] for name in names if name in _NUMBERS)
