"""Classification of A64 instructions: facts, memory traffic, and source and destination registers.

docs/reference/operations.md lists the facts of each kind of instruction.
"""

from .classify import UnsupportedInstructionError, classify, classify_every
from .encoding import condition_holds

__all__ = ["UnsupportedInstructionError", "classify", "classify_every", "condition_holds"]
