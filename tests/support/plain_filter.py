"""What a filter keeps, in plain Python over decoded records: neither the registers nor the SPU's own idea of them."""

from collections.abc import Mapping

from spurtle.arch import OperationClass
from spurtle_sim.records.decode import Record
from spurtle_sim.records.operation_type import operation_type
from spurtle_sim.trace.instruction import FACT, Instruction

__all__ = ["operation_types", "passes_filter"]


def operation_types(record: Record, instruction: Instruction) -> set[str]:
    """Of the sampled operation, by perf's names. Its packet does not say SIMD and FP: they are the instruction's."""
    assert record.operation_packet is not None
    found = operation_type(*record.operation_packet)
    result: set[str] = set()
    if record.operation_packet[0] == OperationClass.BRANCH:
        result.add("branch")
    if found.kind in ("load", "store"):
        result.add(found.kind)
        if found.attributes.get("atomic"):
            result.add("store")
    facts = {name for name, bit in FACT.items() if instruction.facts & bit}
    if "vector" in facts:
        result.add("simd")
    if "floating_point" in facts or facts & {"simd_fp", "vector"} == {"simd_fp"}:
        result.add("float")
    return result


def passes_filter(terms: Mapping[str, int], record: Record, instruction: Instruction) -> bool:
    """Whether a filter of these `terms`, all of them as `spurtle profile` takes them, keeps the record."""
    assert record.events is not None and record.total is not None
    found = operation_types(record, instruction)
    names = ("branch", "load", "store", "simd", "float")
    exact = {name for name in names if terms.get(f"{name}_filter_mask")}
    wanted = {name for name in names if terms.get(f"{name}_filter")}
    if found & exact != wanted & exact or (wanted - exact and not found & (wanted - exact)):
        return False
    events, inverse = terms.get("event_filter", 0), terms.get("inv_event_filter", 0)
    if record.events & events != events or record.events & inverse:
        return False
    if record.data_source is not None and terms.get("inv_data_src_filter", 0) >> record.data_source % 64 & 1:
        return False
    return record.total >= terms.get("min_latency", 0)
