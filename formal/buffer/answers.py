"""Conditions on what memory answered in the previous cycle. They are part of the invariant `relation`."""

from collections.abc import Iterator

from spurtle.arch import BSC, EC
from spurtle.config import SPUConfig
from spurtle.interface.memory import WriteFaultKind

from ..engine.terms import BitVector, Boolean, all_of, any_of, constant, extract, if_else, implies, not_, ult, widened
from ..engine.transition import Wires
from .history import LENGTH_BITS, SentRecords

__all__ = ["answered", "is_fault_kind", "syndrome"]


def is_fault_kind(config: SPUConfig, kind: BitVector) -> Boolean:
    """Return whether this is a kind of fault that the configuration has."""
    kinds = [each for each in WriteFaultKind if config.rme or each != WriteFaultKind.GRANULE_PROTECTION]
    return any_of(*(kind == each.value for each in kinds))


def answered(config: SPUConfig, wires: Wires, records: SentRecords) -> Iterator[Boolean]:
    """Yield the conditions on the record that memory answered in the previous cycle, if it was not abandoned."""
    kept = wires["kept"] == 1
    pointer = wires["pmbptr"]
    word = widened(wires["fault_word"], 64)
    written = if_else(word == 0, constant(0, 64), word * records.bus - (pointer & (records.bus - 1)))
    fails = wires["fault_kind"] != WriteFaultKind.NONE.value
    yield implies(wires["answered"] == 1, is_fault_kind(config, wires["fault_kind"]))
    yield implies(
        all_of(kept, fails),
        all_of(
            ult(written, widened(wires["answered_length"], 64)),
            _position(records, wires["write_pointer.reached"], pointer + written),
            wires["stale"] == 1,
        ),
    )
    yield implies(
        all_of(kept, not_(fails)),
        _position(records, wires["write_pointer.reached"], pointer + widened(wires["answered_length"], 64)),
    )


def _position(records: SentRecords, reached: BitVector, address: BitVector) -> Boolean:
    return reached == extract(LENGTH_BITS - 1, records.align.bit_length() - 1, address)


def syndrome(config: SPUConfig, wires: Wires) -> Iterator[Boolean]:
    """Yield the conditions on the registered syndrome: of the fault, or of a full buffer."""
    valid = wires["answered"] == 1
    kind = wires["fault_kind"]
    data_abort = any_of(kind == WriteFaultKind.STAGE_1.value, kind == WriteFaultKind.STAGE_2.value)
    classes = {
        WriteFaultKind.STAGE_1: EC.STAGE_1,
        WriteFaultKind.STAGE_2: EC.STAGE_2,
        WriteFaultKind.GRANULE_PROTECTION: EC.GRANULE_PROTECTION,
    }
    ec = constant(EC.OTHER, 6)
    for each, value in classes.items():
        if config.rme or each != WriteFaultKind.GRANULE_PROTECTION:
            ec = if_else(kind == each.value, constant(value, 6), ec)
    status = "buffer_status"
    mss = if_else(data_abort, widened(wires["fault_fsc"], 16), constant(0, 16))
    yield wires[f"{status}.syndrome.EC"] == if_else(valid, ec, constant(EC.OTHER, 6))
    yield wires[f"{status}.syndrome.MSS"] == if_else(valid, mss, constant(BSC.BUFFER_FILLED, 16))
    for flag in config.fault_flags:
        fault = if_else(all_of(valid, data_abort), wires[f"fault_{flag}"], constant(0, 1))
        yield wires[f"{status}.syndrome.{flag}"] == fault
    fails = all_of(valid, kind != WriteFaultKind.NONE.value)
    yield (wires[f"{status}.failed"] == 1) == all_of(fails, wires["kept"] == 1)
    not_at_end = any_of(wires["fault_word"] != 0, kind == WriteFaultKind.NOT_ALLOWED.value)
    yield implies(valid, (wires[f"{status}.not_at_end"] == 1) == not_at_end)
    if config.external_aborts:
        yield (wires[f"{status}.external"] == 1) == all_of(fails, wires["fault_external"] == 1)
