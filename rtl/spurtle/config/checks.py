"""Checks of the choices that an SPU is built from, and of choices that exclude each other.

Ref: DDI0487 M.a, D17.3 to D17.7, D18.2.
"""

import re
from collections.abc import Iterable
from dataclasses import fields
from itertools import combinations, product

from ..arch import PAGE_BYTES, AltClk, PMSVer
from ..arch.events import defined_events, required_events
from ..support.arguments import check_choice, check_member, check_range, check_type
from .choices import OPTIONAL_PACKETS, Choices, UnpredictableFilter
from .record_layouts import Packet, RecordLayout

__all__ = ["check"]

_NEEDED_VERSION = {
    "rme": PMSVer.SPE_V1P2,
    "fds": PMSVer.SPE_V1P3,
    "eft": PMSVer.SPE_V1P4,
    "fpf": PMSVer.SPE_V1P4,
    "mops": PMSVer.SPE_V1P3,
    "gcs": PMSVer.SPE_V1P4,
    "sve": PMSVer.SPE_V1P1,
    "sme": PMSVer.SPE_V1P1,
    "spe_sme": PMSVer.SPE_V1P4,
}
"""First version of FEAT_SPE that permits a feature. It is the version that defines the packets of the feature (D18.2.6,
D18.2.7), or the version that is required by the architecture that introduces the feature: FEAT_RME needs Armv9.2,
FEAT_SPE_FDS Armv8.8, FEAT_SPE_EFT and FEAT_SPE_FPF Armv9.4."""

_NEEDED_FEATURES = {
    "eft": ("fpf",),
    "fpf": ("eft",),
    "gcs": ("crr",),
    "spe_sme": ("sme",),
    "pbt_of_all": ("pbt",),
    "nv2": ("el2",),
    "sel2": ("el2", "el3"),
    "ecv_poff": ("el2", "ecv"),
    "fgt": ("el2",),
    "fgt2": ("fgt",),
    "rme": ("el2", "el3", "sel2"),
}
"""Features that each feature needs."""

_IMPLEMENTATION_DEFINED = (0, 6, 7, *range(16, 32))
"""IMPLEMENTATION DEFINED values of INDEX in an Address or Counter packet (D18.2.1, D18.2.3), and 0 for no packet."""

_OPTIONAL = frozenset({Packet.CONTEXT_EL2, Packet.ISSUE})
"""Packets that a layout may omit: CONTEXTIDR_EL2 is never collected without EL2, and an implementation can have a fixed
issue latency (D17.6)."""

_OPTION_SUFFIX = re.compile("_(?:axi4|axi4_apb|outstanding_[0-9]+|async|low)$")
"""Suffixes of module names that stand for a shell, its outstanding records and the reset (`spurtle.export.verilog`).

A configuration with such a name could have the module name of another one with these options.
"""

_OF_ACCESSES = frozenset({Packet.VA, Packet.PA, Packet.TRANSLATION, Packet.DATA_SOURCE})
"""Packets of operations that access memory."""


def check(choices: Choices) -> None:
    """Check the choices of a configuration.

    Raises
    ------
    TypeError
        If a choice is of another type.
    ValueError
        If a choice is out of range, or two exclude each other; the message names both.
    """
    for field in fields(choices):
        if field.type in (str, bool, int, RecordLayout):
            check_type(field.name, getattr(choices, field.name), field.type)
    check_type("events", choices.events, frozenset)
    for event in choices.events:
        check_type("an event", event, int)
    # `IntervalCounter` numbers the lanes in at most two groups of four.
    check_range("ops_per_cycle", choices.ops_per_cycle, 1, 8)
    check_range("slots", choices.slots, 1, 8)
    check_range("outstanding", choices.outstanding, 1, 8)
    # Sizes that a field encodes: PMSIDR_EL1.CountSize (D24.7), and SZ of packets (D18.2.4, D18.2.6).
    check_choice("counter_bits", choices.counter_bits, (12, 16))
    check_choice("events_bytes", choices.events_bytes, (1, 2, 4, 8))
    check_choice("data_source_bytes", choices.data_source_bytes, (0, 1, 2))
    # At most the smallest maximum size of a record: a record has one or more beats.
    check_choice("bus_bytes", choices.bus_bytes, (4, 8, 16, 32, 64))
    check_member("version", choices.version, PMSVer)
    check_member("altclk", choices.altclk, AltClk)
    check_choice("imp_counter", choices.imp_counter, _IMPLEMENTATION_DEFINED)
    check_choice("imp_address", choices.imp_address, _IMPLEMENTATION_DEFINED)
    if choices.unpredictable_filter not in [*UnpredictableFilter]:
        raise ValueError(
            "unpredictable_filter must be UnpredictableFilter.NO_EFFECT or UnpredictableFilter.DISCARD, "
            f"not {choices.unpredictable_filter!r}"
        )
    if not (choices.name.isidentifier() and choices.name.isascii()):
        raise ValueError(f"name must be an ASCII identifier, because it names a Verilog module, not {choices.name!r}")
    if suffix := _OPTION_SUFFIX.search(choices.name):
        raise ValueError(
            f"name must not end in {suffix[0]}, which options of `spurtle verilog` append to names of modules, "
            f"not {choices.name!r}"
        )
    _check_features(choices)
    _check_events(choices)
    _check_layout(choices)


def _check_events(choices: Choices) -> None:
    if missing := required_events(choices.version, choices.features) - choices.events:
        raise ValueError(
            f"events must include {sorted(map(int, missing))} (not optional), not just {sorted(choices.events)}"
        )
    if outside := [event for event in sorted(choices.events) if not 0 <= event < 8 * choices.events_bytes]:
        raise ValueError(f"events must be below 8 * events_bytes = {8 * choices.events_bytes}, not {outside[-1]}")
    if undefined := choices.events - defined_events(choices.version, choices.features):
        vectors = (f"{name} {getattr(choices, name)}" for name in ("sve", "sme", "spe_sme"))
        raise ValueError(
            f"events must be defined in version {_version(choices)} with {', '.join(vectors)}, not {sorted(undefined)}"
        )


def _check_features(choices: Choices) -> None:
    for feature, needed in _NEEDED_VERSION.items():
        if getattr(choices, feature) and choices.version < needed:
            raise ValueError(f"version must be {needed.name} or later with {feature}, not {_version(choices)}")
    for feature, needed in _NEEDED_FEATURES.items():
        for other in needed:
            if getattr(choices, feature) and not getattr(choices, other):
                raise ValueError(f"{other} must be True with {feature}, not False")
    if choices.version >= PMSVer.SPE_V1P2 and not choices.fne:
        raise ValueError(f"fne must be True from version {PMSVer.SPE_V1P2.name} on, not False in {_version(choices)}")
    if choices.fds and choices.el2 and not choices.fgt2:
        raise ValueError("fgt2 must be True with fds and el2, not False")
    if choices.fds and not choices.data_source_bytes:
        raise ValueError("data_source_bytes must be 1 or 2 with fds, not 0")
    if choices.version >= PMSVer.SPE_V1P4 and choices.data_source_bytes and not choices.fds:
        raise ValueError(
            f"fds must be True with a data source from version {PMSVer.SPE_V1P4.name} on, not False with "
            f"data_source_bytes {choices.data_source_bytes}"
        )
    if choices.altclk is AltClk.SMCU and not choices.spe_sme:
        raise ValueError("altclk must not be AltClk.SMCU without spe_sme")


def _check_layout(choices: Choices) -> None:
    layout = choices.layout
    packets = layout.packets
    if repeated := {packet for packet in packets if packets.count(packet) > 1}:
        raise ValueError(f"layout must have one field for each packet, not more for {_packet_names(repeated)}")
    for packet, name in OPTIONAL_PACKETS.items():
        value = getattr(choices, name)
        if bool(value) != (packet in packets):
            has = "a field" if packet in packets else "no field"
            raise ValueError(
                f"{name} must be {'set' if packet in packets else '0'} where the layout has {has} for "
                f"{packet.value}, not {value!r}"
            )
    if choices.el2 and Packet.CONTEXT_EL2 not in packets:
        raise ValueError("layout must have a field for CONTEXT_EL2 with el2, in which it may be collected")
    if missing := {*Packet} - {*OPTIONAL_PACKETS} - _OPTIONAL - {*packets}:
        raise ValueError(f"layout must have a field for {_packet_names(missing)}")
    for field in layout.fields:
        for one, other in combinations(field.runs, 2):
            for pair in product(one, other):
                if not _exclusive(choices, *pair):
                    raise ValueError(
                        f"layout must have separate fields for {_packet_names(pair)}, because one operation can have "
                        f"both in {choices.name}"
                    )
    # Sizes that PMSIDR_EL1.MaxSize and PMBIDR_EL1.Align encode (D24.7).
    check_choice("layout.max_size", layout.max_size, (64, 128, 256, 512, 1024, 2048))
    check_choice("layout.align", layout.align, tuple(1 << bit for bit in range(12)))
    ends = layout.offsets(choices.packet_bytes)
    if outside := [packet for packet in ends if ends[packet] + choices.packet_bytes[packet] > layout.max_size]:
        raise ValueError(
            f"layout.max_size must be at least {layout.longest(choices.packet_bytes)} in {choices.name}, "
            f"not {layout.max_size}: {_packet_names(outside)} would not fit"
        )
    if not layout.packed and layout.align != layout.max_size:
        raise ValueError(
            f"layout.align must be layout.max_size, {layout.max_size}, where no field is elastic, not {layout.align}"
        )
    # Where padding precedes the end of a record, `Packer` sets the low bits of the position of the end. Its size must
    # be 1 modulo the alignment for that: 9 bytes of a Timestamp packet, 1 byte of an End packet.
    if layout.packed and layout.align > 8:
        raise ValueError(f"layout.align must be 1, 2, 4 or 8 where a field is elastic, not {layout.align}")
    # `WritePointer` finds the page of PMBPTR_EL1 from one bit of the page.
    if choices.outstanding * layout.max_size > PAGE_BYTES:
        raise ValueError(
            f"outstanding must be at most {PAGE_BYTES} / layout.max_size = {PAGE_BYTES // layout.max_size}, "
            f"not {choices.outstanding}"
        )
    # Padding of a packed record stays within one beat.
    if layout.packed and choices.bus_bytes < layout.align:
        raise ValueError(
            f"bus_bytes must be at least layout.align, {layout.align}, with a packed layout, not {choices.bus_bytes}"
        )


def _exclusive(choices: Choices, one: Packet, other: Packet) -> bool:
    """Return whether no operation has both packets. A branch accesses only the Guarded control stack (D17.6.3)."""
    pair = {one, other}
    return not choices.gcs and Packet.TARGET in pair and bool(pair & _OF_ACCESSES)


def _version(choices: Choices) -> str:
    return PMSVer(choices.version).name


def _packet_names(packets: Iterable[Packet]) -> str:
    return ", ".join(sorted(packet.value for packet in packets))
