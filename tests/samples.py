"""Random samples, as a core may report them and a register setting may permit."""

from dataclasses import replace

from hypothesis import strategies as st

from spurtle.config import SPUConfig
from spurtle.layout import Packet
from spurtle_sim.reference.records import Facts, Location, Operation, Sample, Start

__all__ = ["facts", "samples"]

_bit = st.integers(0, 1)
_address = st.integers(0, (1 << 56) - 1)
_cycles = st.one_of(st.integers(0, 5), st.integers(4090, 4100), st.integers(0, 1 << 20))


@st.composite
def facts(draw: st.DrawFn, config: SPUConfig | None = None) -> Facts:
    """Any facts, but a branch is neither load nor store, unless it accesses the Guarded control stack and `config` has
    that.
    """
    value = Facts.unpack(draw(st.integers(0, (1 << len(Facts.__slots__)) - 1)))
    if value.branch and not (config and config.gcs and value.gcs):
        return replace(value, load=0, store=0)
    return value


@st.composite
def samples(draw: st.DrawFn, config: SPUConfig) -> Sample:
    """Any sample of `config`."""

    def context(packet: Packet) -> st.SearchStrategy[int | None]:
        return st.none() | st.integers(0, (1 << 32) - 1) if packet in config.packet_offsets else st.none()

    return Sample(
        start=Start(
            el=draw(st.integers(0, 3)),
            ns=draw(_bit),
            contextidr_el1=draw(context(Packet.CONTEXT_EL1)),
            contextidr_el2=draw(context(Packet.CONTEXT_EL2)),
            timestamp=draw(st.none() | st.integers(0, (1 << 64) - 1)),
            collect_pa=draw(st.booleans()),
        ),
        operation=Operation(
            facts=draw(facts(config)),
            events=draw(st.integers(0, (1 << 8 * config.events_bytes) - 1)),
            pc=draw(_address),
            target=Location(draw(_address), draw(st.integers(0, 3)), draw(_bit)),
            va=draw(st.integers(0, (1 << 64) - 1)),
            pa=draw(_address),
            pa_ns=draw(_bit),
            data_source=draw(st.integers(0, max(0, (1 << 8 * config.data_source_bytes) - 1))),
        ),
        total=draw(_cycles),
        issue=draw(_cycles),
        translation=draw(_cycles),
    )
