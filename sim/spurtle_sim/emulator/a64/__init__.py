"""Classification of A64 instructions: facts, memory traffic, the registers that they need and those that they make.

docs/reference/operations.md has the facts of each kind of instruction.
"""

from .classify import UnsupportedError, classify
from .encoding import condition_holds

__all__ = ["UnsupportedError", "classify", "condition_holds"]
