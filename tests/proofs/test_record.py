"""The proofs of the record builder fail for wrong circuits and wrong references."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any
from unittest.mock import patch

import pytest

from configurations import FEATURES, distinct
from formal.engine.integer import rebuild
from formal.engine.proof import Result
from formal.engine.terms import BitVector, Boolean, Term, all_of, boolean
from formal.engine.transition import Wires, transition
from formal.record import record
from formal.record.sample import sample_contract, unimplemented_facts
from spurtle.config import CONFIGS, SPUConfig
from spurtle.config.record_layouts import Packet
from spurtle.gateware.operation_type import OperationTypeEncoder
from spurtle.gateware.record import RecordBuilder
from spurtle_sim.model import operation_type, records
from tests.support.proofs import check_faults
from tests.support.tiers import tiers


def twin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the copy of the reference that the proofs will use."""
    module = rebuild(records)
    monkeypatch.setattr(record, "rebuild", lambda _: module)
    return module


FORMS: dict[str, Callable[[int], int]] = {
    "minimal_mops": lambda payload: payload ^ 1,
    "minimal_gcs": lambda payload: payload ^ 1 << 2,
    "minimal_tags": lambda payload: payload ^ 1 << 4,
    "minimal_nv2": lambda payload: payload ^ 1 << 5,
    "minimal_sve": lambda payload: payload ^ 1 << 7,
}


@pytest.mark.parametrize("name", FORMS)
def test_a_wrong_operation_type_of_the_reference_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = FEATURES[name]
    right = operation_type.load_store
    monkeypatch.setattr(operation_type, "load_store", lambda config, operation: FORMS[name](right(config, operation)))
    verdict = record.prove_operation(config, transition(RecordBuilder(config)))
    assert verdict.result is Result.FAIL
    assert "expected  packet_operation = 0x" in verdict.evidence


def test_a_vector_length_that_is_not_rounded_up_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    config = FEATURES["minimal_spe_sme"]
    system = transition(RecordBuilder(config))
    assert record.prove_operation(config, system).result is Result.PASS
    monkeypatch.setattr(
        operation_type, "_evl", lambda config, operation: sum(operation.vectors.bits >= 64 << n for n in range(7))
    )
    assert record.prove_operation(config, system).result is Result.FAIL


class MoreBranches(OperationTypeEncoder):
    """A reserved bit of the payload is set for branches."""

    def _branch(self):
        return super()._branch() | 1 << 7


class ReservedOperationType(RecordBuilder):
    def elaborate(self, platform):
        with patch("spurtle.gateware.record.OperationTypeEncoder", MoreBranches):
            return super().elaborate(platform)


@pytest.mark.parametrize(
    ("wrong", "config"),
    [
        (ReservedOperationType(FEATURES["minimal_crr"]), FEATURES["minimal_crr"]),
        # A form of the Guarded control stack.
        (RecordBuilder(FEATURES["minimal_gcs"]), replace(FEATURES["minimal_gcs"], name="without", gcs=False)),
        # A form of SME: an operation on the ZA array.
        (
            RecordBuilder(FEATURES["minimal_spe_sme"]),
            replace(FEATURES["minimal_spe_sme"], name="less", spe_sme=False, events=frozenset({*range(8), 17, 18})),
        ),
    ],
    ids=["reserved", "gcs", "sme"],
)
def test_reserved_or_unimplemented_forms_fail(wrong: RecordBuilder, config: SPUConfig) -> None:
    assert (
        record.prove_defined(FEATURES["minimal_v1p2"], transition(RecordBuilder(FEATURES["minimal_v1p2"]))).result
        is Result.PASS
    )
    assert "a cycle violates it" in record.prove_defined(config, transition(wrong)).evidence


REFERENCE: dict[str, tuple[str, str, Callable[[Any], Any], str]] = {
    "an address": (
        "minimal",
        "_address",
        lambda right: lambda index, address, top: right(index, address ^ 1, top),
        Packet.PC.value,
    ),
    "a tag that was not checked": (
        "minimal_mte",
        "_physical_address",
        lambda right: lambda config, operation: right(config, replace(operation, pa_checked=1)),
        Packet.PA.value,
    ),
    "an address of NV2": ("minimal_nv2", "_has_va", lambda right: lambda config, sample: 1, Packet.VA.value),
    "a branch that is an exception": (
        "minimal",
        "is_branch",
        lambda right: lambda facts: facts.branch,
        Packet.EVENTS.value,
    ),
    "a missing packet": (
        "kunpeng_920",
        "_has_va",
        lambda right: lambda config, sample: right(config, sample) & sample.operation.facts.pa_valid,
        Packet.VA.value,
    ),
}


@pytest.mark.parametrize("name", tiers(fast=[*REFERENCE][:1], full=REFERENCE))
def test_a_wrong_byte_of_the_reference_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration, function, change, packet = REFERENCE[name]
    config = {**CONFIGS, **FEATURES}[configuration]
    system = transition(RecordBuilder(config))
    assert record.prove_bytes(config, system).result is Result.PASS
    reference = twin(monkeypatch)
    monkeypatch.setattr(reference, function, change(getattr(reference, function)))
    verdict = record.prove_bytes(config, system)
    assert verdict.result is Result.FAIL
    assert packet in verdict.evidence


@pytest.mark.full
def test_packets_in_another_order_fail() -> None:
    config = FEATURES["minimal_packed"]
    other = replace(config, name="other", layout=replace(config.layout, fields=config.layout.fields[::-1]))
    assert record.prove_bytes(config, transition(RecordBuilder(config))).result is Result.PASS
    assert record.prove_bytes(other, transition(RecordBuilder(config))).result is Result.FAIL


@pytest.mark.parametrize("name", ["minimal_pbt", "minimal_packed"])
@pytest.mark.parametrize("count", tiers(full=[1], long=[10]))
def test_seeded_faults_of_the_record_fail(name: str, count: int) -> None:
    config = FEATURES[name]

    def assumed(wires: Wires) -> Boolean:
        return all_of(wires["rst"] == 0, sample_contract(config, wires["sample"]))

    def relevant(name: str, value: BitVector) -> Term:
        """Return the value, except for `has_end`: the header of a Timestamp packet has its bit as well."""
        return boolean(True) if name == "has_end" else value

    proofs = [partial(prove, config) for prove in (record.prove_events, record.prove_operation, record.prove_bytes)]
    check_faults(lambda: RecordBuilder(config), proofs, count=count, assuming=assumed, relevant=relevant)


@pytest.mark.full
def test_a_sample_that_violates_its_contract_has_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIGS["minimal"]
    monkeypatch.setattr(record, "sample_contract", lambda config, sample: boolean(True))
    with pytest.raises(ValueError, match=r"^a record of minimal has no field for CONTEXT_EL2$"):
        record.prove_bytes(config, transition(RecordBuilder(config)))


def test_facts_of_unimplemented_features_are_listed() -> None:
    assert set(unimplemented_facts(CONFIGS["v1p4"])) == {"imp_counter_valid", "imp_address_valid"}
    assert "floating_point" not in unimplemented_facts(FEATURES["minimal_sve"])
    assert "floating_point" in unimplemented_facts(CONFIGS["minimal"])


def test_each_distinct_circuit_is_proved_once() -> None:
    configs = [CONFIGS["minimal"], FEATURES["minimal_ernd"], FEATURES["minimal_crr"], FEATURES["minimal_pbt"]]
    names = [config.name for config in distinct(configs, "crr layout.max_size layout.fields")]
    assert names == ["minimal", "minimal_crr", "minimal_pbt"]
