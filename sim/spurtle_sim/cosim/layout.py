"""Files of a design for its driver in C++: the Verilog, and a header of declarations that Python and C++ share."""

from collections.abc import Iterable, Mapping

from spurtle.arch import Register

__all__ = ["bit_fields", "conditions", "design_files", "encodings", "function", "gated_inputs"]


def design_files(verilog_text: str, declarations: Iterable[str] = ()) -> dict[str, str]:
    """Return the files of a design, by their names.

    Parameters
    ----------
    verilog_text : str
        The top module and the modules that it instantiates.
    declarations : iterable of str
        C++ declarations for `layout.h`, which includes the translated module and `ports.h`.
    """
    lines = ["#pragma once", '#include "design.h"', '#include "ports.h"', *declarations, ""]
    return {"design.v": verilog_text, "layout.h": "\n".join(lines)}


def bit_fields(fields: Mapping[str, tuple[int, int]]) -> str:
    """Return constants of the type `Field` of `ports.h`, for offsets and widths in bits."""
    return "\n".join(f"constexpr Field {name}{{{offset}, {width}}};" for name, (offset, width) in fields.items())


def conditions(values: Mapping[str, bool]) -> str:
    """Return macros for `#if`: only the preprocessor can remove code for ports that a module does not have."""
    return "\n".join(f"#define {name} {int(value)}" for name, value in values.items())


def encodings(registers: Iterable[Register]) -> str:
    """Return constants of the type `Encoding` of `ports.h`, with the names of the registers."""
    return "\n".join(
        f"constexpr Encoding {each.name}{{{each.op1}, {each.crn}, {each.crm}, {each.op2}}};" for each in registers
    )


def function(head: str, statements: Iterable[str]) -> str:
    """Return an inline function. Functions that depend on the names of a module's ports are generated."""
    return "\n".join([f"inline {head} {{", *(f"    {statement};" for statement in statements), "}"])


def gated_inputs(names: Iterable[str]) -> str:
    """Return the struct `GatedInputs`: the values that inputs of `gating.GatedVerilog` had when they were captured."""
    ports = [name.replace("__", "___05F") for name in names]
    members = (f"std::remove_reference_t<decltype(design::{port})> {port}{{}};" for port in ports)
    same = " && ".join(["captured", *(f"same_port({port}, spu.{port})" for port in ports)])
    equal = function("bool equal(const design &spu) const", [f"return {same}"])
    capture = function("void capture(const design &spu)", ["captured = true", *(f"{p} = spu.{p}" for p in ports)])
    return "\n".join(["struct GatedInputs {", "bool captured = false;", *members, equal, capture, "};"])
