"""Strategies of random samples, with any facts that a core may report and any collection permissions."""

from dataclasses import replace

from hypothesis import strategies as st

from spurtle.config import SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle_sim.model.operation import Facts, Location, Operation, Sample, Start, Vectors
from spurtle_sim.model.records import encode

__all__ = ["facts", "plausible", "plausible_records", "samples", "without_impossible_facts"]

_bit = st.integers(0, 1)
_address = st.integers(0, (1 << 56) - 1)
_sizes = st.sampled_from([1 << bit for bit in range(19)]) | st.integers(0, (1 << 19) - 1)
_cycles = st.one_of(st.integers(0, 5), st.integers(4090, 4100), st.integers(0, 1 << 20))


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    """Draw any facts. A branch is neither load nor store, unless it accesses the Guarded control stack."""
    value = Facts.unpack(draw(st.integers(0, (1 << len(Facts.__slots__)) - 1)))
    if value.branch and not value.gcs:
        return replace(value, load=0, store=0)
    return value


@st.composite
def _states(draw: st.DrawFn) -> tuple[int, int, int]:
    """Draw EL, NS and NSE.

    Root state, where NSE is 1 and NS is 0, is excluded: it has no encoding, and is not recorded (D18.2.1).
    """
    ns = draw(_bit)
    return draw(st.integers(0, 3)), ns, draw(st.integers(0, ns))


@st.composite
def _locations(draw: st.DrawFn) -> Location:
    return Location(draw(_address), *draw(_states()))


@st.composite
def _vectors(draw: st.DrawFn) -> Vectors:
    flags = {name: draw(_bit) for name in Vectors.__slots__ if name not in ("bits", "count")}
    return Vectors(**flags, bits=draw(_sizes), count=draw(st.integers(0, 31)))


@st.composite
def samples(draw: st.DrawFn, config: SPUConfig) -> Sample:
    """Draw any sample of `config`. Facts of features that it does not implement are random."""

    def context(packet: Packet) -> st.SearchStrategy[int | None]:
        return st.none() | st.integers(0, (1 << 32) - 1) if packet in config.layout.packets else st.none()

    el, ns, nse = draw(_states())
    _, pa_ns, pa_nse = draw(_states())
    return Sample(
        start=Start(
            el=el,
            ns=ns,
            nse=nse,
            contextidr_el1=draw(context(Packet.CONTEXT_EL1)),
            contextidr_el2=draw(context(Packet.CONTEXT_EL2)),
            timestamp=draw(st.none() | st.integers(0, (1 << 64) - 1)),
            collect_pa=draw(st.booleans()),
            collect_nv2_va=draw(st.booleans()),
        ),
        operation=Operation(
            facts=draw(facts()),
            events=draw(st.integers(0, (1 << 8 * config.events_bytes) - 1)),
            pc=draw(_address),
            target=draw(_locations()),
            va=draw(st.integers(0, (1 << 64) - 1)),
            pa=draw(_address),
            pa_ns=pa_ns,
            pa_nse=pa_nse,
            pa_checked=draw(_bit),
            pa_tag=draw(st.integers(0, 15)),
            data_source=draw(st.integers(0, max(0, (1 << 8 * config.data_source_bytes) - 1))),
            vectors=draw(_vectors()),
            imp_counter=draw(st.integers(0, (1 << config.counter_bits) - 1)),
            imp_address=draw(st.integers(0, (1 << 64) - 1)),
        ),
        previous_target=draw(st.none() | _locations()),
        total=draw(_cycles),
        issue=draw(_cycles),
        translation=draw(_cycles),
        alternate_issue=draw(_cycles),
    )


def without_impossible_facts(config: SPUConfig, sample: Sample) -> Sample:
    """Return the sample without facts that exclude each other: a memory set does not load."""
    facts = sample.operation.facts
    if config.mops and facts.memory_set and not facts.memory_copy:
        facts = replace(facts, load=0)
    return replace(sample, operation=replace(sample.operation, facts=facts))


def plausible(config: SPUConfig, sample: Sample) -> Sample:
    """Return the sample as a core may report it: an operation that is not conditional is taken."""
    sample = without_impossible_facts(config, sample)
    facts = sample.operation.facts
    facts = replace(facts, taken=facts.taken | 1 - facts.conditional)
    return replace(sample, operation=replace(sample.operation, facts=facts))


@st.composite
def plausible_records(draw: st.DrawFn, config: SPUConfig) -> bytes:
    """Draw the record of a plausible sample."""
    return encode(config, plausible(config, draw(samples(config))))
