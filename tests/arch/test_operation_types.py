"""Formats of the Operation Type packet: SUBCLASS fixes every bit outside of the fields. No payload has two formats."""

import pytest

from spurtle.arch import OperationClass
from spurtle.arch.operation_types import FORMS, MEMORY_SET, Form


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.operation_class.name}-{form.name}")
def test_each_bit_is_fixed_or_in_one_field(form: Form) -> None:
    bits = [bit for field in form.fields.values() for bit in field]
    assert sorted(bits) == [bit for bit in range(8) if not form.fixed >> bit & 1]


@pytest.mark.parametrize("operation_class", OperationClass)
def test_no_payload_has_two_formats(operation_class: OperationClass) -> None:
    for payload in range(256):
        assert len([form for form in FORMS if form.matches(operation_class, payload)]) <= 1, f"{payload:#04x}"


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.operation_class.name}-{form.name}")
def test_unpacked_fields_pack_to_the_payload(form: Form) -> None:
    payloads = [payload for payload in range(256) if form.matches(form.operation_class, payload)]
    assert len(payloads) == 1 << sum(map(len, form.fields.values()))
    for payload in payloads:
        assert form.pack(**form.unpack(payload)) == payload


def test_an_unknown_field_is_an_error() -> None:
    with pytest.raises(KeyError, match="LDST"):
        MEMORY_SET.pack(LDST=1)
