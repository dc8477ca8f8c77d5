"""Random configurations: any features, events, sizes and record layouts that `SPUConfig` accepts."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from random import Random
from typing import Any

from spurtle.arch import AltClk, PMSVer
from spurtle.config import SPUConfig, UnpredictableFilter
from spurtle.config.record_layouts import LAST, Packet, RecordField, RecordLayout

__all__ = ["random_configuration"]

_FEATURES = tuple(field.name for field in fields(SPUConfig) if field.type is bool)

_SIZES = (64, 128, 256, 512, 1024, 2048)

_OF_ACCESSES = (Packet.VA, Packet.PA, Packet.TRANSLATION, Packet.DATA_SOURCE)
"""Packets that can share a record field with the target of a branch."""


def random_configuration(random: Random) -> SPUConfig:
    """Return a random configuration.

    Draws are repeated until `SPUConfig` accepts one, so that only `SPUConfig` says which choices exclude each other.
    """
    while True:
        with suppress(ValueError):
            return _with_events(random, _drawn(random))


def _drawn(random: Random) -> SPUConfig:
    """Draw a configuration without optional events. Raise ValueError if choices exclude each other."""
    version = random.choice([*PMSVer, PMSVer.SPE_V1P4])
    density = random.choice([0.2, 0.5, 0.9])
    choices: dict[str, Any] = {name: random.random() < density for name in _FEATURES}
    choices |= {
        "fne": choices["fne"] or version >= PMSVer.SPE_V1P2,
        "altclk": random.choice([*AltClk]),
        "imp_counter": random.choice([0, 6, 7, 16, 31]),
        "imp_address": random.choice([0, 6, 7, 16, 31]),
        "data_source_bytes": random.choice([0, 1, 2]),
    }
    events_bytes = random.choice([1, 2, 4, 4, 8])
    events = {*range(8), *_scalable_events(choices)}
    return SPUConfig(
        name="drawn",
        version=version,
        ops_per_cycle=random.randint(1, 8),
        slots=random.randint(1, 8),
        unpredictable_filter=random.choice([*UnpredictableFilter]),
        counter_bits=random.choice([12, 16]),
        events=frozenset(event for event in events if event < 8 * events_bytes),
        events_bytes=events_bytes,
        bus_bytes=random.choice([4, 8, 8, 16, 32, 64]),
        layout=_layout(random, choices),
        **choices,
    )


def _scalable_events(choices: dict[str, Any]) -> Iterator[int]:
    if choices["sve"] or choices["sme"]:
        yield from (17, 18)
    if choices["spe_sme"]:
        yield from (24, 25)


def _with_events(random: Random, config: SPUConfig) -> SPUConfig:
    """Return the configuration with random events added or removed, as far as `SPUConfig` accepts each change."""
    density = random.choice([0.1, 0.5, 0.9])
    for event in range(8 * config.events_bytes):
        if random.random() < density:
            with suppress(ValueError):
                config = replace(config, events=config.events ^ {event})
    return config


def _layout(random: Random, choices: dict[str, Any]) -> RecordLayout:
    """Return a layout with each packet of `choices` once. The target may share a field with packets of accesses."""
    present = {
        Packet.DATA_SOURCE: choices["data_source_bytes"],
        Packet.PREVIOUS_TARGET: choices["pbt"],
        Packet.ALTERNATE_ISSUE: choices["altclk"],
        Packet.IMP_COUNTER: choices["imp_counter"],
        Packet.IMP_ADDRESS: choices["imp_address"],
        Packet.CONTEXT_EL2: choices["el2"] or random.random() < 0.2,
        Packet.ISSUE: random.random() < 0.8,
    }
    packets = [packet for packet in Packet if packet not in LAST and present.get(packet, True)]
    random.shuffle(packets)
    packed = random.random() < 0.6
    fields = [
        RecordField(
            runs, elastic=packed and random.random() < 0.6, min_size=random.choice([0, 0, 0, random.randrange(24)])
        )
        for runs in _runs(random, packets)
    ]
    max_size = random.choice([*_SIZES, 64, 64, 128, 128, 128, 256])
    align = random.choice([1, 2, 4, 8]) if any(field.elastic for field in fields) else max_size
    return RecordLayout(tuple(fields), align, max_size, random.random() < 0.5)


def _runs(random: Random, packets: list[Packet]) -> Iterator[tuple[tuple[Packet, ...], ...]]:
    """Yield the runs of packets of each field, in order. `packets` is empty then."""
    target_shares = random.random() < 0.5
    if target_shares:
        packets.remove(Packet.TARGET)
    while packets:
        run = tuple(packets.pop() for _ in range(min(len(packets), random.choice([1, 1, 1, 2, 3]))))
        if target_shares and {*run} <= {*_OF_ACCESSES}:
            target_shares = False
            yield (run, (Packet.TARGET,)) if random.random() < 0.5 else ((Packet.TARGET,), run)
        else:
            yield (run,)
    if target_shares:
        yield ((Packet.TARGET,),)
