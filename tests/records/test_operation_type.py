"""Operation Type packet of each kind of operation (D18.2.7 and D17.6.6)."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from configurations import FEATURES, V1P1
from spurtle.arch import PMSVer
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle_sim.model import records
from spurtle_sim.model.operation import Facts, Operation, Sample, Start, Vectors
from spurtle_sim.records.operation_type import OperationType, operation_type
from tests.support.seeds import SEED
from tests.support.tiers import configurations

N1, V1P4, MODEL = (CONFIGS[name] for name in ("neoverse_n1", "v1p4", "arm_model"))
"""Configurations with FEAT_SPE only, with FEAT_SPEv1p4, and with FEAT_SPEv1p2.

The last one has SVE and FEAT_SPE_CRR, but not FEAT_SPE_SME.
"""
ALL = {config.name: config for config in (*CONFIGS.values(), *FEATURES.values(), V1P1)}
SCALAR = Vectors()
IMPLEMENTED = pytest.mark.parametrize("config", configurations(ALL))


def packet(config: SPUConfig, facts: Facts, vectors: Vectors = SCALAR) -> tuple[int, int]:
    """Return CLASS and payload of the packet of a retired operation."""
    operation = Operation(facts=replace(facts, retired=1), vectors=vectors)
    header, payload = dict(records.packets(config, Sample(start=Start(), operation=operation)))[Packet.OPERATION]
    assert header & 0b1111_1100 == 0x48
    return header & 0b11, payload


def decoded(config: SPUConfig, facts: Facts, vectors: Vectors = SCALAR) -> OperationType:
    return operation_type(*packet(config, facts, vectors))


LOAD, STORE = Facts(load=1), Facts(store=1)
COPY = Facts(load=1, store=1, memory_copy=1)
SVE = Vectors(sve=1, bits=256, count=1)
SME = Vectors(sme=1, bits=512, count=2)

PLAIN = [
    (Facts(), (0, 0x00)),
    (Facts(conditional=1), (0, 0x01)),
    (LOAD, (1, 0x00)),
    (STORE, (1, 0x01)),
    (Facts(load=1, simd_fp=1), (1, 0x04)),
    (Facts(store=1, simd_fp=1), (1, 0x05)),
    (Facts(load=1, acquire_release=1), (1, 0x12)),
    (Facts(store=1, acquire_release=1), (1, 0x13)),
    (Facts(load=1, exclusive=1), (1, 0x0A)),
    (Facts(load=1, store=1, atomic=1), (1, 0x06)),
    (Facts(store=1, atomic=1), (1, 0x07)),
    (Facts(load=1, store=1, atomic=1, acquire_release=1), (1, 0x16)),
    (Facts(load=1, exclusive=1, acquire_release=1), (1, 0x1A)),
    (Facts(load=1, simd_fp=1, acquire_release=1), (1, 0x12)),  # only the extended format has AR
]
"""Operations with a format that every version defines."""
BRANCHES = [
    (Facts(branch=1), 0),
    (Facts(branch=1, conditional=1), 1),
    (Facts(branch=1, indirect=1), 2),
]
OF_MOPS = [
    (COPY, (1, 0x20)),
    (replace(COPY, destination=1), (1, 0x21)),
    (replace(COPY, simd_fp=1, acquire_release=1), (1, 0x20)),  # its format has the highest priority
    (Facts(store=1, memory_set=1), (1, 0x25)),
    (Facts(store=1, memory_set=1, allocation_tag=1), (1, 0x25)),  # SETG
]
OF_GCS = [
    (Facts(load=1, gcs=1), (1, 0x44)),
    (Facts(store=1, gcs=1), (1, 0x45)),
    (Facts(load=1, store=1, gcs=1), (1, 0x44)),
    (Facts(load=1, store=1, gcs=1, destination=1), (1, 0x45)),
    (Facts(load=1, gcs=1, procedure_return=1), (1, 0x40)),
    (Facts(store=1, gcs=1, link=1), (1, 0x41)),
    (Facts(load=1, store=1, gcs=1, atomic=1), (1, 0x44)),
]
OF_V1P1 = [
    (Facts(store=1, unspecified=1), (1, 0x11)),
    (Facts(load=1, unspecified=1), (1, 0x10)),
    (Facts(store=1, unspecified=1, simd_fp=1), (1, 0x11)),
    (Facts(load=1, unspecified=1, acquire_release=1), (1, 0x12)),
]
OF_MTE = [
    (Facts(load=1, allocation_tag=1), (1, 0x14)),
    (Facts(store=1, allocation_tag=1), (1, 0x15)),
    (Facts(store=1, allocation_tag=1, acquire_release=1, unspecified=1), (1, 0x15)),
]
OF_NV2 = [
    (Facts(load=1, nv2=1), (1, 0x30)),
    (Facts(store=1, nv2=1), (1, 0x31)),
    (Facts(store=1, nv2=1, acquire_release=1), (1, 0x31)),
]


@IMPLEMENTED
def test_each_feature_has_its_formats(config: SPUConfig):
    for facts, expected in PLAIN:
        assert packet(config, facts) == expected, facts
    for facts, payload in BRANCHES:
        assert packet(config, facts) == (2, payload | (0b11000 if config.crr else 0)), facts
    tags = config.mte and config.version >= PMSVer.SPE_V1P3
    for implemented, table in (
        (config.mops, OF_MOPS),
        (config.gcs, OF_GCS),
        (config.version >= PMSVer.SPE_V1P1, OF_V1P1),
        (tags, OF_MTE),
        (config.nv2, OF_NV2),
    ):
        for facts, expected in table:
            if implemented:
                assert packet(config, facts) == expected, facts


@pytest.mark.parametrize("name", ["minimal_sme", "minimal_sme_fpf"])
def test_sme_operations_without_spe_sme(name: str):
    """The configurations have FEAT_SME without FEAT_SPE_SME (D17.6.6)."""
    config, array = FEATURES[name], replace(SVE, sve=0, sme=1)
    assert packet(config, Facts(vector=1), array) == (0, 0)
    assert packet(config, Facts(vector=1, floating_point=1), array) == (0, 2 * config.fpf)
    for other_facts in ({}, {"unspecified": 1}, {"simd_fp": 1}, {"atomic": 1}):
        assert packet(config, Facts(load=1, vector=1, **other_facts), array) == (1, 0x10)
        assert packet(config, Facts(store=1, vector=1, **other_facts), array) == (1, 0x11)
    streaming = replace(SVE, sme=0)
    assert packet(config, Facts(load=1, vector=1), streaming)[1] & 0b1010 == 0b1000


def test_facts_of_unimplemented_features_are_ignored():
    names = ("memory_copy", "memory_set", "gcs", "unspecified", "allocation_tag", "nv2", "destination")
    for facts, _ in (*OF_MOPS, *OF_GCS, *OF_V1P1, *OF_MTE, *OF_NV2):
        plain = replace(facts, **dict.fromkeys(names, 0), link=0, procedure_return=0)
        assert packet(N1, facts) == packet(N1, plain)
        assert packet(N1, facts, replace(SVE, sme=1)) == packet(N1, plain)


def test_tag_format_requires_v1p3():
    for version, expected in ((PMSVer.SPE_V1P2, (1, 0)), (PMSVer.SPE_V1P3, (1, 0x14))):
        config = replace(MODEL, version=version, mte=True)
        assert packet(config, Facts(load=1, allocation_tag=1)) == expected


def test_priority_of_load_formats():
    """The operation has the facts of all formats of a load. The fact that decides is removed each time."""
    everything = Facts(
        load=1,
        simd_fp=1,
        unspecified=1,
        acquire_release=1,
        nv2=1,
        allocation_tag=1,
        gcs=1,
        memory_set=1,
        memory_copy=1,
        procedure_return=1,
    )
    vectors = Vectors(sve=1, bits=64, count=1)
    forms: list[str] = []
    for name in ("memory_copy", "memory_set", "gcs", "allocation_tag", "nv2", "", "acquire_release", "unspecified"):
        forms.append(decoded(V1P4, everything, vectors).form)
        if name:
            everything = replace(everything, **{name: 0})
        else:
            vectors = Vectors()
    forms += [decoded(V1P4, everything).form, decoded(V1P4, replace(everything, simd_fp=0)).form]
    assert forms == [
        "memory_copy", "memory_set", "gcs", "tag", "nv2", "sve", "extended", "unspecified", "simd_fp", "general",
    ]  # fmt: skip


# Branches.


@pytest.mark.parametrize(
    ("link", "procedure_return", "procedure"), [(0, 0, 0b11), (1, 0, 0b01), (0, 1, 0b10), (1, 1, 0b01)]
)
def test_procedure_call_and_return(link: int, procedure_return: int, procedure: int):
    """CR is zero if and only if FEAT_SPE_CRR is not implemented."""
    facts = Facts(branch=1, indirect=1, link=link, procedure_return=procedure_return)
    for config in (MODEL, V1P4):
        assert packet(config, facts) == (2, procedure << 3 | 0b010)
    assert packet(N1, facts) == (2, 0b010)


def test_exception_return_is_neither_call_nor_return():
    assert packet(V1P4, Facts(branch=1, indirect=1)) == (2, 0b11010)


def test_branch_that_generates_an_exception_is_not_a_branch():
    assert packet(V1P4, Facts(branch=1, exception=1, link=1)) == (0, 0)
    assert packet(V1P4, Facts(branch=1, exception=1, link=1, store=1, gcs=1)) == (1, 0x41)


# Other.


def test_floating_point_and_advanced_simd():
    """ASE and FP require FEAT_SPE_FPF."""
    for vector, floating_point, conditional in product((0, 1), repeat=3):
        facts = Facts(vector=vector, floating_point=floating_point, conditional=conditional)
        assert packet(V1P4, facts) == (0, vector << 2 | floating_point << 1 | conditional)
        assert packet(MODEL, facts) == (0, conditional)


# SVE and SME, D17.6.6.


@pytest.mark.parametrize("config", [MODEL, V1P4], ids=["without SME", "with SME"])
def test_sve_data_processing(config: SPUConfig):
    for predicated, floating_point in product((0, 1), repeat=2):
        vectors = replace(SVE, predicated=predicated)
        # This format has no COND and no ASE.
        for other in (Facts(), Facts(conditional=1, vector=1, simd_fp=1)):
            found = packet(config, replace(other, floating_point=floating_point), vectors)
            assert found == (0, 3 << 4 | 1 << 3 | predicated << 2 | floating_point << 1)


def test_sme_data_processing():
    """The size is 1024 bits. The format has no PRED, and SME has priority over SVE."""
    for vectors in (SME, replace(SME, predicated=1), replace(SME, sve=1)):
        assert packet(V1P4, Facts(), vectors) == (0, 0b1001_1100)
        assert packet(V1P4, Facts(floating_point=1, conditional=1), vectors) == (0, 0b1001_1110)
    # Without FEAT_SME and FEAT_SPE_SME the format is Other.
    assert packet(MODEL, Facts(conditional=1), SME) == (0, 1)


def test_sve_loads_and_stores():
    for gather_scatter, predicated in product((0, 1), repeat=2):
        vectors = replace(SVE, gather_scatter=gather_scatter, predicated=predicated)
        expected = gather_scatter << 7 | 3 << 4 | 1 << 3 | predicated << 2
        for config in (MODEL, V1P4):
            assert packet(config, replace(LOAD, simd_fp=1, vector=1), vectors) == (1, expected)
            assert packet(config, replace(STORE, simd_fp=1, vector=1), vectors) == (1, expected | 1)
        # PRED of a load requires FEAT_SPEv1p2.
        assert packet(V1P1, LOAD, vectors) == (1, expected & ~(1 << 2))
        assert packet(V1P1, STORE, vectors) == (1, expected | 1)


def test_sme_loads_and_stores():
    """Without FEAT_SPE_SME R_BHKSC allows the unspecified registers format, which the core selects."""
    assert packet(V1P4, LOAD, SME) == (1, 0b0101_1000)
    assert packet(V1P4, replace(STORE, unspecified=1), SME) == (1, 0b0101_1001)
    assert packet(MODEL, replace(LOAD, unspecified=1), SME) == (1, 0x10)
    assert packet(MODEL, LOAD, SME) == (1, 0)


@pytest.mark.parametrize(
    ("bits", "count", "of_one", "of_all"),
    [
        (32, 1, 32, 32),
        (64, 1, 64, 64),
        (128, 1, 128, 128),
        (256, 1, 256, 256),
        (512, 1, 512, 512),
        (1024, 1, 1024, 1024),
        (2048, 1, 2048, 2048),
        (8, 1, 32, 32),  # less than 32 bits
        (33, 1, 64, 64),
        (129, 1, 256, 256),
        (1025, 1, 2048, 2048),
        (80, 3, 128, 256),  # 240, not 3 * 128
        (16, 4, 32, 64),  # 64, not 4 * 32
        (520, 3, 1024, 2048),  # 1560, not 3 * 1024
        (128, 3, 128, 512),  # LD3
        (512, 4, 512, 2048),  # exactly 2048
        (1024, 4, 1024, "more"),  # 4096
        (683, 3, 1024, "more"),  # 2049
        (2048, 4, 2048, "more"),
        (2048, 31, 2048, "more"),
    ],
)
def test_vector_length(bits: int, count: int, of_one: int, of_all: int | str):
    """EVL is the size of one vector without FEAT_SPE_SME and of all vectors with it; the product is rounded up."""
    vectors = Vectors(sve=1, bits=bits, count=count)
    for facts in (Facts(), LOAD, STORE):
        assert decoded(MODEL, facts, vectors).attributes["bits"] == of_one
        assert decoded(V1P4, facts, vectors).attributes["bits"] == of_all
    assert decoded(V1P4, LOAD, replace(vectors, sve=0, sme=1)).attributes["bits"] == of_all


def test_length_above_2048_bits_without_sme():
    assert packet(MODEL, Facts(), Vectors(sve=1, bits=0xFFF)) == (0, 0b0110_1000)


def test_only_twelve_bits_of_a_vector_length_are_used():
    for config, facts in product((MODEL, V1P4), (Facts(), LOAD)):
        vectors = Vectors(sve=1, bits=64, count=1)
        assert packet(config, facts, replace(vectors, bits=0x7F000 | 64)) == packet(config, facts, vectors)
    assert packet(V1P4, Facts(), replace(SME, bits=0x7F000 | 512)) == packet(V1P4, Facts(), SME)


@pytest.mark.parametrize(
    ("vectors", "bits"),
    [
        *((Vectors(sme=1, tile=1, bits=128 << step), 128 << step) for step in range(12)),
        *((Vectors(sme=1, tile=1, bits=(128 << step) + 1), 256 << step) for step in range(11)),
        (Vectors(sme=1, tile=1, bits=1), 128),
        (Vectors(sme=1, tile=1, bits=4096, count=3), 4096),  # the count does not apply to a tile
        (Vectors(sme=1, tile=1, bits=262145), "all"),  # only the encoding of the complete array remains
        (Vectors(sme=1, tile=1, bits=524287), "all"),
        (Vectors(sme=1, tile=1, bits=4096, whole_array=1), "all"),
        (Vectors(sme=1, bits=128, count=1, whole_array=1), "all"),
        (Vectors(sme=1, bits=32, count=1), 128),
        (Vectors(sme=1, bits=512, count=4), 2048),
        (Vectors(sme=1, bits=2048, count=4), 8192),
        (Vectors(sme=1, bits=160, count=3), 512),  # 480
    ],
)
def test_tile_size(vectors: Vectors, bits: int | str):
    for floating_point in (0, 1):
        found = decoded(V1P4, Facts(floating_point=floating_point), vectors)
        assert (found.form, found.attributes) == ("sme", {"bits": bits, "fp": floating_point == 1})


def test_sizes_are_rounded_up_to_a_power_of_two():
    """The expected size is computed with `int.bit_length`."""
    random = Random(SEED)
    for _ in range(2_000):
        bits, count = random.choice([1 << random.randrange(12), random.randrange(4096)]), random.randrange(32)
        expected = max(32, 1 << max(bits * count - 1, 0).bit_length())
        found = decoded(V1P4, Facts(), Vectors(sve=1, bits=bits, count=count)).attributes["bits"]
        assert found == (expected if expected <= 2048 else "more")
        found = decoded(V1P4, Facts(), Vectors(sme=1, bits=bits, count=count)).attributes["bits"]
        assert found == max(128, expected)


# All encodings.


def encodings(config: SPUConfig) -> set[tuple[int, int]]:
    """Return every packet that D18.2.7 defines for the features of `config`.

    An extended load or store that is not atomic, exclusive, acquire or release is excluded, because no operation has
    it.
    """
    v1p1, bit = config.version >= PMSVer.SPE_V1P1, (0, 1)
    lengths = range(8 if config.spe_sme else 7)

    def generate() -> Iterator[tuple[int, int]]:
        for flags in range(8) if config.fpf else bit:
            yield 0, flags
        if config.scalable:
            for evl, predicated, floating_point in product(lengths, bit, bit):
                yield 0, evl << 4 | 0b1000 | predicated << 2 | floating_point << 1
            for gather, evl, predicated, ldst in product(bit, lengths, bit, bit):
                if config.version >= PMSVer.SPE_V1P2 or ldst or not predicated:
                    yield 1, gather << 7 | evl << 4 | 0b1000 | predicated << 2 | ldst
        if config.spe_sme:
            for ets, floating_point in product((*range(12), 15), bit):
                yield 0, 0b1000_1000 | ets >> 1 << 4 | (ets & 1) << 2 | floating_point << 1
        for ldst in bit:
            for flags in range(1, 8):
                yield 1, flags << 2 | 0b10 | ldst
            for implemented, subclass in (
                (True, 0x00),
                (True, 0x04),
                (v1p1, 0x10),
                (config.mte and config.version >= PMSVer.SPE_V1P3, 0x14),
                (config.nv2, 0x30),
                (config.mops, 0x20),
                (config.gcs, 0x40),
                (config.gcs, 0x44),
            ):
                if implemented:
                    yield 1, subclass | ldst
        if config.mops:
            yield 1, 0x25
        for procedure, flags in product((1, 2, 3) if config.crr else (0,), range(8 if config.gcs else 4)):
            yield 2, procedure << 3 | flags

    return {*generate()}


def operations_of_all_encodings() -> Iterator[tuple[Facts, Vectors]]:
    """Yield operations that together have all packets."""
    bit = (0, 1)
    for vector, floating_point, conditional in product(bit, repeat=3):
        yield Facts(vector=vector, floating_point=floating_point, conditional=conditional), Vectors()
    for link, back, gcs, indirect, conditional in product(bit, repeat=5):
        yield (
            Facts(branch=1, link=link, procedure_return=back, gcs=gcs, indirect=indirect, conditional=conditional),
            Vectors(),
        )
    sizes = [32 << step for step in range(8)]
    for size, predicated, gather_scatter, flag in product(sizes, bit, bit, bit):
        vectors = Vectors(sve=1, predicated=predicated, gather_scatter=gather_scatter, bits=min(size, 2048), count=2)
        vectors = replace(vectors, count=2 if size > 2048 else 1)
        yield Facts(floating_point=flag), vectors
        yield Facts(load=1 - flag, store=flag), vectors
    for step, floating_point in product(range(13), bit):
        yield Facts(floating_point=floating_point), Vectors(sme=1, tile=1, bits=min(128 << step, (1 << 19) - 1))
    for store in bit:
        access = Facts(load=1 - store, store=store)
        for names in (
            (), ("simd_fp",), ("unspecified",), ("allocation_tag",), ("nv2",), ("memory_set",), ("gcs",),
            ("gcs", "link"), ("gcs", "procedure_return"),
        ):  # fmt: skip
            yield replace(access, **dict.fromkeys(names, 1)), Vectors()
        yield replace(COPY, destination=store), Vectors()
        for atomic, exclusive, acquire_release in product(bit, repeat=3):
            yield replace(access, atomic=atomic, exclusive=exclusive, acquire_release=acquire_release), Vectors()


@IMPLEMENTED
def test_operations_have_exactly_the_defined_encodings(config: SPUConfig):
    expected = encodings(config)
    assert {packet(config, facts, vectors) for facts, vectors in operations_of_all_encodings()} == expected
    assert {encoding for encoding in expected if operation_type(*encoding).kind == "reserved"} == set()
    random = Random(SEED)
    for _ in range(2_000):
        facts = Facts.unpack(random.getrandbits(30) & random.getrandbits(30))
        flags = {name: random.getrandbits(1) for name in Vectors.__slots__}
        vectors = Vectors(**flags | {"bits": random.getrandbits(random.randrange(20)), "count": random.getrandbits(5)})
        assert packet(config, facts, vectors) in expected, (facts, vectors)


def test_number_of_encodings():
    """The numbers of the smallest and largest configurations are counted by hand."""
    assert len(encodings(N1)) == 2 + (4 + 14) + 4
    assert len(encodings(V1P4)) == (8 + 32 + 26) + (2 * 5 + 14 + 64 + 3 + 4) + 24
