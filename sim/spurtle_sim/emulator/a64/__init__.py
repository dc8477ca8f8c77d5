"""Classification of A64 instructions: facts, memory traffic, and source and destination registers.

docs/reference/operations.md lists the facts of each kind of instruction.
"""

from .classify import UnsupportedInstructionError, classify
from .encoding import condition_holds
from .scalable import classify_scalable

__all__ = ["UnsupportedInstructionError", "classify", "classify_scalable", "condition_holds"]
