"""Load of the benchmarks: an operation passes in each lane in each cycle, and one of 769 is recorded."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import PMBLIMITR_EL1, PMBPTR_EL1, Register
from spurtle.config import SPUConfig
from spurtle_sim.cosim.spu import CompiledSPU
from spurtle_sim.model.operation import Facts, Location, Operation
from spurtle_sim.profile.options import Sampling
from spurtle_sim.trace.dtypes import TIMED_OPERATION

__all__ = [
    "BASE",
    "FINISH",
    "ISSUE",
    "OPERATION",
    "SAMPLING",
    "SIZE",
    "TRANSLATE",
    "prepared_spu",
    "program",
    "writes",
]

SAMPLING = Sampling()
"""Sampling parameters: the default of `spurtle profile`."""

BASE, SIZE = 0xFFFF_0000_1000_0000, 1 << 24
"""Address and size of the Profiling Buffer, which is not full before a measurement ends."""

ISSUE, FINISH, TRANSLATE = 3, 20, range(5, 9)
"""Cycles after the sampling point: issue of an operation, completion, and the cycles in which it is translated."""

OPERATION = Operation(
    facts=Facts(load=1, va_valid=1, pa_valid=1, data_source_valid=1, retired=1, taken=1),
    events=0b1100,
    pc=0x40_1234,
    target=Location(0x40_1238, el=0, ns=1),
    va=0xFFFF_8000_1238,
    pa=0x8_0000_1238,
    pa_ns=1,
    data_source=8,
)


def writes(config: SPUConfig, sampling: Sampling | None = None) -> Iterator[tuple[Register, int]]:
    """Yield the registers and the values that software writes to them before the first operation.

    The default of `sampling` is `SAMPLING`.
    """
    yield PMBPTR_EL1, BASE
    yield PMBLIMITR_EL1, BASE + SIZE | PMBLIMITR_EL1.pack(E=1)
    yield from (sampling or SAMPLING).writes(config)


def prepared_spu(config: SPUConfig, sampling: Sampling | None = None) -> CompiledSPU:
    """Return a compiled SPU with the register values of `writes`."""
    spu = CompiledSPU(config)
    spu.set_buffer(BASE, SIZE)
    for register, value in writes(config, sampling):
        spu.write(register, value)
    return spu


def program(config: SPUConfig, cycles: int, *, finish: int = FINISH) -> NDArray[np.void]:
    """Return rows of `TIMED_OPERATION` in which `OPERATION` passes in each lane in each cycle.

    `finish` is the number of cycles from the sampling point to its completion.
    """
    rows = np.zeros(cycles * config.ops_per_cycle, TIMED_OPERATION)
    rows["dispatch"] = np.arange(len(rows)) // config.ops_per_cycle
    rows["facts"] = OPERATION.facts.pack()
    for name in ("events", "pc", "va", "pa", "data_source"):
        rows[name] = getattr(OPERATION, name)
    rows["target"] = OPERATION.target.address
    rows["issue"], rows["finish"] = ISSUE, finish
    rows["translate_from"], rows["translate_to"] = TRANSLATE.start, TRANSLATE.stop
    return rows
