"""Names of C++ and Rust as their source has them.

Ref: Itanium C++ ABI, section 5.1; Rust RFC 2603.
"""

from functools import cache

from pydemumble import demangle

__all__ = ["source_name"]

_PREFIXES = ("_Z", "_R")
_LONGEST = 4096  # the library recurses, and overflows the stack for some names of 20,000 characters


@cache
def source_name(symbol: str) -> str:
    """Return the name of a symbol in the source. A symbol that is not of C++ or Rust is its own name."""
    if not symbol.startswith(_PREFIXES) or len(symbol) > _LONGEST:
        return symbol
    return demangle(symbol) or symbol
