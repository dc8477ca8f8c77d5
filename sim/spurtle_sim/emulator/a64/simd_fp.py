"""Classification of Advanced SIMD and floating-point data-processing instructions.

capstone decodes the operands. Its lists of the registers that an instruction reads and writes are not used because they
are incomplete and partly wrong.

Ref: DDI0487 M.a, C4.1 (encodings), D17.6.5 (conditional).
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from ...trace.instruction import NZCV, SP, Instruction, InstructionKind, Registers
from .encoding import bits, fact_bits

__all__ = [
    "FLOATING_POINT",
    "MERGING",
    "REGISTER_OPERAND",
    "classify_simd_fp",
    "disassembler",
    "register_numbers",
    "simd_kind",
]


@cache
def disassembler() -> Any:
    """Return the disassembler of capstone, with the details of operands."""
    # Imported here because the import takes 40 ms, and many programs have no such instruction.
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
"""Prefixes of mnemonics, and the kinds of their instructions. The first match applies. Others are SIMD."""

FLOATING_POINT = ("f", "bf", "scvtf", "ucvtf")
"""Prefixes of the mnemonics of Advanced SIMD instructions on floating-point numbers. No others have them."""


def classify_simd_fp(word: int) -> Instruction | None:
    """Classify an instruction of this group. Return None if capstone cannot decode it."""
    decoded = next(disassembler().disasm(word.to_bytes(4, "little"), 0), None)
    if decoded is None:
        return None
    sources, destinations = _accesses(decoded)
    kind = simd_kind(decoded.mnemonic)
    # Instructions that transfer data from or to general-purpose registers form one kind, regardless of the result.
    if any(register <= SP for register in (*sources, *destinations)):
        kind = InstructionKind.TRANSFER
    # The instructions of the scalar floating-point group are floating point, including FMOV. All others are Advanced
    # SIMD, including scalar ones.
    if word & 0x50000000 == 0x10000000:
        names = ("floating_point",)
    else:
        names = ("vector", "floating_point") if decoded.mnemonic.startswith(FLOATING_POINT) else ("vector",)
    if word & 0xFF200400 == 0x1E200400:  # FCCMP, FCSEL
        condition = bits(word, 15, 12)
        return Instruction(kind, fact_bits("conditional", *names), sources, destinations, condition=condition)
    return Instruction(kind, fact_bits(*names), sources, destinations)


def simd_kind(mnemonic: str) -> InstructionKind:
    """Return the kind of an Advanced SIMD, floating-point or SVE instruction on SIMD&FP registers."""
    return next((kind for prefixes, kind in _SIMD_KINDS if mnemonic.startswith(prefixes)), InstructionKind.SIMD)


MERGING = re.compile(
    r"mla|mls|[su]ml[as]l2?|sqdml[as]l2?|sqrdml[as]h|fml[as]|fml[as]l2?|fcmla"  # multiply and accumulate
    r"|(s|u|us|su|bf)dot|(s|u|us|bf)mmla|bfmlal[bt]"
    r"|[su]abal?2?|[su]adalp|[su]r?sra|suqadd|usqadd"  # accumulate
    r"|s[lr]i|bit|bif|bsl|tbx|(?!trn).*n2"  # insert; narrow into the upper half
    r"|aes[de]|sha1(c|p|m|su0|su1)|sha(256|512).*|sm3(partw|tt).*|sm4e"
)
"""Mnemonics whose destination is also a source. `_accesses` adds immediate ORR and BIC, and INS: they have aliases."""


def _accesses(decoded: Any) -> tuple[Registers, Registers]:
    """Return sources and destinations. The first operand is the destination, except of compares, which write NZCV."""
    operands = [operand for operand in decoded.operands if operand.type == REGISTER_OPERAND]
    registers = [operand.reg for operand in operands]
    first, others = registers[:1], registers[1:]
    flags = (NZCV,) if decoded.mnemonic.startswith(("fccmp", "fcsel")) else ()
    if decoded.mnemonic.startswith(("fcmp", "fccmp")):
        return (*flags, *register_numbers(registers)), (NZCV,)
    immediate = not others and decoded.mnemonic in ("orr", "bic")
    element = operands[0].vector_index >= 0
    merged = MERGING.fullmatch(decoded.mnemonic) or immediate or element
    destinations = (*register_numbers(first), NZCV) if decoded.mnemonic == "fjcvtzs" else register_numbers(first)
    return (*flags, *register_numbers(registers if merged else others)), destinations


REGISTER_OPERAND = 1  # CS_OP_REG of capstone, which is imported later

_NUMBERS = {
    **{f"{letter}{number}": number for letter in "xw" for number in range(31)},
    **{f"{letter}{number}": 32 + number for letter in "vqdshbz" for number in range(32)},
    **{"fp": 29, "lr": 30, "sp": SP, "wsp": SP, "nzcv": NZCV},
}


def register_numbers(registers: Iterable[int]) -> Registers:
    """Return the numbers of registers of capstone. The zero register and predicate registers have none."""
    names = map(disassembler().reg_name, registers)
    return tuple(_NUMBERS[name] for name in names if name in _NUMBERS)
