"""System registers of a configuration as a C header."""

from collections.abc import Iterator

from .. import arch
from ..arch import BSC, Register
from ..config import SPUConfig
from ..support.version import INTERFACE_VERSION, __version__
from . import regmap

__all__ = ["header"]


def header(config: SPUConfig) -> str:
    """Return the registers of `config` as a C header, for C99 and later.

    Each macro begins with the name of the module, because other configurations and kernels define the same registers.
    """
    guard = f"{config.module.upper()}_H"
    lines = [
        "/*",
        f" * Spurtle {__version__}: System registers of an Arm SPU (FEAT_SPE), configuration {config.name}",
        " * SPDX-License-Identifier: Apache-2.0",
        " * Generated; the source is spurtle.arch and spurtle.config.",
        " *",
        f" * Each name begins with {config.module.upper()}_.",
        " * Register: _NAME for the assembler; _SYSREG, its encoding as in Linux; _WRITABLE, the mask of its writable",
        " * bits; _VALUE if it is read-only (PMBIDR_EL1 with P = 0). Field: _SHIFT; _MASK in the register; its values.",
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
        "/* Version of the ports of the generated hardware. */",
        _define(config, "INTERFACE_VERSION", f"{INTERFACE_VERSION}"),
        "",
        "/* ID_AA64DFR0_EL1.PMSVer. */",
        _define(config, "ID_AA64DFR0_EL1_PMSVER", f"{config.version:d}"),
    ]
    for register in config.accessors:
        lines += ["", *_defines(config, register)]
    return "\n".join([*lines, "", "#endif", ""])


def _defines(config: SPUConfig, register: Register) -> Iterator[str]:
    name = register.name
    yield f"/* {register.purpose} */"
    yield _define(config, f"{name}_NAME", f'"{register.assembler_name}"')
    # op0, op1, CRn, CRm and op2 at their bit positions in the instruction.
    number = 3 << 19 | register.op1 << 16 | register.crn << 12 | register.crm << 8 | register.op2 << 5
    yield _define(config, f"{name}_SYSREG", f"UINT32_C({number:#x})")
    if register.read_only:
        yield _define(config, f"{name}_VALUE", _constant(regmap.reset(config, register)))
    else:
        yield _define(config, f"{name}_WRITABLE", _constant(regmap.writable(config, register)))
    for field_name, field in regmap.fields(config, register).items():
        yield f"/* {field_name}: {field.doc} */"
        yield _define(config, f"{name}_{field_name}_SHIFT", f"{field.lsb}")
        yield _define(config, f"{name}_{field_name}_MASK", _constant(field.mask))
        for value in regmap.values(config, register, field):
            yield _define(config, f"{name}_{field_name}_{value.name}", _constant(value))
    if register is arch.PMBSR_EL1:
        yield "/* MSS[5:0] if EC is 0. */"
        for code in BSC:
            yield _define(config, f"{name}_BSC_{code.name}", _constant(code))


def _define(config: SPUConfig, name: str, value: str) -> str:
    return f"#define {config.module.upper()}_{name:<40} {value}"


def _constant(value: int) -> str:
    return f"UINT64_C({value:#x})"
