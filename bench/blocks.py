"""Circuits to measure: the blocks of the SPU, the complete SPU in each named configuration, and plain circuits."""

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

from . import plain

__all__ = ["ANY", "BLOCKS", "Block", "bounds_of", "contained", "select"]

ANY = "any"
"""Name that stands for all configurations: the circuit does not depend on the configuration."""


@dataclass(frozen=True)
class Block:
    """A circuit to measure.

    Parameters
    ----------
    name : str
    config : str
        Name of its configuration, or `ANY`.
    build : function
        Creates the component.
    bounds : tuple of str
        Names of the plain circuits that bound it or its blocks. The slowest of them on a device is its bound on this
        device. Empty for a plain circuit.
    """

    name: str
    config: str
    build: Callable[[], wiring.Component]
    bounds: tuple[str, ...] = ()


def _each(
    name: str,
    component: Callable[[SPUConfig], wiring.Component],
    bound: str,
    has: Callable[[SPUConfig], bool] = lambda config: True,
) -> Iterable[Block]:
    """Return the block of each named configuration for which `has` returns True."""
    return (
        Block(name, config.name, lambda config=config: component(config), (bound,))
        for config in CONFIGS.values()
        if has(config)
    )


def _access_lfsr(config: SPUConfig) -> LFSR:
    """Return the generator for the choice of an access."""
    return LFSR(bits=config.access_bits, draws=config.selections_per_cycle, reset=LFSR_ACCESS_RESET)


_LANES = [lanes(width, ernd=ernd) for ernd in (False, True) for width in (1, 2, 4, 8)]
"""Configurations with 1, 2, 4 and 8 lanes, without and with FEAT_SPE_ERnd, for the interval counter."""

_PARTS = (
    Block("gate", ANY, lambda: plain.Gate(1)),
    Block("gated_word", ANY, lambda: plain.Gate(64)),
    Block("counter", ANY, plain.Counter),
    Block("saturating_counter", ANY, lambda: plain.SaturatingCounter(12)),
    Block("event_compare", ANY, lambda: plain.EventCompare(64)),
    Block("shift_register", ANY, lambda: plain.ShiftRegister(record_bytes=64, bus_bytes=8)),
    Block("pointer", ANY, lambda: plain.Pointer(step=64)),
    Block("multiplexer", ANY, lambda: plain.Multiplexer(ways=len(REGISTERS), width=64)),
    *_each("control", ProfilingControl, "gate", lambda config: config.pbt or config.name in ("minimal", "neoverse_n1")),
    *(Block("interval", config.name, lambda config=config: IntervalCounter(config), ("counter",)) for config in _LANES),
    Block("lfsr", "interval", lambda: LFSR(bits=8, draws=1, reset=LFSR_RESET), ("gate",)),
    *_each("lfsr", _access_lfsr, "gate", lambda config: config.access_bits > 0),
    *_each("access", AccessChoice, "gate", lambda config: config.access_bits > 0),
    *_each("previous", PreviousTarget, "gate", lambda config: config.pbt),
    *_each("inflight", InFlight, "saturating_counter"),
    *_each("completion", Completion, "gate"),
    *_each("filter", Filter, "event_compare"),
    Block("filter", ALL_EVENTS.name, lambda: Filter(ALL_EVENTS), ("event_compare",)),
    *_each("record", RecordBuilder, "gated_word"),
    *_each("serializer", Serializer, "shift_register"),
    *_each("aligner", Aligner, "gated_word", lambda config: config.layout.align < config.bus_bytes),
    *_each("buffer", ProfilingBuffer, "pointer"),
    *_each("registers", RegisterFile, "multiplexer"),
)
"""Plain circuits, and the blocks of the SPU. `control` is measured in configurations in which its circuit differs."""


def contained(config: SPUConfig) -> list[Block]:
    """Return the blocks of the SPU of a configuration that are measured alone."""
    counter = lanes(config.ops_per_cycle, ernd=config.ernd).name
    return [part for part in _PARTS if part.config in (config.name, counter)]


def _spu(config: SPUConfig) -> Block:
    """Return the complete SPU. The plain circuits of all its blocks bound it."""
    bounds = dict.fromkeys(bound for part in contained(config) for bound in part.bounds)
    return Block("spu", config.name, lambda: SPU(config), tuple(bounds))


BLOCKS = (*_PARTS, *map(_spu, CONFIGS.values()))
"""All circuits, the plain ones first."""


def bounds_of(block: Block) -> list[Block]:
    """Return the plain circuits that bound a block, for its configuration or for any; none for a plain circuit."""
    return [other for other in BLOCKS if other.name in block.bounds and other.config in (block.config, ANY)]


def select(names: Iterable[str]) -> list[Block]:
    """Return the blocks with these names and their bounds, in the order of `BLOCKS`; all blocks without names.

    Raises
    ------
    UserError
        If no block has one of the names.
    """
    names = list(names)
    known = list(dict.fromkeys(block.name for block in BLOCKS))
    for name in names:
        if name not in known:
            *others, last = known
            raise UserError(f"NAME must be {', '.join(others)} or {last}, not {name!r}")
    selected = [block for block in BLOCKS if not names or block.name in names]
    selected += [bound for block in selected for bound in bounds_of(block)]
    return [block for block in BLOCKS if block in selected]
