"""The named configurations, and some with what none of these has: whatever a record can hold."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from spurtle.arch import AltClk, PMSVer
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import ARM_MODEL, V1P4, Packet, Place, RecordLayout

__all__ = ["VARIANTS"]


def _place(packet: Packet) -> Place:
    return Place(((packet,),), elastic=True)


_EVERYTHING = RecordLayout(
    (*V1P4.places, Place(((Packet.IMP_COUNTER,),)), Place(((Packet.IMP_ADDRESS,),))), V1P4.align, V1P4.max_size
)
_OWN = RecordLayout(
    (
        *(place for place in ARM_MODEL.places if not {Packet.DATA_SOURCE, Packet.TOTAL} & {*place.packets}),
        _place(Packet.TOTAL),
        _place(Packet.ALTERNATE_ISSUE),
        _place(Packet.IMP_COUNTER),
        _place(Packet.IMP_ADDRESS),
    ),
    align=2,
    max_size=128,
)

VARIANTS: Mapping[str, SPUConfig] = MappingProxyType(
    {
        config.name: config
        for config in (
            *CONFIGS.values(),
            # Each packet that there is.
            replace(
                CONFIGS["v1p4"],
                name="everything",
                layout=_EVERYTHING,
                pbt_of_all=True,
                imp_counter=16,
                imp_address=31,
            ),
            # The core's own of all that can be its own, no ISSUE, no target of a branch that is not taken.
            SPUConfig(
                name="own",
                layout=_OWN,
                version=PMSVer.SPE_V1P1,
                sve=True,
                pbt=True,
                altclk=AltClk.IMPLEMENTATION_DEFINED,
                imp_counter=6,
                imp_address=7,
                events=frozenset({*range(16), 17, 18, *range(24, 32), *range(48, 64)}),
                events_bytes=8,
                not_taken_target=False,
            ),
        )
    }
)
