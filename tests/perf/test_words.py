"""Linux perf prints the expected name of everything that an SPU can write, or a known replacement."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from campaign.random_samples import random_samples
from spurtle.arch import Event
from spurtle.config import CONFIGS, SPUConfig
from spurtle_sim.model.operation import Facts, Location, Operation, Sample, Start, Vectors
from spurtle_sim.model.records import encode
from spurtle_sim.perf.events import Aux, process_events
from spurtle_sim.perf.process import Process
from spurtle_sim.perf.writer import Recording
from spurtle_sim.profile import outputs
from spurtle_sim.records.decode import decode_packets
from spurtle_sim.records.text import describe
from tests.support.perf_versions import Perf, require_perf
from tests.support.perf_words import SUBSTITUTIONS, WORDS_COLUMN, printed_words
from tests.support.seeds import SEED
from tests.support.tiers import configurations, tiers

COUNT = 3_000

EVENT_WORDS = {
    0: "EXCEPTION-GEN", 1: "RETIRED", 2: "L1D-ACCESS", 3: "L1D-REFILL", 4: "TLB-ACCESS", 5: "TLB-REFILL",
    6: "NOT-TAKEN", 7: "MISPRED", 8: "LLC-ACCESS", 9: "LLC-REFILL", 10: "REMOTE-ACCESS", 11: "ALIGNMENT",
    12: "IMPDEF:12", 17: "SVE-PARTIAL-PRED", 18: "SVE-EMPTY-PRED", 19: "L2D-ACCESS", 20: "L2D-MISS", 21: "HITM",
    22: "LFB", 23: "SNOOPED", 24: "STREAMING-SVE", 25: "SMCU",
}  # fmt: skip


@pytest.fixture(scope="module", params=tiers(fast=["6.1", "6.12"], full=["newest"]))
def perf(request: pytest.FixtureRequest) -> Perf:
    """Return each installed version of Linux perf."""
    return require_perf(request.param)


def dumped(perf: Perf, folder: Path, octets: bytes) -> list[str]:
    """Return the packets as `perf report -D` prints them."""
    file = folder / "perf.data"
    events = process_events(Process(Path("/nowhere"), ["nowhere"], 1, ()), [Aux(time=1, pid=1, tid=1, data=octets)])
    outputs.write(file, Recording(argv=["nowhere"], events=events))
    return [line for line in perf.lines("report", "-D", "-i", file) if re.match(r"\.  [0-9a-f]{8}: ", line)]


# Each value of a packet, and its expected words.


class Case(NamedTuple):
    words: str
    config: str
    sample: Sample


def case(words: str, config: str = "v1p4", **members: Any) -> Case:
    """Return a case whose sample has these members of Facts, Vectors, Start, Operation and Sample."""
    members = {"retired": 1, "taken": 1, **members}

    def of(kind: type[Any], **parts: Any) -> Any:
        return kind(**parts, **{name: members.pop(name) for name in kind.__slots__ if name in members})

    facts, vectors, start = of(Facts), of(Vectors), of(Start)
    sample = of(Sample, operation=of(Operation, facts=facts, vectors=vectors), start=start)
    assert not members
    return Case(words, config, sample)


def flags(**words: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each combination of the members in `words`: the words of those that are set, in order, and the members."""
    for chosen in product((0, 1), repeat=len(words)):
        members = dict(zip(words, chosen, strict=True))
        yield "".join(f" {words[name]}" for name in words if members[name]), members


VECTORS = {32 << doublings: {"bits": 32 << doublings, "count": 1} for doublings in range(7)}
VECTORS[4096] = {"bits": 2048, "count": 2}  # the word of perf for more than 2048
TILES = {128 << doublings: {"tile": 1, "bits": 128 << doublings} for doublings in range(12)}


def load_store_cases() -> Iterator[Case]:
    for word, access in (("LD", {"load": 1}), ("ST", {"store": 1})):
        yield case(f"{word} GP-REG", **access)
        yield case(f"{word} SIMD-FP", simd_fp=1, **access)
        yield case(f"{word} UNSPEC-REG", unspecified=1, **access)
        yield case(f"{word} MTE-TAG", allocation_tag=1, **access)
        yield case(f"{word} NV-SYSREG", nv2=1, **access)
        yield case(f"{word} MEMCPY", memory_copy=1, load=1, store=1, destination=int(word == "ST"))
        yield case(f"{word} GCS", gcs=1, link=1, **access)
        yield case(f"{word} GCS COMM", gcs=1, **access)
        for words, extended in flags(atomic="AT", exclusive="EXCL", acquire_release="AR"):
            if words:
                yield case(f"{word}{words}", **extended, **access)
        for (bits, size), (words, kind) in product(VECTORS.items(), flags(predicated="PRED", gather_scatter="SG")):
            yield case(f"{word} EVLEN {bits}{words}", sve=1, **size, **kind, **access)
    yield case("ST MEMSET", store=1, memory_set=1)
    yield case("LD AT", load=1, store=1, atomic=1)


def other_cases() -> Iterator[Case]:
    for words, kind in flags(vector="ASE", floating_point="FP", conditional="COND-SELECT"):
        yield case(f"OTHER{words or ' INSN-OTHER'}", **kind)
    for (bits, size), (words, kind) in product(VECTORS.items(), flags(floating_point="FP", predicated="PRED")):
        yield case(f"SVE-OTHER EVLEN {bits}{words}", sve=1, **size, **kind)
    for (bits, size), (words, kind) in product(
        [*TILES.items(), ("all", {"whole_array": 1})], flags(floating_point="FP")
    ):
        yield case(f"SME-OTHER ETS {bits}{words}", sme=1, **size, **kind)


def branch_cases() -> Iterator[Case]:
    for words, kind in flags(conditional="COND", indirect="IND"):
        yield case(f"B{words}", config="neoverse_n1", branch=1, **kind)
    for words, kind in flags(conditional="COND", indirect="IND", gcs="GCS"):
        for word, procedure in (("BL", {"link": 1}), ("RET", {"procedure_return": 1}), ("NON-BL-RET", {})):
            access = {"store" if word == "BL" else "load": kind["gcs"]}
            yield case(f"B{words} CR-{word}", branch=1, **kind, **procedure, **access)


def event_cases() -> Iterator[Case]:
    yield case("EV", retired=0)
    plain: dict[str, Any] = {"load": 1}
    members: dict[int, dict[str, Any]] = {
        Event.GENERATED_EXCEPTION: {"load": 1, "exception": 1},
        Event.NOT_TAKEN: {"conditional": 1, "taken": 0},
        Event.MISPREDICTED: {"branch": 1},
        Event.PARTIAL_PREDICATE: {"load": 1, "sve": 1},
        Event.EMPTY_PREDICATE: {"load": 1, "sve": 1},
        Event.SMCU: {"asynchronous": 1},
    }
    for config in CONFIGS.values():
        for event in config.events:
            words = " ".join(EVENT_WORDS[each] for each in sorted({event, 1}))
            yield case(f"EV {words}", config.name, events=1 << event, **members.get(event, plain))
        events = sorted(config.events - {*members})
        words = " ".join(EVENT_WORDS[each] for each in events)
        yield case(f"EV {words}", config.name, events=(1 << 8 * config.events_bytes) - 1, load=1)


def value_cases() -> Iterator[Case]:
    """Yield cases of addresses, counters, contexts, data sources and timestamps."""
    address, tagged = 0x07_0605_0403_0201, 0xCB07_0605_0403_0201
    for el, ns, nse in product(range(4), (0, 1), (0, 1)):
        location = Location(address, el, ns, nse)
        address_words = f"{address:#x} el{el} ns={ns}{' nse=1' if nse else ''}"
        yield case(f"PC {address_words}", pc=address, el=el, ns=ns, nse=nse)
        yield case(f"TGT {address_words}", target=location, branch=1)
        yield case(f"PBT {address_words}", previous_target=location, branch=1)
    access = {"load": 1, "va_valid": 1, "va": tagged}
    yield case(f"VA {tagged:#x}", va_tagged=1, **access)
    yield case(f"VA {address:#x}", **access)
    for ns, nse, checked in product((0, 1), (0, 1), (0, 1)):
        words = f"PA {address:#x} ns={ns} ch={checked} pat={'b' if checked else 0}{' nse=1' if nse else ''}"
        physical = {"pa": address, "pa_ns": ns, "pa_nse": nse, "pa_checked": checked, "pa_tag": 11}
        yield case(words, pa_valid=1, collect_pa=True, **physical, **access)
    for name, config in CONFIGS.items():
        for cycles in (0, 1, (1 << config.counter_bits) - 1):
            yield case(f"LAT {cycles} TOT", name, total=cycles)
            yield case(f"LAT {cycles} ISSUE", name, issue=cycles)
            yield case(f"LAT {cycles} XLAT", name, translation=cycles, load=1, va_valid=1)
            if config.altclk:
                yield case(f"LAT {cycles} (4)", name, alternate_issue=cycles, asynchronous=1)
    for context in (0, 1, 0xFFFF_FFFF):
        yield case(f"CONTEXT {context:#x} el1", contextidr_el1=context)
        yield case(f"CONTEXT {context:#x} el2", contextidr_el2=context)
    for config, source in (("neoverse_n1", 0), ("neoverse_n1", 255), ("v1p4", 0), ("v1p4", 65535)):
        yield case(f"DATA-SOURCE {source}", config, load=1, data_source_valid=1, data_source=source)
    for timestamp in (0, (1 << 64) - 1):
        yield case(f"TS {timestamp}", timestamp=timestamp)
    yield case("END")


CASES = [*load_store_cases(), *other_cases(), *branch_cases(), *event_cases(), *value_cases()]


def test_each_packet_has_the_name_of_perf(perf: Perf, tmp_path: Path):
    octets = b"".join(encode(CONFIGS[config], sample) for _, config, sample in CASES)
    shown: list[set[str]] = [set()]
    for line in dumped(perf, tmp_path, octets):
        words = line[WORDS_COLUMN:]
        shown[-1].add(words)
        if words == "END" or words.startswith("TS "):
            shown.append(set())
    assert shown.pop() <= {"PAD"}
    assert len(shown) == len(CASES)
    expected = [printed_words(perf.version, words) for words, _, _ in CASES]
    missed = [
        (*entry[:2], words, lines)
        for entry, words, lines in zip(CASES, expected, shown, strict=True)
        if words not in lines
    ]
    assert not missed


def test_each_replacement_has_a_case():
    patterns = [pattern for rules in SUBSTITUTIONS.values() for pattern in rules]
    assert [pattern for pattern in patterns if not any(re.search(pattern, words) for words, _, _ in CASES)] == []


def random_octets(config: SPUConfig) -> bytes:
    return b"".join(encode(config, sample) for sample in random_samples(config, (SEED, 0), COUNT))


@pytest.mark.parametrize("name", configurations([*CONFIGS]))
def test_every_packet_of_random_records(perf: Perf, name: str, tmp_path: Path):
    """Linux perf finds every record, and prints every packet as `describe` does."""
    octets = random_octets(CONFIGS[name])
    lines = dumped(perf, tmp_path, octets)
    ends = [line for line in lines if line[WORDS_COLUMN:] == "END" or line[WORDS_COLUMN:].startswith("TS ")]
    assert len(ends) == COUNT
    for line, packet in zip(lines, decode_packets(octets), strict=False):
        size = packet.size
        shown = octets[packet.offset : packet.offset + size].hex(" ")
        assert line == f".  {packet.offset:08x}:  {shown:<47} {printed_words(perf.version, describe(packet))}"


@pytest.mark.parametrize("name", configurations([*CONFIGS]))
def test_no_packet_is_padding_to_old_versions(name: str):
    """Old versions of perf read a header of 0x20 and 0x00 as an alignment packet."""
    octets = random_octets(CONFIGS[name])
    starts = [packet.offset for packet in decode_packets(octets)]
    assert not [start for start in starts if octets[start : start + 2] == b"\x20\x00"]
