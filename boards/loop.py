"""The loop that the demonstration samples, as data: sixteen operations, what each does and how long it takes."""

from dataclasses import dataclass, replace

from spurtle.arch import Event
from spurtle_sim.reference.records import Facts, Location, Operation

__all__ = ["ITERATIONS", "LOOP", "STRIDE", "Step"]

ITERATIONS = 256
"""After so many iterations the addresses start again."""

STRIDE = 64
"""Bytes by which every address moves from one iteration to the next."""


@dataclass(frozen=True)
class Step:
    """One operation of the loop. Latencies are in cycles from passing the sampling point.

    Parameters
    ----------
    operation : Operation
        As it finishes in iteration 0. Its addresses are multiples of ITERATIONS * STRIDE.
    issue : int
        Latency to its issue.
    translation : int
        Cycles, after its issue, in which it waits for a translation.
    total : int
        Latency to its end, beyond the translation.
    """

    operation: Operation
    issue: int
    translation: int
    total: int

    def in_iteration(self, iteration: int) -> Operation:
        """The operation as it finishes in an iteration, counted from 0."""
        offset = iteration % ITERATIONS * STRIDE if self.operation.facts.va_valid else 0
        return replace(self.operation, va=self.operation.va | offset, pa=self.operation.pa | offset)


_CODE = 0x40_0000
_DATA = 0xAAAA_C000_0000
_MEMORY = 0x8_4000_0000

_HIT = 1 << Event.L1D_ACCESS | 1 << Event.TLB_ACCESS
_MISS = _HIT | 1 << Event.L1D_REFILL
_WALK = _MISS | 1 << Event.TLB_WALK


def _access(kind: str, pc: int, array: int, events: int, latencies: tuple[int, int, int], **facts: int) -> Step:
    where = array * ITERATIONS * STRIDE
    operation = Operation(
        facts=Facts(**{kind: 1}, taken=1, retired=1, va_valid=1, pa_valid=1, **facts),
        events=events,
        pc=_CODE + pc,
        va=_DATA + where,
        pa=_MEMORY + where,
        pa_ns=1,
    )
    return Step(operation, *latencies)


def _branch(pc: int, target: int, latencies: tuple[int, int, int], events: int = 0, **facts: int) -> Step:
    operation = Operation(
        facts=Facts(branch=1, retired=1, **{"taken": 1, **facts}),
        events=events,
        pc=_CODE + pc,
        target=Location(_CODE + target, el=0, ns=1),
    )
    return Step(operation, *latencies)


def _other(pc: int, latencies: tuple[int, int, int], **facts: int) -> Step:
    return Step(Operation(facts=Facts(taken=1, retired=1, **facts), pc=_CODE + pc), *latencies)


LOOP = (
    _access("load", 0x00, 1, _HIT, (3, 0, 7)),  # ldr x1, [x10]
    _access("load", 0x04, 2, _MISS, (5, 0, 41)),  # ldr x2, [x11]
    _access("load", 0x08, 3, _WALK, (4, 30, 150)),  # ldr x3, [x12]
    _other(0x0C, (152, 0, 153)),  # add x3, x3, x2
    _branch(0x10, 0x14, (153, 0, 155), conditional=1, taken=0),  # cbz x3, fail
    _access("store", 0x14, 4, _HIT, (155, 1, 158)),  # str x3, [x13]
    _access("load", 0x18, 5, _MISS, (6, 2, 75), store=1, atomic=1, acquire_release=1),  # ldaddal x1, x4, [x14]
    _branch(0x1C, 0x100, (2, 0, 4)),  # bl scale
    _access("load", 0x100, 6, _HIT, (4, 0, 9), simd_fp=1),  # scale: ldr q0, [x15]
    _other(0x104, (9, 0, 13)),  # fadd v0.4s, v0.4s, v1.4s
    _access("store", 0x108, 7, _HIT, (14, 0, 16), simd_fp=1),  # str q0, [x16]
    _branch(0x10C, 0x20, (3, 0, 5), indirect=1),  # ret
    _access("load", 0x20, 8, _HIT, (8, 0, 20), acquire_release=1),  # ldar x5, [x17]
    _access("store", 0x24, 9, _WALK, (20, 24, 90), acquire_release=1),  # stlr x5, [x18]
    _other(0x28, (7, 0, 8), conditional=1),  # csel x6, x5, x6, ne
    _branch(0x2C, 0x00, (9, 0, 28), 1 << Event.MISPREDICTED, conditional=1),  # b.ne
)
"""In program order; each target is the operation that follows."""
