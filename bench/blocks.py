"""What is measured: each block of the SPU, the whole in each named configuration, the bare circuits that bound them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from amaranth.lib import wiring

from configurations import ALL_EVENTS, lanes
from spurtle.arch import REGISTERS
from spurtle.config import CONFIGS, LFSR_ACCESS_RESET, LFSR_RESET, SPUConfig
from spurtle.gateware.access_choice import AccessChoice
from spurtle.gateware.aligner import Aligner
from spurtle.gateware.buffer import ProfilingBuffer
from spurtle.gateware.completion import Completion
from spurtle.gateware.control import ProfilingControl
from spurtle.gateware.filter import Filter
from spurtle.gateware.inflight import InFlight
from spurtle.gateware.interval import IntervalCounter
from spurtle.gateware.lfsr import LFSR
from spurtle.gateware.previous_target import PreviousTarget
from spurtle.gateware.record import RecordBuilder
from spurtle.gateware.registers import RegisterFile
from spurtle.gateware.serializer import Serializer
from spurtle.gateware.spu import SPU
from spurtle.support.errors import UserError

from . import bare

__all__ = ["ANY", "BLOCKS", "Block", "bound_of", "select"]

ANY = "any"
"""In place of a configuration's name: the circuit is the same in each."""


@dataclass(frozen=True)
class Block:
    """A circuit to be measured.

    Parameters
    ----------
    name : str
    config : str
        The configuration it is built for, or `ANY`.
    build : function of nothing
        Makes the component.
    bound : str or None
        Name of the bare circuit that bounds it; None for a bare circuit.
    """

    name: str
    config: str
    build: Callable[[], wiring.Component]
    bound: str | None = None


def _each(
    name: str,
    component: Callable[[SPUConfig], wiring.Component],
    bound: str | None = None,
    among: Callable[[SPUConfig], bool] = lambda config: True,
) -> Iterable[Block]:
    """One block for each named configuration `among` them all that has it."""
    return (
        Block(name, config.name, lambda config=config: component(config), bound)
        for config in CONFIGS.values()
        if among(config)
    )


def _access_lfsr(config: SPUConfig) -> LFSR:
    """The second generator."""
    return LFSR(bits=config.access_bits, draws=config.selections_per_cycle, reset=LFSR_ACCESS_RESET)


_LANES = [lanes(width, ernd=ernd) for ernd in (False, True) for width in (1, 2, 4, 8)]

BLOCKS = (
    Block("gate", ANY, lambda: bare.Gate(1)),
    Block("gated_word", ANY, lambda: bare.Gate(64)),
    Block("counter", ANY, bare.Counter),
    Block("saturating_counter", ANY, lambda: bare.SaturatingCounter(12)),
    Block("event_compare", ANY, lambda: bare.EventCompare(64)),
    Block("shift_register", ANY, lambda: bare.ShiftRegister(record_bytes=64, bus_bytes=8)),
    Block("pointer", ANY, lambda: bare.Pointer(step=64)),
    Block("multiplexer", ANY, lambda: bare.Multiplexer(ways=len(REGISTERS), width=64)),
    *_each("control", ProfilingControl, "gate", lambda config: config.pbt or config.name in ("minimal", "neoverse_n1")),
    *(Block("interval", config.name, lambda config=config: IntervalCounter(config), "counter") for config in _LANES),
    Block("lfsr", "interval", lambda: LFSR(bits=8, draws=1, reset=LFSR_RESET), "gate"),
    *_each("lfsr", _access_lfsr, "gate", lambda config: config.access_bits > 0),
    *_each("access", AccessChoice, "gate", lambda config: config.access_bits > 0),
    *_each("previous", PreviousTarget, "gate", lambda config: config.pbt),
    *_each("inflight", InFlight, "saturating_counter"),
    *_each("completion", Completion, "gate"),
    *_each("filter", Filter, "event_compare"),
    Block("filter", ALL_EVENTS.name, lambda: Filter(ALL_EVENTS), "event_compare"),
    *_each("record", RecordBuilder, "gated_word"),
    *_each("serializer", Serializer, "shift_register"),
    *_each("aligner", Aligner, "gated_word", lambda config: config.layout.align < config.bus_bytes),
    *_each("buffer", ProfilingBuffer, "pointer"),
    *_each("registers", RegisterFile, "multiplexer"),
    *_each("spu", SPU, "counter"),
)
"""Bare circuits first. The whole SPU holds an interval counter, so nothing bounds it tighter than that."""


def bound_of(block: Block) -> Block | None:
    """The bare circuit of a block: the one for its configuration, or the one for any. None for a bare circuit."""
    candidates = [other for other in BLOCKS if other.name == block.bound and other.config in (block.config, ANY)]
    return candidates[0] if candidates else None


def select(names: Iterable[str]) -> list[Block]:
    """The blocks with these names, all if there are none, and what bounds them; in the order of the table.

    Raises UserError on a name that the table does not have.
    """
    names = list(names)
    known = list(dict.fromkeys(block.name for block in BLOCKS))
    for name in names:
        if name not in known:
            raise UserError(f"no block is named {name!r}; there are {', '.join(known)}")
    wanted = [block for block in BLOCKS if not names or block.name in names]
    wanted += [bound for bound in map(bound_of, wanted) if bound is not None]
    return [block for block in BLOCKS if block in wanted]
