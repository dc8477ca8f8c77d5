"""An independent model of the filters of `spurtle profile`, over decoded records and without registers."""

from collections.abc import Mapping

from spurtle.arch import OperationClass
from spurtle_sim.records.decode import Record
from spurtle_sim.records.operation_type import operation_type
from spurtle_sim.trace.instruction import FACT, Instruction

__all__ = ["operation_types", "passes_filter"]


def operation_types(record: Record, instruction: Instruction) -> set[str]:
    """Return the types of the sampled operation, by perf's names.

    The instruction says whether they include SIMD and floating point, because the Operation Type packet does not.
    """
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
    """Return whether a record passes the filter with these `terms`, which are those of `spurtle profile`."""
    assert record.events is not None and record.total is not None
    found = operation_types(record, instruction)
    names = ("branch", "load", "store", "simd", "float")
    exact = {name for name in names if terms.get(f"{name}_filter_mask")}
    selected = {name for name in names if terms.get(f"{name}_filter")}
    if found & exact != selected & exact or (selected - exact and not found & (selected - exact)):
        return False
    events, inverse = terms.get("event_filter", 0), terms.get("inv_event_filter", 0)
    if record.events & events != events or record.events & inverse:
        return False
    if record.data_source is not None and terms.get("inv_data_src_filter", 0) >> record.data_source % 64 & 1:
        return False
    return record.total >= terms.get("min_latency", 0)
