"""Configurations of one feature each: `minimal` and nothing else that the feature does not bring along."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from spurtle.arch import PMSVer
from spurtle.config import CONFIGS, SPUConfig, UnpredictableFilter
from spurtle.layout import MINIMAL, V1P4, Packet, RecordLayout

__all__ = ["FEATURES"]


def _with(name: str, **choices: object) -> SPUConfig:
    return replace(CONFIGS["minimal"], name=f"minimal_{name}", **choices)  # pyright: ignore[reportArgumentType]


_DATA_SOURCE = {
    "layout": RecordLayout(MINIMAL.size, (*MINIMAL.places, (Packet.DATA_SOURCE,))),
    "data_source_bytes": 1,
}
_APART = RecordLayout(V1P4.size, tuple(place for place in V1P4.places if place != (Packet.DATA_SOURCE,)))

FEATURES: Mapping[str, SPUConfig] = MappingProxyType(
    {
        config.name: config
        for config in (
            _with("ernd", ernd=True),
            _with("counters16", counter_bits=16),
            _with("data_source", **_DATA_SOURCE),
            _with("eft", eft=True),
            _with("fne", fne=True),
            _with("fds", fds=True, **_DATA_SOURCE),
            _with("v1p2", version=PMSVer.SPE_V1P2, fne=True),
            _with("mops", version=PMSVer.SPE_V1P3, fne=True, mops=True),
            _with("gcs", version=PMSVer.SPE_V1P4, fne=True, gcs=True, layout=_APART),
            _with("unpredictable", fne=True, unpredictable_filter=UnpredictableFilter.DISCARD),
        )
    }
)
"""By name. What a feature needs comes with it: a data source to filter by, the version that defines its packets."""
