"""The compiled SPU: its generated Verilog, translated by Verilator and driven in batches, no Python call per cycle."""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from amaranth.hdl import Shape
from amaranth.lib import data
from numpy.typing import NDArray

from spurtle import verilog
from spurtle.arch import FSC_SYNCHRONOUS, Register
from spurtle.config import SPUConfig
from spurtle.inflight import Sample as SampleLayout
from spurtle.pe import Beat, Location, Operation, TakenBranch
from spurtle.pe import Fault as FaultLayout
from spurtle.serializer import beat_layout
from spurtle.spu import RecordPath

from .compiled import compiled
from .ports import ABORT, TRANSLATION, fault_bits, memory_faults, pe_members, sample_bits
from .reference.buffer import Fault, FaultKind
from .reference.pe import PEState
from .reference.records import Facts, Sample
from .reference.registers import Outcome
from .timed import FINISH, SELECTION, TIMED

__all__ = ["Engine", "RecordEngine"]

_ANSWER = np.dtype([("fault", "<u8"), ("written", "<u8")])
"""What memory says: which of what it can, of `Engine._answers`; and how much of the record was written before."""

_OUTCOMES = {
    Outcome.UNDEFINED: "is UNDEFINED",
    Outcome.TRAP_EL2: "traps to EL2",
    Outcome.TRAP_EL3: "traps to EL3",
}


class Engine:
    """An SPU that plays operations, and the part of a core that reports them: up to `ops_per_cycle` pass in a cycle,
    lanes stay empty here and there, and one finish is told in a cycle, that of the oldest operation that has finished.
    With FEAT_SPE_PBT ends are told in program order, and before each the taken branch that came before its operation.

    Time is counted in cycles of the program: while software serves an interrupt, the program and its timer stand still.

    At first the program runs at EL0, Non-secure EL1 owns the Profiling Buffer, and nothing traps.

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
        for function in ("play", "selections", "finishes", "answers"):
            getattr(self._library, f"engine_{function}").restype = ctypes.c_uint64
        self._engine = ctypes.c_void_p(self._library.engine_new(self._members(PEState())))
        self._memory = np.zeros(0, np.uint8)
        # In the order of the numbers that the compiled part has for them.
        self._answers = (None, *memory_faults(config), ABORT)

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

    def set_pe(self, pe: PEState) -> None:
        """State of the PE from now on, in which operations play and software accesses registers. The system counter
        is the engine's own.
        """
        self._library.engine_pe(self._engine, self._members(pe))

    def _members(self, pe: PEState) -> Any:
        members = pe_members(self._config, pe).values()
        return (ctypes.c_uint64 * len(members))(*members)

    def trouble(self, seed: int, *, stall: int = 0, late: int = 0, fault: int = 0, abort: int = 0) -> None:
        """From now on memory takes no beat in `stall` of 256 cycles, answers up to `late` cycles late, and meets a
        fault in `fault` of 256 records, by random numbers from `seed`, which is not zero. In `abort` of 65536 cycles it
        tells of an asynchronous External abort on some write since the last PSB CSYNC, unless the SPU ignores those.
        """
        self._library.engine_trouble(self._engine, ctypes.c_uint64(seed), stall, late, fault, abort)

    def hole(self, base: int, size: int, kind: FaultKind = FaultKind.STAGE_1, *, external: bool = False) -> None:
        """From now on a record meets a fault where it touches one of `size` bytes from address `base`, both multiples
        of the bus's width: a translation fault or, if `external`, a synchronous External abort. There is one hole at
        most, and none without a size.

        Raises ValueError if the SPU knows no such fault.
        """
        fault = Fault(kind=kind, fsc=FSC_SYNCHRONOUS if external else TRANSLATION, external=external)
        if fault not in self._answers:
            raise ValueError(f"{self._config.name} has no {'external ' if external else ''}fault of kind {kind.name}")
        number = self._answers.index(fault)
        self._library.engine_hole(self._engine, ctypes.c_uint64(base), ctypes.c_uint64(size), number)

    def play(self, operations: NDArray[np.void], *, settle: bool = False) -> int:
        """Play rows of `TIMED` until all have been given a cycle at the sampling point or the SPU raises its interrupt;
        return how many have.

        The next call goes on where this one ends: with lanes of the last cycle still free, answers outstanding and
        operations in flight; unless `settle` says that there is none. An interrupt waits until all has finished. The
        rows that follow are put off by as long as it held up the program.
        """
        if operations.dtype != TIMED or not operations.flags.c_contiguous:
            raise ValueError(f"operations must be a contiguous array of TIMED, not of {operations.dtype}")
        pointer = operations.ctypes.data_as(ctypes.c_void_p)
        return self._library.engine_play(self._engine, pointer, ctypes.c_uint64(len(operations)), int(settle))

    def read(self, register: Register) -> int:
        """MRS, as `access`. Raises ValueError if it is UNDEFINED or trapped."""
        return self._value(register, None)

    def write(self, register: Register, value: int) -> None:
        """MSR, as `access`. Raises ValueError if it is UNDEFINED or trapped."""
        self._value(register, value)

    def _value(self, register: Register, value: int | None) -> int:
        outcome, number = self.access(register, value)
        if outcome != Outcome.VALUE:
            raise ValueError(f"{'MRS' if value is None else 'MSR'} of {register.name} {_OUTCOMES[outcome]}")
        return number

    def access(self, register: Register, value: int | None = None) -> tuple[Outcome, int]:
        """MSR, or MRS without a value: what it comes to, and what has been read.

        It is made at the program's Exception level. At EL0 it is the kernel's, at EL1, or at EL2 if the register is one
        of EL2.
        """
        number = ctypes.c_uint64(value or 0)
        encoding = (register.op1, register.crn, register.crm, register.op2)
        write = int(value is not None)
        outcome = self._library.engine_access(self._engine, *encoding, write, ctypes.byref(number))
        return Outcome(outcome), number.value

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

    def answers(self) -> list[Fault | None]:
        """What memory has said since the last call, in order: of each record what it met, None if it is all there; and
        `ABORT` of an asynchronous External abort.
        """
        faults = (
            (self._answers[number], written)
            for number, written in self._rows(self._library.engine_answers, _ANSWER).tolist()
        )
        return [fault and replace(fault, written=written) for fault, written in faults]

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
    faults = [fault_bits(config, 0, fault) for fault in (None, *memory_faults(config))]
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
        "FAULT_WORD": _field(FaultLayout(config), "word"),
        "DATA_SOURCE": _optional_field(operation, "data_source"),
    }
    lanes = range(config.ops_per_cycle)
    slots = [f"spu.PORT_OF(sampling, slot, {lane})" for lane in lanes] if config.slots > 1 else ["0"]
    macros = {
        "BEAT_BYTES": config.bus_bytes,
        "MOST_BEATS": config.max_record_bytes // config.bus_bytes + (config.layout.align < config.bus_bytes),
        "FAULT_BITS": f"{{{', '.join(map(str, faults))}}}",
        "LANES": len(lanes),
        "SLOTS": config.slots,
        "ANSWER_LATENCY": config.answer_latency,
        "SLOTS_OF_LANES(spu)": f"{{{', '.join(slots)}}}",
        "SET_PE(spu, values)": f"{{ {' '.join(_state(config))} }}",
        "EXTERNAL_ABORTS": int(config.external_aborts),
        "PBT": int(config.pbt),
        "TAKEN_BRANCH_MASK": Facts(branch=1, taken=1, retired=1, exception=1).pack(),
        "TAKEN_BRANCH": Facts(branch=1, taken=1, retired=1).pack(),
        "DESTINATIONS(spu)": "spu.PORT(sampling, destination)" if config.two_accesses else "0",
        "FEED_EVENTS": len(config.feed_events),
        "FEEDS(spu)": f"{{{', '.join(f'spu.PORT(pmu, sample_feed_{event})' for event in config.feed_events)}}}",
    }
    return _build(verilog.spu(config), "engine.cpp", fields, macros)


def _state(config: SPUConfig) -> Iterator[str]:
    """Ports that hold the PE's state, as the program runs in it, from values in the order of `pe_members`."""
    of_branch = TakenBranch(config).members if config.pbt else ()
    for place, name in enumerate(pe_members(config, PEState())):
        if name != "physical_count":
            yield f"spu.PORT(pe, {name}) = values[{place}];"
        if name in of_branch:
            yield f"spu.PORT(branch, {name}) = values[{place}];"


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
    design: verilog.Verilog, driver: str, fields: Mapping[str, tuple[int, int]], macros: Mapping[str, int | str]
) -> ctypes.CDLL:
    return compiled(design.module, design.text, resources.files("spurtle_sim") / driver, fields, macros)
