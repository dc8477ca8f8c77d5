"""A record's events and bytes are those of `reference.records`, for every sample."""

from collections.abc import Iterator, Mapping
from functools import partial

import z3

from spurtle.config import CONFIGS, SPUConfig
from spurtle.control import Collect
from spurtle.layout import Packet
from spurtle.pe import Facts
from spurtle.record import Record
from spurtle_sim.reference import records

from ..induction import Wires, follows
from ..proof import Proof, Verdict
from ..symbolic import Octets, rebuilt
from ..transition import Transition, transition
from .sample import bit, sample_of

__all__ = ["proofs", "prove_bytes", "prove_events"]


def prove_bytes(config: SPUConfig, system: Transition) -> Verdict:
    """Byte for byte, under what the ports' contracts say of a sample. `system` is a `Record` of `config`."""
    reference = rebuilt(records)

    def record(sample: int) -> Mapping[str, Octets]:
        return {"octets": reference.encode(config, sample_of(config, sample, reference))}

    def contract(wires: Wires) -> z3.BoolRef:
        # A branch that completes is neither load nor store.
        facts = partial(bit, Facts, wires["sample.operation.facts"])
        branch = z3.And(facts("branch"), z3.Not(facts("exception")))
        terms = [wires["rst"] == 0, z3.Not(z3.And(branch, z3.Or(facts("load"), facts("store"))))]
        if Packet.CONTEXT_EL2 not in config.packet_offsets:
            # `Control`: CONTEXTIDR_EL2 is never collected.
            terms.append(z3.Not(bit(Collect, wires["sample.start.collect"], "context_el2")))
        return z3.And(*terms)

    # `Completion` asks for a record of what it was shown a cycle before: proved there.
    return follows(system, record, assuming=contract, held=["sample"])


def prove_events(config: SPUConfig, system: Transition) -> Verdict:
    """The events that the filter is shown. `system` is a `Record` of `config`."""

    def events(sample: int) -> Mapping[str, int]:
        return {"events": records.events(config, sample_of(config, sample))}

    return follows(system, events, latency=0)


def proofs() -> Iterator[Proof]:
    """The same for each configuration."""
    for config in CONFIGS.values():
        yield Proof(
            "the Events packet is the reference's", "record", config.name, "reference",
            lambda config=config: prove_events(config, transition(Record(config))),
        )  # fmt: skip
        yield Proof(
            "every byte is the reference's", "record", config.name, "reference",
            lambda config=config: prove_bytes(config, transition(Record(config))), quick=False,
        )  # fmt: skip
