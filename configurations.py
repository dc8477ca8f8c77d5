"""Configurations for tests, proofs, benchmarks and campaigns, in addition to the named ones. Each has its reason."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import attrgetter
from types import MappingProxyType

from spurtle.arch import AltClk, PMSVer
from spurtle.arch.events import defined_events
from spurtle.config import CONFIGS, SPUConfig, UnpredictableFilter
from spurtle.config.record_layouts import ARM_MODEL, MINIMAL, NEOVERSE_N1, V1P4, Packet, RecordField, RecordLayout

__all__ = [
    "ALL_EVENTS", "EVERY_EVENT", "FAST", "FEATURES", "FOR_BLOCKS", "FOR_FILTERS", "FOR_RECORDS", "FOR_SPUS",
    "IMP_PACKETS", "NARROW", "OUTSTANDING", "SLOTS", "V1P1", "distinct", "lanes",
]  # fmt: skip

FAST = ("minimal", "v1p4", "everything", "unnamed")
"""Configurations in which the fast tier tests a block: no optional feature, all features, all packets, and choices that
no named configuration has.
"""


EVERY_EVENT = defined_events(PMSVer.SPE_V1P4, CONFIGS["v1p4"].features)
"""All events that an SPU can record."""


def _by_name(*configs: SPUConfig) -> Mapping[str, SPUConfig]:
    return MappingProxyType({config.name: config for config in configs})


# One feature each: `minimal` with that feature and what it needs.


def _with(name: str, **choices: object) -> SPUConfig:
    return replace(CONFIGS["minimal"], name=f"minimal_{name}", **choices)  # pyright: ignore[reportArgumentType]


def _adding(packet: Packet) -> RecordLayout:
    return replace(MINIMAL, fields=(*MINIMAL.fields, RecordField(((packet,),))))


_DATA_SOURCE = {"layout": _adding(Packet.DATA_SOURCE), "data_source_bytes": 1}
_VECTORS = {"events": frozenset({*range(8), 17, 18}), "events_bytes": 4}
_EL2 = {"el2": True, "layout": _adding(Packet.CONTEXT_EL2)}
# FEAT_GCS needs separate fields for VA and TARGET: one operation can have both.
_SEPARATE = V1P4.without(Packet.DATA_SOURCE, Packet.PREVIOUS_TARGET, Packet.ALTERNATE_ISSUE)
# All fields are elastic. The field with two runs is larger than both of them.
_ELASTIC = tuple(replace(field, elastic=True, min_size=12 * (len(field.runs) > 1)) for field in MINIMAL.fields)
# The end of the record shares a step with the preceding packet.
_END_IN_LAST_STEP = (_ELASTIC[1], *_ELASTIC[4:], _ELASTIC[0], *_ELASTIC[2:4])

FEATURES = _by_name(
    _with("ernd", ernd=True),
    _with("counters16", counter_bits=16),
    # Data sources without the filter by data source.
    _with("data_source", **_DATA_SOURCE),
    _with("eft", version=PMSVer.SPE_V1P4, fne=True, eft=True, fpf=True),
    _with("fne", fne=True),
    _with("fds", version=PMSVer.SPE_V1P3, fne=True, fds=True, **_DATA_SOURCE),
    # Only the version: predicates of loads, and Discard mode.
    _with("v1p2", version=PMSVer.SPE_V1P2, fne=True),
    _with("mops", version=PMSVer.SPE_V1P3, fne=True, mops=True),
    _with("gcs", version=PMSVer.SPE_V1P4, fne=True, gcs=True, crr=True, layout=_SEPARATE),
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
    # From FEAT_SPEv1p2 on a load has a predicate.
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
    _with("pbt", pbt=True, layout=_adding(Packet.PREVIOUS_TARGET)),
    _with("pbt_of_all", pbt=True, pbt_of_all=True, layout=_adding(Packet.PREVIOUS_TARGET)),
    _with("crr", crr=True),
    _with("altclk", altclk=AltClk.IMPLEMENTATION_DEFINED, layout=_adding(Packet.ALTERNATE_ISSUE)),
    # An IMPLEMENTATION DEFINED packet with a short header, or with an extended one.
    _with("imp_counter", imp_counter=6, layout=_adding(Packet.IMP_COUNTER)),
    _with("imp_counter_extended", imp_counter=16, layout=_adding(Packet.IMP_COUNTER)),
    _with("imp_address", imp_address=7, layout=_adding(Packet.IMP_ADDRESS)),
    _with("imp_address_extended", imp_address=31, layout=_adding(Packet.IMP_ADDRESS)),
    _with("no_issue", layout=MINIMAL.without(Packet.ISSUE)),
    _with("no_target", not_taken_target=False),
    _with("padded_last", layout=replace(MINIMAL, padding_last=True)),
    # All fields are elastic: records of several sizes that begin at any byte, or are padded after the last packet.
    _with("packed", layout=RecordLayout(_ELASTIC, align=1, max_size=64)),
    _with("packed_last", layout=RecordLayout(_END_IN_LAST_STEP, align=8, max_size=64, padding_last=True), bus_bytes=16),
)
"""`minimal` with one feature each, by name. Each has what the feature needs: a data source for the filter, the version
that defines its packets, a field in the record, its Exception levels."""


# Blocks.

FOR_BLOCKS = _by_name(
    *CONFIGS.values(),
    # Choices that no named configuration has, such as SPEv1p4 without FEAT_GCS.
    replace(
        CONFIGS["v1p4"],
        name="unnamed",
        gcs=False,
        layout=RecordLayout(
            (
                *(replace(field, elastic=number % 3 > 0) for number, field in enumerate(V1P4.fields)),
                RecordField(((Packet.IMP_ADDRESS, Packet.IMP_COUNTER),), elastic=True, min_size=15),
            ),
            align=1,
            max_size=256,
        ),
        ops_per_cycle=3,
        slots=3,
        unpredictable_filter=UnpredictableFilter.DISCARD,
        altclk=AltClk.IMPLEMENTATION_DEFINED,
        events=EVERY_EVENT,
        events_bytes=8,
        bus_bytes=4,
        pbt_of_all=True,
        imp_counter=6,
        imp_address=31,
        not_taken_target=False,
    ),
    # An older version without FEAT_SPE_FnE has other events, and events that can be recorded but not selected.
    # FEAT_SME is present without FEAT_SPE_SME. Records of one size are padded after the last packet.
    SPUConfig(
        name="unnamed_v1p1",
        layout=replace(NEOVERSE_N1, align=128, max_size=128, padding_last=True),
        version=PMSVer.SPE_V1P1,
        slots=2,
        unpredictable_filter=UnpredictableFilter.DISCARD,
        sve=True,
        sme=True,
        # EL3 without EL2.
        el3=True,
        events=frozenset({*range(16), 17, 18, *range(24, 32)}),
        events_bytes=4,
        data_source_bytes=1,
        bus_bytes=64,
    ),
    # Records that begin at any even byte of a wide bus, padded after the last packet. EL2 without EL3.
    SPUConfig(
        name="unnamed_packed",
        layout=RecordLayout(
            (
                *ARM_MODEL.without(Packet.PREVIOUS_TARGET, Packet.DATA_SOURCE).fields,
                RecordField(((Packet.IMP_COUNTER,),), elastic=True),
                RecordField(((Packet.IMP_ADDRESS,),), elastic=True),
            ),
            align=2,
            max_size=128,
            padding_last=True,
        ),
        el2=True,
        ecv=True,
        ecv_poff=True,
        imp_counter=17,
        imp_address=7,
        bus_bytes=32,
        outstanding=3,
    ),
)
"""Configurations in which blocks are tested."""

OUTSTANDING = _by_name(
    # Records of one size, in many beats and in one.
    replace(CONFIGS["minimal"], name="outstanding_fixed", outstanding=2),
    replace(CONFIGS["minimal"], name="outstanding_one_beat", outstanding=8, bus_bytes=64),
    # Records of several sizes that begin at any byte, and at any word.
    replace(FEATURES["minimal_packed"], name="outstanding_packed", outstanding=4),
    replace(CONFIGS["hisilicon_mobile"], name="outstanding_words", outstanding=2),
)
"""Configurations in which several records can be outstanding, in addition to `FOR_BLOCKS`."""

SLOTS = _by_name(
    # More slots than lanes, and more lanes than slots.
    SPUConfig(name="one_lane_many_slots", layout=MINIMAL, slots=8),
    SPUConfig(name="many_lanes_one_slot", layout=MINIMAL, ops_per_cycle=4, ernd=True),
)
"""Configurations in which sampled operations are tested, in addition to `FOR_BLOCKS`."""

# A record has more words than a burst has beats.
NARROW = replace(
    FOR_BLOCKS["unnamed"],
    name="narrow",
    layout=replace(FOR_BLOCKS["unnamed"].layout, align=1, max_size=2048),
    outstanding=2,
)

# All events, so that the filter by event has its largest size.
ALL_EVENTS = replace(CONFIGS["v1p4"], name="v1p4_events64", events=EVERY_EVENT, events_bytes=8)


def lanes(width: int, *, ernd: bool = False, slots: int = 1) -> SPUConfig:
    """Return `minimal` with `width` lanes, with or without FEAT_SPE_ERnd. Both alone determine the interval counter."""
    name = f"lanes_{width}{'_ernd' * ernd}"
    return replace(CONFIGS["minimal"], name=name, ops_per_cycle=width, ernd=ernd, slots=slots)


# Records.


def _elastic(packet: Packet) -> RecordField:
    return RecordField(((packet,),), elastic=True)


_EVERYTHING = RecordLayout(
    (*V1P4.fields, RecordField(((Packet.IMP_COUNTER,),)), RecordField(((Packet.IMP_ADDRESS,),))),
    V1P4.align,
    V1P4.max_size,
)
_IMP = RecordLayout(
    (
        *(field for field in ARM_MODEL.fields if not {Packet.DATA_SOURCE, Packet.TOTAL} & {*field.packets}),
        _elastic(Packet.TOTAL),
        _elastic(Packet.ALTERNATE_ISSUE),
        _elastic(Packet.IMP_COUNTER),
        _elastic(Packet.IMP_ADDRESS),
    ),
    align=2,
    max_size=128,
)

FOR_RECORDS = _by_name(
    *CONFIGS.values(),
    # All packets that a record can hold.
    replace(
        CONFIGS["v1p4"],
        name="everything",
        layout=_EVERYTHING,
        pbt_of_all=True,
        imp_counter=16,
        imp_address=31,
    ),
    # All IMPLEMENTATION DEFINED choices; no ISSUE packet, and no target of a not-taken branch.
    SPUConfig(
        name="own",
        layout=_IMP,
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
"""Configurations in which records are tested."""

IMP_PACKETS = [
    replace(
        CONFIGS["arm_model"],
        name=f"own_{counter}_{address}",
        imp_counter=counter,
        imp_address=address,
        layout=RecordLayout(
            (
                *ARM_MODEL.fields,
                *(RecordField(((own,),), elastic=True) for own in (Packet.IMP_COUNTER, Packet.IMP_ADDRESS)),
            ),
            align=1,
            max_size=128,
        ),
    )
    for counter, address in ((6, 7), (7, 6), (16, 31), (31, 16), (24, 23))
]
"""IMPLEMENTATION DEFINED packets with each kind of header, in a layout that needs no padding."""

# SVE and SME operations before FEAT_SPEv1p2: a load has no predicate.
V1P1 = replace(CONFIGS["arm_model"], name="v1p1", version=PMSVer.SPE_V1P1)

# Filters.

_NO_PREVIOUS = V1P4.without(Packet.PREVIOUS_TARGET, Packet.ALTERNATE_ISSUE)
_FULL = SPUConfig(
    name="full",
    layout=_NO_PREVIOUS,
    version=PMSVer.SPE_V1P4,
    eft=True,
    fpf=True,
    fne=True,
    fds=True,
    mops=True,
    gcs=True,
    crr=True,
    events=frozenset({*range(13), *range(19, 24)}),
    events_bytes=4,
    data_source_bytes=2,
)
FOR_FILTERS = [
    _FULL,
    replace(_FULL, name="full_discard", unpredictable_filter=UnpredictableFilter.DISCARD),
    replace(_FULL, name="before_eft", eft=False, fpf=False),
]
"""All filters; with the other choice for UNPREDICTABLE settings; without FEAT_SPE_EFT."""

# Complete SPUs.

FOR_SPUS = _by_name(
    *FOR_BLOCKS.values(),
    # All filters with a single lane and a single slot.
    SPUConfig(
        name="lanes1_slots1_filters",
        layout=_NO_PREVIOUS,
        version=PMSVer.SPE_V1P4,
        eft=True,
        fpf=True,
        fne=True,
        fds=True,
        mops=True,
        gcs=True,
        crr=True,
        fgt=True,
        fgt2=True,
        el2=True,
        el3=True,
        sel2=True,
        ecv=True,
        unpredictable_filter=UnpredictableFilter.DISCARD,
        counter_bits=16,
        events=frozenset({*range(13), *range(19, 24), *range(48, 64)}),
        events_bytes=8,
        data_source_bytes=1,
        bus_bytes=32,
    ),
    # Combinations of lanes, slots and features that no named configuration has.
    SPUConfig(
        name="lanes2_slots1_ernd",
        layout=MINIMAL,
        version=PMSVer.SPE_V1P3,
        ops_per_cycle=2,
        ernd=True,
        fne=True,
        mops=True,
        bus_bytes=4,
    ),
    # A record is one beat. EL2 without EL3.
    SPUConfig(
        name="lanes5_slots8",
        layout=NEOVERSE_N1,
        version=PMSVer.SPE_V1P4,
        ops_per_cycle=5,
        slots=8,
        eft=True,
        fpf=True,
        fne=True,
        fds=True,
        el2=True,
        fgt=True,
        fgt2=True,
        data_source_bytes=1,
        bus_bytes=64,
        outstanding=8,
    ),
    # A beat is longer than many records.
    SPUConfig(
        name="lanes1_slots3_ernd",
        layout=replace(ARM_MODEL.without(Packet.DATA_SOURCE), padding_last=False),
        version=PMSVer.SPE_V1P4,
        slots=3,
        ernd=True,
        fne=True,
        mops=True,
        nv2=True,
        el2=True,
        el3=True,
        pbt=True,
        bus_bytes=64,
    ),
)
"""Configurations in which complete SPUs are tested."""


def distinct(configs: Iterable[SPUConfig], choices: str) -> Iterator[SPUConfig]:
    """Yield the first of the configurations that agree in `choices`, names of the attributes that change a circuit."""
    seen: set[object] = set()
    for config in configs:
        values = attrgetter(*choices.split())(config)
        if values not in seen:
            seen.add(values)
            yield config
