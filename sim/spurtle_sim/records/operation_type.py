"""What the payload of an Operation Type packet says, of every version up to FEAT_SPEv1p4."""

# Ref: DDI0487 M.a, D18.2.7. Where the figures and the lists of fields disagree, the description of each field decides.

from dataclasses import dataclass
from functools import cache

from spurtle.arch import OperationClass, PMSVer
from spurtle.config import SPUConfig

__all__ = ["OperationType", "forms", "operation_type"]

_PROCEDURE = ("unknown", "call", "return", "neither")
_WHOLE_ARRAY = 0b1111
_LARGEST_ETS = 0b1011


@dataclass(frozen=True, slots=True)
class OperationType:
    """An operation's class, the format of its packet, and the fields of that format.

    Parameters
    ----------
    kind : str
        "other", "load", "store", "branch", or "reserved" where CLASS or SUBCLASS is.
    form : str
        Which payload of D18.2.7: "other", "sve" or "sme"; "general", "simd_fp", "unspecified", "tag", "nv2",
        "extended", "sve", "memory_copy", "memory_set" or "gcs"; "branch". Empty if reserved.
    attributes : dict of str to bool, int or str
        Fields of that payload. `bits` is the vector or tile size: "more" than 2048 (EVL), "all" of the ZA array.
    """

    kind: str
    form: str
    attributes: dict[str, bool | int | str]


def forms(config: SPUConfig, kind: str) -> tuple[str, ...]:
    """The forms of the operations of `kind` that the version and the features of `config` define."""
    if kind == "branch":
        return ("branch",)
    if kind == "other":
        return ("other", *(["sve"] if config.scalable else []), *(["sme"] if config.spe_sme else []))
    defined = {
        "general": True,
        "simd_fp": True,
        "extended": True,
        "unspecified": config.version >= PMSVer.SPE_V1P1,
        "tag": config.mte and config.version >= PMSVer.SPE_V1P3,
        "nv2": config.nv2,
        "sve": config.scalable,
        "memory_copy": config.mops,
        "memory_set": config.mops and kind == "store",
        "gcs": config.gcs,
    }
    return tuple(form for form, there in defined.items() if there)


@cache
def operation_type(operation_class: int, payload: int) -> OperationType:
    """Decode CLASS and the payload byte."""
    if operation_class == OperationClass.OTHER:
        return _other(payload)
    if operation_class == OperationClass.LOAD_STORE:
        return _load_store(payload)
    if operation_class == OperationClass.BRANCH and payload & 0b1110_0000 == 0:
        return OperationType("branch", "branch", {
            "conditional": _bit(payload, 0),
            "indirect": _bit(payload, 1),
            "gcs": _bit(payload, 2),
            "procedure": _PROCEDURE[payload >> 3 & 0b11],
        })  # fmt: skip
    return _reserved(operation_class, payload)


def _bit(payload: int, number: int) -> bool:
    return payload >> number & 1 == 1


def _reserved(operation_class: int, payload: int) -> OperationType:
    return OperationType("reserved", "", {"class": operation_class, "payload": payload})


def _vector_bits(payload: int) -> int | str:
    evl = payload >> 4 & 0b111
    return 32 << evl if evl < 0b111 else "more"


def _other(payload: int) -> OperationType:
    if payload & 0b1111_1000 == 0:
        conditional, fp, simd = _bit(payload, 0), _bit(payload, 1), _bit(payload, 2)
        return OperationType("other", "other", {"conditional": conditional, "fp": fp, "simd": simd})
    if payload & 0b1000_1001 == 0b0000_1000:
        bits = _vector_bits(payload)
        return OperationType("other", "sve", {"bits": bits, "fp": _bit(payload, 1), "predicated": _bit(payload, 2)})
    if payload & 0b1000_1001 == 0b1000_1000:
        ets = payload >> 3 & 0b1110 | payload >> 2 & 1
        if ets <= _LARGEST_ETS or ets == _WHOLE_ARRAY:
            bits = "all" if ets == _WHOLE_ARRAY else 128 << ets
            return OperationType("other", "sme", {"bits": bits, "fp": _bit(payload, 1)})
    return _reserved(OperationClass.OTHER, payload)


_GENERAL_FORMS = {
    0b0000_0000: "general",
    0b0000_0100: "simd_fp",
    0b0001_0000: "unspecified",
    0b0001_0100: "tag",
    0b0011_0000: "nv2",
    0b0010_0000: "memory_copy",
}


def _load_store(payload: int) -> OperationType:
    kind = "store" if _bit(payload, 0) else "load"
    subclass = payload & 0b1111_1110
    if subclass in _GENERAL_FORMS:
        return OperationType(kind, _GENERAL_FORMS[subclass], {})
    if payload == 0b0010_0101:
        return OperationType(kind, "memory_set", {})
    if payload & 0b1110_0010 == 0b0000_0010:
        return OperationType(kind, "extended", {
            "atomic": _bit(payload, 2),
            "exclusive": _bit(payload, 3),
            "acquire_release": _bit(payload, 4),
        })  # fmt: skip
    if payload & 0b0000_1010 == 0b0000_1000:
        return OperationType(kind, "sve", {
            "bits": _vector_bits(payload),
            "predicated": _bit(payload, 2),
            "gather_scatter": _bit(payload, 7),
        })  # fmt: skip
    if payload & 0b1111_1010 == 0b0100_0000:
        return OperationType(kind, "gcs", {"common": _bit(payload, 2)})
    return _reserved(OperationClass.LOAD_STORE, payload)
