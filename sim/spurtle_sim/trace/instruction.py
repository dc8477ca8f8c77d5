"""Description of an instruction that the front end and the timing model share.

The module does not load the emulator.

Ref: DDI0487 M.a, D17.5.1 (types of operation).
"""

from dataclasses import dataclass
from enum import IntEnum, auto, unique

from ..model.operation import Facts

__all__ = ["FACT", "NZCV", "REGISTERS", "SP", "Instruction", "InstructionKind", "Registers"]

FACT: dict[str, int] = {name: 1 << bit for bit, name in enumerate(Facts.__slots__)}
"""Mask of each member of `interface.operation.FactsLayout`.

The masks are those of the reference model, which has the same members in the same order and does not load Amaranth.
"""

SP = 31
"""Number of the register SP."""

NZCV = 64
"""Number of the register NZCV."""

REGISTERS = 65
"""Number of registers: X0 to X30 are 0 to 30, SP is 31, V0 to V31 are 32 to 63, and NZCV is 64.

XZR and WZR have no number.
"""

Registers = tuple[int, ...]
"""Register numbers."""


@unique
class InstructionKind(IntEnum):
    """Kind of instruction in the timing model."""

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
    """Decoded instruction word, as the front end and the timing model use it.

    Parameters
    ----------
    kind : InstructionKind
        Kind of instruction in the timing model.
    facts : int
        Bits of `spurtle.interface.operation.FactsLayout` that are the same for each execution.
    sources, destinations : tuple of int
        Register numbers. A base register with writeback is in `base`, not in `destinations`.
    base : tuple of int
        Base register of a pre-indexed or post-indexed access; otherwise empty.
    traffic : int
        Number of bytes read plus number of bytes written; zero without a memory access.
    irregular : bool
        Whether the access can be omitted (Store-Exclusive), or is not an access to `traffic` contiguous bytes in the
        emulator (DC ZVA).
    vectors : int
        Number of `trace.vectors` without the length, which is known at each execution. Zero if the instruction is not
        one of SVE.
    condition : int or None
        Condition code of a conditional select or compare. Its outcome cannot be derived from the next PC.
    """

    kind: InstructionKind
    facts: int = 0
    sources: Registers = ()
    destinations: Registers = ()
    base: Registers = ()
    traffic: int = 0
    irregular: bool = False
    vectors: int = 0
    condition: int | None = None
