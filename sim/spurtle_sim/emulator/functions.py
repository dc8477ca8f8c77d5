"""Names of the functions of a program, for messages about a crash."""

import io
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from elftools.elf.elffile import ELFFile

__all__ = ["function_at", "read_functions"]


def read_functions(content: bytes, base: int) -> list[tuple[int, str]]:
    """Return address and name of each function of an ELF file, sorted by address. Empty for a stripped file.

    Parameters
    ----------
    content : bytes
        Content of the file.
    base : int
        Difference between an address in memory and its value in the file.
    """
    # This takes 30 us per symbol.
    try:
        table: Any = ELFFile(io.BytesIO(content)).get_section_by_name(".symtab")
        symbols = (symbol for symbol in table.iter_symbols() if symbol["st_info"]["type"] == "STT_FUNC")
        return sorted({(base + symbol["st_value"], symbol.name) for symbol in symbols})
    except Exception:
        # A program runs with invalid sections because the kernel does not read them. pyelftools raises various
        # exceptions for them.
        return []


def function_at(functions: Sequence[tuple[int, str]], address: int) -> str:
    """Return `address` as `function+0xoffset`, or as a number if no function is before it."""
    index = bisect_right(functions, address, key=lambda function: function[0]) - 1
    if index < 0:
        return f"0x{address:x}"
    start, name = functions[index]
    return f"{name}+0x{address - start:x}"
