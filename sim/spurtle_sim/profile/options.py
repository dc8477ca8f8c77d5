"""What of a program is sampled: from the command line to the registers that say so."""

# Ref: DDI0487 M.a, D17.3 to D17.5; the order of accesses is that of the Linux driver.

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from spurtle import arch
from spurtle.config import SPUConfig
from spurtle.support.errors import UserError
from spurtle.support.numerals import decimal, number

from ..perf.format import Settings

__all__ = ["DEFAULT_INTERVAL", "Filters", "Sampling", "add_sampling_arguments", "parse_filters", "parse_sampling"]

_ALL = (1 << 64) - 1
_TYPES = {"branch": "B", "load": "LD", "store": "ST", "simd": "SIMD", "float": "FP"}
_CONFIG_BITS = {
    "B": 32, "LD": 33, "ST": 34, "Bm": 36, "LDm": 37, "STm": 38, "SIMD": 39, "SIMDm": 40, "FP": 41, "FPm": 42,
}  # fmt: skip
"""Bits of `perf_event_attr.config` by the fields of PMSFCR_EL1 that the Linux driver sets from them."""

_TS_ENABLE, _PA_ENABLE, _PCT_ENABLE, _JITTER, _DISCARD = 0, 1, 2, 16, 35
_ELSEWHERE = {
    "jitter": "jitter has an option of its own, --jitter",
    "ts_enable": "timestamps are always recorded",
    "pa_enable": "physical addresses are always recorded",
    "pct_enable": "timestamps always are of the physical counter",
}


DEFAULT_INTERVAL = 768
"""Operations between samples. One more passes at each, and 769 is a prime, which few loops have for their length."""


@dataclass(frozen=True)
class Filters:
    """Values for the registers that filter: those of Linux without any filter.

    `discard` sets PMBLIMITR_EL1.FM: records are counted, and none is written. Registers that a configuration has not
    are not written.
    """

    pmsfcr: int = 0
    pmsevfr: int = 0
    pmsnevfr: int = 0
    pmsdsfr: int = _ALL
    pmslatfr: int = 0
    discard: bool = False


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """What of EL0 is sampled, with the whole of what the SPU can collect.

    Parameters
    ----------
    interval : int
        PMSIRR_EL1.INTERVAL, in units of 256 operations.
    filters : Filters
    jitter : bool
        PMSIRR_EL1.RND: each sample is put off by a random number of operations.
    seed : int or None
        For the random numbers (IMP_PMSRNDR_EL1); None leaves them as they are after reset.
    """

    interval: int = DEFAULT_INTERVAL // 256
    filters: Filters = Filters()
    jitter: bool = False
    seed: int | None = None

    def writes(self, config: SPUConfig) -> Iterator[tuple[arch.Register, int]]:
        """Registers and their values, in the order in which Linux writes them. The last one enables sampling."""
        yield arch.PMSFCR_EL1, self.filters.pmsfcr
        yield arch.PMSEVFR_EL1, self.filters.pmsevfr
        if config.fne:
            yield arch.PMSNEVFR_EL1, self.filters.pmsnevfr
        if config.fds:
            yield arch.PMSDSFR_EL1, self.filters.pmsdsfr
        yield arch.PMSLATFR_EL1, self.filters.pmslatfr
        yield arch.PMSIRR_EL1, arch.PMSIRR_EL1.pack(INTERVAL=self.interval, RND=self.jitter)
        if self.seed is not None:
            # Two generators of one sequence: from the same seed they would go through the same bits.
            other = self.seed ^ arch.IMP_PMSRNDR_EL1.fields["STATE"].mask
            yield arch.IMP_PMSRNDR_EL1, arch.IMP_PMSRNDR_EL1.pack(STATE=self.seed, ACCESS=other)
        yield arch.PMSICR_EL1, 0
        if config.el2:  # as Linux leaves EL2 to its guest, or to itself
            yield arch.PMSCR_EL2, arch.PMSCR_EL2.pack(PA=1, PCT=arch.PCT.PHYSICAL)
        yield arch.PMSCR_EL1, arch.PMSCR_EL1.pack(E0SPE=1, CX=1, PA=1, TS=1, PCT=arch.PCT.PHYSICAL)

    def settings(self) -> Settings:
        """Return the members of `perf_event_attr` for which the Linux driver would sample the same."""
        filters = self.filters
        types = arch.PMSFCR_EL1.unpack(filters.pmsfcr)
        bits = {
            _TS_ENABLE: 1,
            _PA_ENABLE: 1,
            _PCT_ENABLE: 1,
            _JITTER: self.jitter,
            _DISCARD: filters.discard,
            **{bit: getattr(types, field) for field, bit in _CONFIG_BITS.items()},
        }
        return Settings(
            period=self.interval << 8,
            config=sum(bool(value) << bit for bit, value in bits.items()),
            config1=filters.pmsevfr,
            config2=filters.pmslatfr,
            config3=filters.pmsnevfr,
            config4=_ALL ^ filters.pmsdsfr,
        )


def parse_filters(config: SPUConfig, terms: list[str]) -> Filters:
    """Registers from the terms of `--filter`, which are spelled as those of perf's `arm_spe` event.

    As in the Linux driver, a filter is on if its value is not zero: FT with any type or mask, FE, FnE, FL, FDS.

    Parameters
    ----------
    config : SPUConfig
    terms : list of str
        Each one or more of `NAME=NUMBER`, with commas in between; `NAME` alone means 1.

    Raises
    ------
    UserError
        If a term is unknown, if `config` has no such filter, or if it has not what the number asks for.
    """
    largest = _largest(config)
    values: dict[str, int] = {}
    for term in ",".join(terms).split(",") if terms else ():
        name, value = _term(config, largest, term)
        if name in values:
            raise UserError(f"--filter must name each filter once, not {name} twice")
        values[name] = value

    def given(name: str) -> int:
        return values.get(name, 0)

    types = {field: given(f"{name}_filter") for name, field in _TYPES.items()}
    masks = {f"{field}m": given(f"{name}_filter_mask") for name, field in _TYPES.items()}
    enables = {
        "FT": any({*types.values(), *masks.values()}),
        "FE": given("event_filter") != 0,
        "FnE": given("inv_event_filter") != 0,
        "FL": given("min_latency") != 0,
        "FDS": given("inv_data_src_filter") != 0,
    }
    return Filters(
        pmsfcr=arch.PMSFCR_EL1.pack(**types, **masks, **enables),
        pmsevfr=given("event_filter"),
        pmsnevfr=given("inv_event_filter"),
        pmsdsfr=_ALL ^ given("inv_data_src_filter"),
        pmslatfr=given("min_latency"),
        discard=given("discard") != 0,
    )


def _largest(config: SPUConfig) -> dict[str, int]:
    """The filters of `config`, by perf's names, and the largest value of each."""
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


def _term(config: SPUConfig, largest: dict[str, int], term: str) -> tuple[str, int]:
    name, equals, text = term.strip().partition("=")
    if name in _ELSEWHERE:
        raise UserError(f"--filter must not have {name}: {_ELSEWHERE[name]}")
    if name not in largest:
        raise UserError(f"--filter must be of {', '.join(largest)} in {config.name}, not {term!r}")
    text = text if equals else "1"
    value = number(text)
    if value is None or value > largest[name]:
        most = largest[name] if largest[name] < _ALL else f"{_ALL:#x}"
        raise UserError(f"--filter {name} must be a number from 0 to {most} in {config.name}, not {text!r}")
    if name in ("event_filter", "inv_event_filter") and (missing := value & ~config.filter_events):
        there = _bits(config.filter_events)
        raise UserError(f"--filter {name} must be of event bits {there} in {config.name}, not {_bits(missing)}")
    return name, value


def _bits(mask: int) -> str:
    return ", ".join(str(bit) for bit in range(64) if mask >> bit & 1)


def add_sampling_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that say what is sampled, for `parse_sampling`, and where it goes."""
    parser.add_argument(
        "--interval",
        metavar="N",
        default=str(DEFAULT_INTERVAL),
        help=f"operations between samples, a multiple of 256; one more passes at each. Default: {DEFAULT_INTERVAL}, as "
        f"{DEFAULT_INTERVAL + 1} is a prime, which few loops have for their length",
    )
    parser.add_argument(
        "--jitter", action="store_true", help="put each sample off by a random number of operations below 256"
    )
    parser.add_argument("--seed", metavar="N", help="for other random numbers, from 1 to 2**32 - 1; with --jitter")
    parser.add_argument(
        "--filter",
        metavar="TERMS",
        action="append",
        default=[],
        help="which samples become records: terms of perf's arm_spe event, with commas in between, such as "
        "load_filter,min_latency=20. branch_filter, load_filter, store_filter, event_filter=BITS, min_latency=CYCLES "
        "and, where the configuration has them, simd_filter, float_filter, a _mask of each type, "
        "inv_event_filter=BITS, inv_data_src_filter=BITS, discard; may be repeated",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="perf.data",
        help="data for Linux perf, with the raw buffer beside it in FILE.spe; default: perf.data",
    )


def parse_sampling(config: SPUConfig, options: argparse.Namespace) -> Sampling:
    """What the options of `add_sampling_arguments` ask for. Raises UserError if that cannot be."""
    interval = decimal(options.interval)
    if interval is None or not 256 <= interval < 1 << 32 or interval % 256:
        raise UserError(f"--interval must be a multiple of 256 from 256 to 2**32 - 256, not {options.interval}")
    seed = None
    if options.seed is not None:
        if not options.jitter:
            raise UserError("--seed must come with --jitter: without it no random number is used")
        seed = decimal(options.seed)
        if seed is None or not 1 <= seed < 1 << 32:
            raise UserError(f"--seed must be a number from 1 to 2**32 - 1, not {options.seed}")
    return Sampling(
        interval=interval // 256, filters=parse_filters(config, options.filter), jitter=options.jitter, seed=seed
    )
