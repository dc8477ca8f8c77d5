"""Decoder of the Operation Type packet, for every version up to FEAT_SPEv1p4.

If the figures and the lists of fields in the architecture disagree, the description of each field decides.

Ref: DDI0487 M.a, D18.2.7.
"""

from dataclasses import dataclass
from functools import cache

from spurtle.arch import ETS, EVL, OperationClass
from spurtle.arch.operation_types import ETS_UNIT, EVL_UNIT, FORMS, GENERAL, Form
from spurtle.arch.values import is_defined
from spurtle.config import SPUConfig

__all__ = ["OperationType", "forms", "operation_type"]

_PROCEDURE = ("unknown", "call", "return", "neither")

_FLAGS = {
    "COND": "conditional",
    "FP": "fp",
    "ASE": "simd",
    "PRED": "predicated",
    "AT": "atomic",
    "EXCL": "exclusive",
    "AR": "acquire_release",
    "SG": "gather_scatter",
    "COMM": "common",
    "IND": "indirect",
    "GCS": "gcs",
}
"""Names of the attributes of one-bit fields, by field."""


@dataclass(frozen=True, slots=True)
class OperationType:
    """Decoded Operation Type packet: kind of operation, payload format, and fields of the payload.

    Parameters
    ----------
    kind : str
        "other", "load", "store" or "branch"; "reserved" if CLASS or SUBCLASS is reserved.
    form : str
        Payload format of D18.2.7: "other", "sve" or "sme"; "general", "simd_fp", "unspecified", "tag", "nv2",
        "extended", "sve", "memory_copy", "memory_set" or "gcs"; "branch". Empty if reserved.
    attributes : dict of str to bool, int or str
        Fields of the payload. `bits` is the vector length or tile size; "more" means more than 2048 bits (EVL), and
        "all" means the complete ZA array (ETS).
    """

    kind: str
    form: str
    attributes: dict[str, bool | int | str]


def forms(config: SPUConfig, kind: str) -> tuple[str, ...]:
    """Return the forms of the operations of `kind` that the version and the features of `config` define."""
    defined = [form for form in FORMS if kind in _kinds(form) and is_defined(form, config.version, config.features)]
    return tuple(name for form in defined for name in _names(form))


def _kinds(form: Form) -> tuple[str, ...]:
    """Return the kinds of operation that can have a form."""
    if form.operation_class is not OperationClass.LOAD_STORE:
        return ("branch" if form.operation_class is OperationClass.BRANCH else "other",)
    return ("load", "store") if "LDST" in form.fields else ("store",)


def _names(form: Form) -> tuple[str, ...]:
    return ("general", "simd_fp") if form is GENERAL else (form.name,)


@cache
def operation_type(operation_class: int, payload: int) -> OperationType:
    """Return the decoded packet of a CLASS and a payload byte."""
    form = next((form for form in FORMS if form.matches(operation_class, payload)), None)
    if form is None:
        return _reserved(operation_class, payload)
    fields = form.unpack(payload)
    if ETS.BITS_262144 < fields.get("ETS", 0) < ETS.WHOLE_ARRAY:
        return _reserved(operation_class, payload)
    if form.operation_class is OperationClass.LOAD_STORE:
        kind = "store" if fields.pop("LDST", 1) else "load"
    else:
        [kind] = _kinds(form)
    name = "simd_fp" if fields.pop("SIMD_FP", 0) else form.name
    return OperationType(kind, name, dict(_attribute(name, value) for name, value in fields.items()))


def _attribute(field: str, value: int) -> tuple[str, bool | int | str]:
    """Return the name and value of the attribute for a field."""
    match field:
        case "EVL":
            return "bits", EVL_UNIT << value if value < EVL.MORE else "more"
        case "ETS":
            return "bits", ETS_UNIT << value if value < ETS.WHOLE_ARRAY else "all"
        case "CR":
            return "procedure", _PROCEDURE[value]
        case _:
            return _FLAGS[field], value == 1


def _reserved(operation_class: int, payload: int) -> OperationType:
    return OperationType("reserved", "", {"class": operation_class, "payload": payload})
