"""Expected content of a record, as facts instead of bytes: an independent implementation of the architecture.

Ref: DDI0487 M.a, D17.6 (collected information), D18.2 (packets).
"""

from typing import Any

from spurtle.arch import ContextIndex, CounterIndex, Event, PMSVer
from spurtle.arch.events import Operations, events_of, mask
from spurtle.config import SPUConfig
from spurtle_sim.model.operation import Facts, Location, Operation, Sample
from spurtle_sim.records.operation_type import OperationType

__all__ = ["expected_record"]


def expected_record(config: SPUConfig, sample: Sample) -> dict[str, Any]:
    """Return the expected content of the record of a sample, with the attributes of `decode.Record` as keys.

    The value of an absent packet is None, or empty.
    """
    start, operation, facts = sample.start, sample.operation, sample.operation.facts
    content: dict[str, Any] = {
        "pc": None, "target": None, "previous_target": None, "va": None, "pa": None, "data_source": None,
        "operation": None, "contexts": {}, "counters": {}, "events": 0, "timestamp": start.timestamp,
    }  # fmt: skip
    if not facts.retired:  # D17.6.7
        return content
    completed = not facts.exception
    accesses, loads = _reported_access(config, facts)
    samples_store = _samples_store_of_pair(config, facts)

    content["pc"] = (operation.pc, start.el, start.ns, start.nse)
    contexts = {ContextIndex.EL1: start.contextidr_el1, ContextIndex.EL2: start.contextidr_el2}
    content["contexts"] = {index: value for index, value in contexts.items() if value is not None}
    content["operation"] = _operation(config, operation)
    content["events"] = _events(config, operation)
    latencies = {CounterIndex.TOTAL: sample.total, CounterIndex.ISSUE: sample.issue}
    if config.altclk and facts.asynchronous:  # D17.6.1
        latencies[CounterIndex.ALTERNATE_ISSUE] = sample.alternate_issue
    if completed and facts.branch:  # D17.6.3
        content["target"] = _instruction_address(operation.target)
        if config.pbt and sample.previous_target is not None:
            content["previous_target"] = _instruction_address(sample.previous_target)
    permitted = start.collect_nv2_va or not (config.nv2 and facts.nv2)
    if completed and accesses and facts.va_valid and permitted:  # D17.6.4, D17.6.4.2
        content["va"] = operation.va if facts.va_tagged else operation.va % (1 << 56)
        latencies[CounterIndex.TRANSLATION] = sample.translation
        if facts.pa_valid and start.collect_pa:
            tag = operation.pa_tag if operation.pa_checked else 0
            content["pa"] = (operation.pa, operation.pa_ns, operation.pa_nse, operation.pa_checked, tag)
    content["counters"] = {index: min(cycles, (1 << config.counter_bits) - 1) for index, cycles in latencies.items()}
    if completed and loads and not samples_store and facts.data_source_valid and config.data_source_bytes:  # D18.2.4
        content["data_source"] = operation.data_source
    return content


def _instruction_address(location: Location) -> tuple[int, int, int, int]:
    return (location.address, location.el, location.ns, location.nse)


def _samples_store_of_pair(config: SPUConfig, facts: Facts) -> bool:
    """Return whether the sampled access of an operation with a load and a store is the store.

    Ref: DDI0487 M.a, D17.6.4.3, D17.6.4.5.
    """
    has_pair = (config.mops and facts.memory_copy) or (config.gcs and facts.gcs)
    return bool(has_pair and facts.store and facts.destination)


def _reported_access(config: SPUConfig, facts: Facts) -> tuple[int, int]:
    """Return whether the record describes a load or store, and whether it describes a load.

    Without FEAT_GCS a branch has no access, unless it generates an exception (D17.6.3).
    """
    has_access = config.gcs or facts.exception or not facts.branch
    return (facts.load | facts.store, facts.load) if has_access else (0, 0)


_EXCLUSIVE_EVENTS = {operations: mask(events_of(operations)) for operations in Operations}
"""Events that only these operations can have."""


def _events(config: SPUConfig, operation: Operation) -> int:
    """Return the value of the Events packet (D18.2.6)."""
    facts = operation.facts
    branch = facts.branch and not facts.exception
    accesses, loads = _reported_access(config, facts)
    value = operation.events & ~mask((Event.GENERATED_EXCEPTION, Event.NOT_TAKEN)) | mask([Event.RETIRED])
    for possible, operations in (
        (accesses, Operations.ACCESSES),
        (loads, Operations.LOADS),
        (branch, Operations.BRANCHES),
        ((operation.vectors.sve or operation.vectors.sme) and not branch, Operations.VECTORS),
    ):
        if not possible:
            value &= ~_EXCLUSIVE_EVENTS[operations]
    if facts.exception:
        value |= mask([Event.GENERATED_EXCEPTION])
    if facts.conditional and not facts.taken:
        value |= mask([Event.NOT_TAKEN])
    if config.spe_sme:
        value = value | mask([Event.SMCU]) if facts.asynchronous else value & ~mask([Event.SMCU])
    return value & mask(config.events)


def _operation(config: SPUConfig, operation: Operation) -> OperationType:
    """Return the content of the Operation Type packet (D18.2.7)."""
    facts, vectors = operation.facts, operation.vectors
    if facts.branch and not facts.exception:
        procedure = "call" if facts.link else "return" if facts.procedure_return else "neither"
        return OperationType("branch", "branch", {
            "conditional": facts.conditional, "indirect": facts.indirect, "gcs": facts.gcs if config.gcs else 0,
            "procedure": procedure if config.crr else "unknown",
        })  # fmt: skip
    scalable = vectors.sve or vectors.sme
    size = vectors.bits % (1 << 12) * (vectors.count if config.spe_sme else 1)
    if not facts.load and not facts.store:
        if vectors.sme:
            size = vectors.bits if vectors.tile else size
            # The ETS field encodes at most 262144 bits. A larger size is reported as the size of the complete array.
            is_complete_array = vectors.whole_array or size > 262144
            bits = "all" if is_complete_array else _rounded(size, 128)
            return OperationType("other", "sme", {"bits": bits, "fp": facts.floating_point})
        if scalable:
            attributes = {
                "bits": _vector_bits(config, size),
                "fp": facts.floating_point,
                "predicated": vectors.predicated,
            }
            return OperationType("other", "sve", attributes)
        fp, simd = (facts.floating_point, facts.vector and not facts.unspecified) if config.fpf else (0, 0)
        return OperationType("other", "other", {"conditional": facts.conditional, "fp": fp, "simd": simd})

    # An atomic that returns a value is a load. A memory copy is the access that is sampled.
    kind = "store" if not facts.load or _samples_store_of_pair(config, facts) else "load"
    if config.mops and facts.memory_copy:
        return OperationType(kind, "memory_copy", {})
    if config.mops and facts.memory_set:
        return OperationType(kind, "memory_set", {})
    if config.gcs and facts.gcs:
        return OperationType(kind, "gcs", {"common": not (facts.link or facts.procedure_return)})
    if config.mte and facts.allocation_tag:
        return OperationType(kind, "tag", {})
    if config.nv2 and facts.nv2:
        return OperationType(kind, "nv2", {})
    if scalable:
        predicated = vectors.predicated if kind == "store" or config.version >= PMSVer.SPE_V1P2 else 0
        return OperationType(kind, "sve", {
            "bits": _vector_bits(config, size), "predicated": predicated, "gather_scatter": vectors.gather_scatter,
        })  # fmt: skip
    if facts.atomic or facts.acquire_release or facts.exclusive:
        return OperationType(kind, "extended", {
            "atomic": facts.atomic, "exclusive": facts.exclusive, "acquire_release": facts.acquire_release,
        })  # fmt: skip
    if facts.unspecified and config.version >= PMSVer.SPE_V1P1:
        return OperationType(kind, "unspecified", {})
    return OperationType(kind, "simd_fp" if facts.simd_fp else "general", {})


def _vector_bits(config: SPUConfig, size: int) -> int | str:
    # The EVL field encodes at most 2048 bits. FEAT_SPE_SME adds an encoding for more.
    if size > 2048:
        return "more" if config.spe_sme else 2048
    return _rounded(size, 32)


def _rounded(size: int, minimum: int) -> int:
    """Return the size rounded up to a power of two, at least `minimum`."""
    return max(minimum, 1 << max(0, size - 1).bit_length())
