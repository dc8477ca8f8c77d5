"""Options of a profile: the sampled operations, from the command line to values of registers.

Registers are written in the order of the Linux driver.

Ref: DDI0487 M.a, D17.3 to D17.5.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from spurtle import arch
from spurtle.config import SPUConfig
from spurtle.support.arguments import check_range, check_type
from spurtle.support.errors import UserError
from spurtle.support.numerals import decimal, number

from ..perf.format import ConfigBit, Settings

__all__ = ["DEFAULT_INTERVAL", "Filters", "Sampling", "add_sampling_arguments", "parse_filters", "parse_sampling"]

_ALL = (1 << 64) - 1
_TYPES = {"branch": "B", "load": "LD", "store": "ST", "simd": "SIMD", "float": "FP"}
_CONFIG_BITS = {
    f"{field}{suffix}": ConfigBit[f"{name}_filter{term}".upper()]
    for name, field in _TYPES.items()
    for suffix, term in (("", ""), ("m", "_mask"))
}
"""Bits of `perf_event_attr.config` by the fields of PMSFCR_EL1 that the Linux driver sets from them."""

_NOT_FILTERS = {
    "jitter": "use the option --jitter",
    "ts_enable": "timestamps are always recorded",
    "pa_enable": "physical addresses are always recorded",
    "pct_enable": "timestamps are always those of the physical counter",
}
"""Terms of perf's event that are not filters: the reason why each is refused."""

_INTERVAL_UNIT = 256
"""Operations for each unit of PMSIRR_EL1.INTERVAL."""

_MAX_INTERVAL = arch.PMSIRR_EL1.fields["INTERVAL"].max_value * _INTERVAL_UNIT
_INTERVALS = "a multiple of 256 from 256 to 2**32 - 256"
"""Allowed intervals, for messages."""

_MAX_SEED = arch.IMP_PMSRNDR_EL1.fields["STATE"].max_value

DEFAULT_INTERVAL = 768
"""Default sample interval in operations.

Samples are one operation more apart. 769 is a prime, so the samples of a loop rarely hit the same operation each time.
"""


@dataclass(frozen=True)
class Filters:
    """Values of the filter registers. The defaults are those of Linux without a filter.

    `parse_filters` makes them from the terms of perf's `arm_spe` event.

    Parameters
    ----------
    pmsfcr, pmsevfr, pmsnevfr, pmsdsfr, pmslatfr : int
        Values of the registers with these names. Registers that a configuration does not implement are not written.
    discard : bool
        Discard mode (PMBLIMITR_EL1.FM): records are counted, and none is written.
    """

    pmsfcr: int = 0
    pmsevfr: int = 0
    pmsnevfr: int = 0
    pmsdsfr: int = _ALL
    pmslatfr: int = 0
    discard: bool = False


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling of EL0, with every packet that the SPU can record.

    Parameters
    ----------
    interval : int
        Sample interval in operations, like perf's option `-c`: a multiple of 256, from 256 to 2**32 - 256. The
        distance between samples is one operation more.
    filters : Filters
    jitter : bool
        PMSIRR_EL1.RND: each sample is delayed by a random number of operations below 256.
    seed : int or None
        State of the random number generator (IMP_PMSRNDR_EL1), from 1 to 2**32 - 1. Only with `jitter`. None keeps the
        state after reset.

    Raises
    ------
    TypeError
        If an argument is of another type.
    ValueError
        If `interval` or `seed` is out of range, or `seed` is given without `jitter`.
    """

    interval: int = DEFAULT_INTERVAL
    filters: Filters = Filters()
    jitter: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        check_type("interval", self.interval, int)
        check_type("filters", self.filters, Filters)
        check_type("jitter", self.jitter, bool)
        if not _is_interval(self.interval):
            raise ValueError(f"interval must be {_INTERVALS}, not {self.interval}")
        if self.seed is not None:
            check_type("seed", self.seed, int)
            check_range("seed", self.seed, 1, _MAX_SEED)
            if not self.jitter:
                raise ValueError(f"seed must be None without jitter, not {self.seed}")

    def check(self, config: SPUConfig) -> None:
        """Check that a configuration has these filters.

        Raises
        ------
        ValueError
            If it does not have one of them.
        """
        filters = self.filters
        if filters.discard and not config.discard_mode:
            raise ValueError(f"filters.discard must be False in {config.name}, which has no Discard mode")
        for name, register in (
            ("pmsfcr", arch.PMSFCR_EL1),
            ("pmsevfr", arch.PMSEVFR_EL1),
            ("pmsnevfr", arch.PMSNEVFR_EL1),
        ):
            value, writable = getattr(filters, name), config.writable(register)
            if value & ~writable:
                allowed = f"only have bits {_bits(writable)}" if writable else "be 0"
                raise ValueError(f"filters.{name} must {allowed} in {config.name}, not {value:#x}")
        if not config.fds and filters.pmsdsfr != _ALL:
            raise ValueError(f"filters.pmsdsfr must be {_ALL:#x} in {config.name}, which has no data source filter")
        check_range("filters.pmsdsfr", filters.pmsdsfr, 0, _ALL)
        check_range("filters.pmslatfr", filters.pmslatfr, 0, config.writable(arch.PMSLATFR_EL1))

    def writes(self, config: SPUConfig) -> Iterator[tuple[arch.Register, int]]:
        """Yield registers and their values, in the order in which Linux writes them. The last write enables sampling.

        Raises
        ------
        ValueError
            If the configuration does not have one of the filters.
        """
        self.check(config)
        yield arch.PMSFCR_EL1, self.filters.pmsfcr
        yield arch.PMSEVFR_EL1, self.filters.pmsevfr
        if config.fne:
            yield arch.PMSNEVFR_EL1, self.filters.pmsnevfr
        if config.fds:
            yield arch.PMSDSFR_EL1, self.filters.pmsdsfr
        yield arch.PMSLATFR_EL1, self.filters.pmslatfr
        yield arch.PMSIRR_EL1, arch.PMSIRR_EL1.pack(INTERVAL=self.interval // _INTERVAL_UNIT, RND=self.jitter)
        if self.seed is not None:
            # Both generators have the same sequence. With the same seed, their bits would be the same.
            access = self.seed ^ _MAX_SEED
            yield arch.IMP_PMSRNDR_EL1, arch.IMP_PMSRNDR_EL1.pack(STATE=self.seed, ACCESS=access)
        yield arch.PMSICR_EL1, 0
        if config.el2:  # the value that Linux leaves at EL2 for its guest or for itself
            yield arch.PMSCR_EL2, arch.PMSCR_EL2.pack(PA=1, PCT=arch.PCT.PHYSICAL)
        yield arch.PMSCR_EL1, arch.PMSCR_EL1.pack(E0SPE=1, CX=1, PA=1, TS=1, PCT=arch.PCT.PHYSICAL)

    def settings(self) -> Settings:
        """Return the members of `perf_event_attr` for which the Linux driver samples the same operations."""
        filters = self.filters
        types = arch.PMSFCR_EL1.unpack(filters.pmsfcr)
        bits = {
            ConfigBit.TS_ENABLE: 1,
            ConfigBit.PA_ENABLE: 1,
            ConfigBit.PCT_ENABLE: 1,
            ConfigBit.JITTER: self.jitter,
            ConfigBit.DISCARD: filters.discard,
            **{bit: getattr(types, field) for field, bit in _CONFIG_BITS.items()},
        }
        return Settings(
            period=self.interval,
            config=sum(bool(value) << bit for bit, value in bits.items()),
            config1=filters.pmsevfr,
            config2=filters.pmslatfr,
            config3=filters.pmsnevfr,
            config4=_ALL ^ filters.pmsdsfr,
        )


def parse_filters(config: SPUConfig, terms: list[str]) -> Filters:
    """Return the filters for terms of `--filter`, which have the names of the terms of perf's `arm_spe` event.

    As in the Linux driver, a filter is enabled if its value is not zero: FT with any type or mask, FE, FnE, FL, FDS.

    Parameters
    ----------
    config : SPUConfig
    terms : list of str
        Each has one or more of `NAME=NUMBER`, separated by commas. `NAME` alone means 1.

    Raises
    ------
    UserError
        If a term is unknown, or if `config` does not have the filter or a value for it.
    """
    max_values = _max_values(config)
    values: dict[str, int] = {}
    for term in ",".join(terms).split(",") if terms else ():
        name, value = _term(config, max_values, term)
        if name in values:
            raise UserError(f"--filter must name each filter once, not {name} twice")
        values[name] = value

    def value_of(name: str) -> int:
        return values.get(name, 0)

    types = {field: value_of(f"{name}_filter") for name, field in _TYPES.items()}
    masks = {f"{field}m": value_of(f"{name}_filter_mask") for name, field in _TYPES.items()}
    enables = {
        "FT": any({*types.values(), *masks.values()}),
        "FE": value_of("event_filter") != 0,
        "FnE": value_of("inv_event_filter") != 0,
        "FL": value_of("min_latency") != 0,
        "FDS": value_of("inv_data_src_filter") != 0,
    }
    return Filters(
        pmsfcr=arch.PMSFCR_EL1.pack(**types, **masks, **enables),
        pmsevfr=value_of("event_filter"),
        pmsnevfr=value_of("inv_event_filter"),
        pmsdsfr=_ALL ^ value_of("inv_data_src_filter"),
        pmslatfr=value_of("min_latency"),
        discard=value_of("discard") != 0,
    )


def _max_values(config: SPUConfig) -> dict[str, int]:
    """Return the greatest value of each filter of `config`, by perf's names."""
    types = [name for name, field in _TYPES.items() if field in config.filter_types]
    return {
        **{f"{name}_filter": 1 for name in types},
        **{f"{name}_filter_mask": 1 for name in types if config.eft},
        "event_filter": _ALL,
        **({"inv_event_filter": _ALL} if config.fne else {}),
        "min_latency": (1 << config.counter_bits) - 1,
        **({"inv_data_src_filter": _ALL} if config.fds else {}),
        **({"discard": 1} if config.discard_mode else {}),
    }


def _term(config: SPUConfig, max_values: dict[str, int], term: str) -> tuple[str, int]:
    name, equals, text = term.strip().partition("=")
    if name in _NOT_FILTERS:
        raise UserError(f"--filter must not have {name}: {_NOT_FILTERS[name]}")
    if name not in max_values:
        raise UserError(f"--filter must be one of {', '.join(max_values)} in {config.name}, not {term!r}")
    text = text if equals else "1"
    value = number(text)
    if value is None or value > max_values[name]:
        maximum = max_values[name] if max_values[name] < _ALL else f"{_ALL:#x}"
        raise UserError(f"--filter {name} must be a number from 0 to {maximum} in {config.name}, not {text!r}")
    if name in ("event_filter", "inv_event_filter") and (missing := value & ~config.filter_events):
        events = _bits(config.filter_events)
        raise UserError(f"--filter {name} must only have event bits {events} in {config.name}, not {_bits(missing)}")
    return name, value


def _is_interval(interval: int) -> bool:
    return _INTERVAL_UNIT <= interval <= _MAX_INTERVAL and interval % _INTERVAL_UNIT == 0


def _bits(mask: int) -> str:
    return ", ".join(str(bit) for bit in range(64) if mask >> bit & 1)


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for `parse_sampling`, and the option of the output file."""
    parser.add_argument(
        "--interval",
        metavar="N",
        default=str(DEFAULT_INTERVAL),
        help=f"operations between samples, a multiple of 256; samples are one operation more apart. Default: "
        f"{DEFAULT_INTERVAL}, because {DEFAULT_INTERVAL + 1} is a prime and few loops have that length",
    )
    parser.add_argument(
        "--jitter", action="store_true", help="delay each sample by a random number of operations, below 256"
    )
    parser.add_argument("--seed", metavar="N", help="seed of the random numbers, from 1 to 2**32 - 1; with --jitter")
    parser.add_argument(
        "--filter",
        metavar="TERMS",
        action="append",
        default=[],
        help="filters of the samples: terms of perf's arm_spe event, separated by commas, such as "
        "load_filter,min_latency=20. The terms are branch_filter, load_filter, store_filter, event_filter=BITS, "
        "min_latency=CYCLES and, if the configuration has them, simd_filter, float_filter, a _mask of each type, "
        "inv_event_filter=BITS, inv_data_src_filter=BITS, discard; may be repeated",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="perf.data",
        help="file for Linux perf; the raw buffer is written to FILE.spe, exact counts to FILE.exact.json; "
        "default: perf.data",
    )


def parse_sampling(config: SPUConfig, options: argparse.Namespace) -> Sampling:
    """Return the sampling that the options of `add_sampling_arguments` select.

    Raises
    ------
    UserError
        If the value of an option is not allowed.
    """
    interval = decimal(options.interval)
    if interval is None or not _is_interval(interval):
        raise UserError(f"--interval must be {_INTERVALS}, not {options.interval}")
    seed = None
    if options.seed is not None:
        if not options.jitter:
            raise UserError("--seed must come with --jitter: no random number is used without it")
        seed = decimal(options.seed)
        if seed is None or not 1 <= seed <= _MAX_SEED:
            raise UserError(f"--seed must be a number from 1 to 2**32 - 1, not {options.seed}")
    return Sampling(interval=interval, filters=parse_filters(config, options.filter), jitter=options.jitter, seed=seed)
