"""Classification of an instruction word, as the code in C++ uses it that records operations.

Ref: DDI0487 M.a, D17.6.5 (conditional operations).
"""

import numpy as np

from ..trace.instruction import FACT, Instruction
from .a64 import condition_holds

__all__ = ["WORD", "word_row"]

WORD = np.dtype(
    [("facts", "<u4"), ("passes", "<u2"), ("vectors", "<u2"), ("traffic", "u1"), ("irregular", "u1")], align=True
)
"""Classification of an instruction word. `facts` is zero until the instruction is classified.

`passes` has a bit for each value of NZCV: whether the condition of a conditional select or compare passes. The other
fields are those of `trace.instruction.Instruction`.
"""

_PASSES = [sum(condition_holds(code, flags << 28) << flags for flags in range(16)) for code in range(16)]
"""Member `passes` of WORD for each condition code."""


def word_row(instruction: Instruction) -> tuple[int, int, int, int, bool]:
    """Return the row of WORD for an instruction."""
    facts = instruction.facts | FACT["retired"]
    if not facts & FACT["conditional"]:  # the code in C++ determines the outcome of the others
        facts |= FACT["taken"]
    passes = 0 if instruction.condition is None else _PASSES[instruction.condition]
    return facts, passes, instruction.vectors, instruction.traffic, instruction.irregular
