"""Configurations of one feature each: `minimal` and nothing else that the feature does not bring along."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from types import MappingProxyType

from spurtle.arch import AltClk, PMSVer
from spurtle.config import CONFIGS, SPUConfig, UnpredictableFilter
from spurtle.config.record_layouts import MINIMAL, V1P4, Packet, Place, RecordLayout

__all__ = ["FEATURES", "distinct"]


def _with(name: str, **choices: object) -> SPUConfig:
    return replace(CONFIGS["minimal"], name=f"minimal_{name}", **choices)  # pyright: ignore[reportArgumentType]


def _and(packet: Packet) -> RecordLayout:
    return replace(MINIMAL, places=(*MINIMAL.places, Place(((packet,),))))


_DATA_SOURCE = {"layout": _and(Packet.DATA_SOURCE), "data_source_bytes": 1}
_VECTORS = {"events": frozenset({*range(8), 17, 18}), "events_bytes": 4}
_EL2 = {"el2": True, "layout": _and(Packet.CONTEXT_EL2)}
_APART = V1P4.without(Packet.DATA_SOURCE, Packet.PREVIOUS_TARGET, Packet.ALTERNATE_ISSUE)
# Every place that can be left out, and a place of two runs that has room for more than either.
_ELASTIC = tuple(replace(place, elastic=True, least=12 * (len(place.runs) > 1)) for place in MINIMAL.places)
# The end of the record shares its step with the packet before it.
_ENDS = (_ELASTIC[1], *_ELASTIC[4:], _ELASTIC[0], *_ELASTIC[2:4])

FEATURES: Mapping[str, SPUConfig] = MappingProxyType(
    {
        config.name: config
        for config in (
            _with("ernd", ernd=True),
            _with("counters16", counter_bits=16),
            _with("data_source", **_DATA_SOURCE),
            _with("eft", version=PMSVer.SPE_V1P4, fne=True, eft=True, fpf=True),
            _with("fne", fne=True),
            _with("fds", version=PMSVer.SPE_V1P3, fne=True, fds=True, **_DATA_SOURCE),
            _with("v1p2", version=PMSVer.SPE_V1P2, fne=True),
            _with("mops", version=PMSVer.SPE_V1P3, fne=True, mops=True),
            _with("gcs", version=PMSVer.SPE_V1P4, fne=True, gcs=True, crr=True, layout=_APART),
            _with("unpredictable", fne=True, unpredictable_filter=UnpredictableFilter.DISCARD),
            _with("mte", mte=True),
            _with("tags", version=PMSVer.SPE_V1P3, fne=True, mte=True),
            _with("el2", **_EL2),
            _with("el3", el3=True),
            _with("sel2", el3=True, sel2=True, **_EL2),
            _with("ecv", ecv=True),
            _with("ecv_poff", ecv=True, ecv_poff=True, **_EL2),
            _with("nv2", nv2=True, **_EL2),
            _with("rme", version=PMSVer.SPE_V1P2, fne=True, rme=True, el3=True, sel2=True, **_EL2),
            _with("sve", version=PMSVer.SPE_V1P1, sve=True, **_VECTORS),
            _with("sve_v1p2", version=PMSVer.SPE_V1P2, fne=True, sve=True, **_VECTORS),
            _with("sme", version=PMSVer.SPE_V1P1, sme=True, **_VECTORS),
            _with("sme_fpf", version=PMSVer.SPE_V1P4, fne=True, eft=True, sme=True, fpf=True, **_VECTORS),
            _with(
                "spe_sme",
                version=PMSVer.SPE_V1P4,
                fne=True,
                sme=True,
                spe_sme=True,
                events=frozenset({*range(8), 17, 18, 24, 25}),
                events_bytes=4,
            ),
            _with("pbt", pbt=True, layout=_and(Packet.PREVIOUS_TARGET)),
            _with("pbt_of_all", pbt=True, pbt_of_all=True, layout=_and(Packet.PREVIOUS_TARGET)),
            _with("crr", crr=True),
            _with("altclk", altclk=AltClk.IMPLEMENTATION_DEFINED, layout=_and(Packet.ALTERNATE_ISSUE)),
            _with("imp_counter", imp_counter=6, layout=_and(Packet.IMP_COUNTER)),
            _with("imp_counter_extended", imp_counter=16, layout=_and(Packet.IMP_COUNTER)),
            _with("imp_address", imp_address=7, layout=_and(Packet.IMP_ADDRESS)),
            _with("imp_address_extended", imp_address=31, layout=_and(Packet.IMP_ADDRESS)),
            _with("no_issue", layout=MINIMAL.without(Packet.ISSUE)),
            _with("no_target", not_taken_target=False),
            _with("padded_last", layout=replace(MINIMAL, padding_last=True)),
            _with("packed", layout=RecordLayout(_ELASTIC, align=1, max_size=64)),
            _with("packed_last", layout=RecordLayout(_ENDS, align=8, max_size=64, padding_last=True), bus_bytes=16),
        )
    }
)
"""By name. What a feature needs comes with it: a data source to filter by, the version that defines its packets, a
place in the record, the Exception levels that it is of."""


def distinct(configs: Iterable[SPUConfig], choices: str) -> Iterator[SPUConfig]:
    """The first of all that agree in the `choices`, names of attributes: those that change a circuit."""
    seen: set[object] = set()
    for config in configs:
        made = attrgetter(*choices.split())(config)
        if made not in seen:
            seen.add(made)
            yield config
