"""A record's events and bytes are those of `reference.records`, for every sample."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache

import z3

from spurtle.config import CONFIGS, SPUConfig
from spurtle.control import Collect
from spurtle.layout import Packet
from spurtle.record import Record
from spurtle_sim.reference import records

from ..features import FEATURES
from ..induction import Wires, always, follows
from ..proof import Proof, Verdict
from ..symbolic import Octets, rebuilt
from ..transition import Transition, transition
from .sample import alike, bit, meaningless, promised, sample_of

__all__ = ["proofs", "prove_bytes", "prove_events", "prove_ignored", "prove_operation"]


def prove_bytes(config: SPUConfig, system: Transition) -> Verdict:
    """Byte for byte, under what the ports' contracts say of a sample. `system` is a `Record` of `config`."""
    reference = rebuilt(records)

    def record(sample: int) -> Mapping[str, Octets]:
        return {"octets": reference.encode(config, sample_of(config, sample, reference))}

    def contract(wires: Wires) -> z3.BoolRef:
        terms = [wires["rst"] == 0, promised(config, wires["sample"])]
        if Packet.CONTEXT_EL2 not in config.packet_offsets:
            # `Control`: CONTEXTIDR_EL2 is never collected.
            terms.append(z3.Not(bit(Collect, wires["sample.start.collect"], "context_el2")))
        return z3.And(*terms)

    # `Completion` asks for a record of what it was shown a cycle before: proved there.
    return follows(system, record, assuming=contract, held=["sample"])


def prove_operation(config: SPUConfig, system: Transition) -> Verdict:
    """The Operation Type packet alone: it has the most forms. `system` is a `Record` of `config`."""
    reference = rebuilt(records)

    def packet(rst: int, sample: int) -> Mapping[str, Octets | int]:
        facts = sample_of(config, sample, reference).operation.facts
        if rst or facts.retired == 0:
            return {"packet_operation": 0}
        return {"packet_operation": reference._operation_type(config, facts)}

    return follows(system, packet, assuming=lambda wires: promised(config, wires["sample"]))


def prove_events(config: SPUConfig, system: Transition) -> Verdict:
    """The events that the filter is shown. `system` is a `Record` of `config`."""

    def events(sample: int) -> Mapping[str, int]:
        return {"events": records.events(config, sample_of(config, sample))}

    return follows(system, events, latency=0)


def prove_ignored(config: SPUConfig, system: Transition) -> Verdict:
    """Facts for which there is no feature change nothing. `system` is a `Record` of `config`."""

    def ignored(*cycles: Wires) -> z3.BoolRef:
        # One sample stands for two cycles, then the other does.
        samples = [wires["sample"] for wires in cycles]
        stand = z3.And(samples[0] == samples[1], samples[2] == samples[3], *(wires["rst"] == 0 for wires in cycles))
        told = (cycles[1][name] == cycles[3][name] for name in ("events", "octets"))
        return z3.Implies(z3.And(stand, alike(config, samples[1], samples[3])), z3.And(*told))

    return always(system, ignored, cycles=4)


@cache
def _system(config: SPUConfig) -> Transition:
    return transition(Record(config))


_CHANGING = ("layout", "events", "events_bytes", "counter_bits", "data_source_bytes", "mops", "gcs")
"""What of a configuration changes a record here: none of them records a branch that was not taken in another way."""


def proofs() -> Iterator[Proof]:
    """For each configuration, and for each feature alone that makes records another configuration does not make."""
    seen: set[tuple[object, ...]] = set()
    for config in (*CONFIGS.values(), *FEATURES.values()):
        choices = tuple(vars(config)[name] for name in _CHANGING)
        if choices in seen:
            continue
        seen.add(choices)

        def proof(
            name: str,
            prove: Callable[[SPUConfig, Transition], Verdict],
            *,
            method: str = "reference",
            quick: bool = True,
            config: SPUConfig = config,
        ) -> Proof:
            return Proof(name, "record", config.name, method, lambda: prove(config, _system(config)), quick=quick)

        yield proof("the Events packet is the reference's", prove_events)
        yield proof("the Operation Type packet is the reference's", prove_operation)
        if meaningless(config):
            yield proof("facts of no feature change nothing", prove_ignored, method="four cycles")
        yield proof("every byte is the reference's", prove_bytes, quick=False)
