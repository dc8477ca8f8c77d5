"""The facts of an instruction that the front end and the timing model share. No emulator is loaded for them."""

# Ref: DDI0487 M.a, D17.5.1 (types of operation).

from dataclasses import dataclass
from enum import IntEnum, auto, unique

from ..model.operation import Facts

__all__ = ["FACT", "NZCV", "REGISTERS", "SP", "Instruction", "InstructionKind", "Registers"]

FACT: dict[str, int] = {name: 1 << bit for bit, name in enumerate(Facts.__slots__)}
"""The bit of each member of `interface.operation.FactsLayout`. The model has the same order, and loads no Amaranth."""


SP = 31


NZCV = 64


REGISTERS = 65
"""X0 to X30 are 0 to 30, SP is 31, V0 to V31 are 32 to 63, NZCV is 64. XZR and WZR are no register."""


Registers = tuple[int, ...]


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
    kind : InstructionKind
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
