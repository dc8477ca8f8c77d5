"""Text of packets, in the words of `perf report -D`.

Words that perf 6.1 does not have are those of a newer perf. Values for which no perf has a word are printed as numbers.
"""

from collections.abc import Callable

from spurtle.arch import ADDRESS_BITS, AddressIndex, CounterIndex
from spurtle.arch.events import EVENTS
from spurtle.arch.operation_types import EVL_UNIT, SVE_LOAD_STORE
from spurtle.arch.packets import INSTRUCTION_TOP, PHYSICAL_TOP

from .decode import DecodedPacket, PacketKind
from .operation_type import OperationType, operation_type

__all__ = ["describe", "line"]

_EVENT_WORDS: dict[int, str] = {
    **{row.event: row.word for row in EVENTS},
    16: "TXN",  # Transactional: reads as zero in the current architecture
}
_LOCATION_WORDS: dict[int, str] = {
    AddressIndex.PC: "PC",
    AddressIndex.TARGET: "TGT",
    AddressIndex.PREVIOUS_TARGET: "PBT",
}
_COUNTER_WORDS: dict[int, str] = {
    CounterIndex.TOTAL: " TOT",
    CounterIndex.ISSUE: " ISSUE",
    CounterIndex.TRANSLATION: " XLAT",
}
_FORM_WORDS = {
    "general": " GP-REG",
    "simd_fp": " SIMD-FP",
    "unspecified": " UNSPEC-REG",
    "tag": " MTE-TAG",
    "nv2": " NV-SYSREG",
    "memory_copy": " MEMCPY",
    "memory_set": " MEMSET",
    "gcs": " GCS",
}
# In the order in which perf prints them.
_FLAG_WORDS = {
    "atomic": " AT",
    "exclusive": " EXCL",
    "acquire_release": " AR",
    "common": " COMM",
    "simd": " ASE",
    "fp": " FP",
    "predicated": " PRED",
    "gather_scatter": " SG",
}
_PROCEDURE_WORDS = {"unknown": "", "call": " CR-BL", "return": " CR-RET", "neither": " CR-NON-BL-RET"}


def line(data: bytes, packet: DecodedPacket) -> str:
    """Return offset, bytes and description of a packet of `data`, in the format of `perf report -D`."""
    packet_bytes = data[packet.offset : packet.offset + packet.size].hex(" ")
    return f".  {packet.offset:08x}:  {packet_bytes:<47} {describe(packet)}"


def describe(packet: DecodedPacket) -> str:
    """Return the description of a packet."""
    return _DESCRIBE[packet.kind](packet.index, packet.value)


def _events(_index: int, value: int) -> str:
    words = (_EVENT_WORDS.get(bit, f"IMPDEF:{bit}") for bit in range(value.bit_length()) if value >> bit & 1)
    return " ".join(("EV", *words))


def _address(index: int, value: int) -> str:
    address, top = value & (1 << ADDRESS_BITS) - 1, value >> ADDRESS_BITS
    if index in _LOCATION_WORDS:
        el, ns, nse = (INSTRUCTION_TOP[name].of(top) for name in ("EL", "NS", "NSE"))
        return f"{_LOCATION_WORDS[index]} {address:#x} el{el} ns={ns}{' nse=1' if nse else ''}"
    if index == AddressIndex.VA:
        return f"VA {value:#x}"
    if index == AddressIndex.PA:
        ns, ch, pat, nse = (PHYSICAL_TOP[name].of(top) for name in ("NS", "CH", "PAT", "NSE"))
        return f"PA {address:#x} ns={ns} ch={ch} pat={pat:x}{' nse=1' if nse else ''}"
    return f"ADDR {value:#x} ({index})"


def _counter(index: int, value: int) -> str:
    return f"LAT {value}{_COUNTER_WORDS.get(index, f' ({index})')}"


def _vector_bits(payload: int) -> int:
    """Return the vector length as perf prints it. EVL has the same bit positions in both SVE formats."""
    return EVL_UNIT << SVE_LOAD_STORE.unpack(payload)["EVL"]


def _operation(index: int, value: int) -> str:
    operation = operation_type(index, value)
    if operation.kind == "branch":
        return _branch(operation)
    attributes = operation.attributes
    flags = "".join(word for name, word in _FLAG_WORDS.items() if attributes.get(name))
    if operation.kind in ("load", "store"):
        # perf prints 4096 for "more than 2048 bits".
        bits = f" EVLEN {_vector_bits(value)}" if "bits" in attributes else ""
        return ("LD" if operation.kind == "load" else "ST") + _FORM_WORDS.get(operation.form, "") + bits + flags
    if operation.form == "sve":
        return f"SVE-OTHER EVLEN {_vector_bits(value)}{flags}"
    if operation.form == "sme":
        return f"SME-OTHER ETS {attributes['bits']}{flags}"
    if operation.form == "other":
        if attributes["conditional"]:
            return f"OTHER{flags} COND-SELECT"
        return f"OTHER{flags or ' INSN-OTHER'}"
    return f"OP-TYPE {value:#x} ({index})"


def _branch(operation: OperationType) -> str:
    attributes = operation.attributes
    flags = "".join(
        word for name, word in (("conditional", " COND"), ("indirect", " IND"), ("gcs", " GCS")) if attributes[name]
    )
    return f"B{flags}{_PROCEDURE_WORDS[str(attributes['procedure'])]}"


_DESCRIBE: dict[PacketKind, Callable[[int, int], str]] = {
    PacketKind.PADDING: lambda _index, _value: "PAD",
    PacketKind.END: lambda _index, _value: "END",
    PacketKind.TIMESTAMP: lambda _index, value: f"TS {value}",
    PacketKind.EVENTS: _events,
    PacketKind.DATA_SOURCE: lambda _index, value: f"DATA-SOURCE {value}",
    PacketKind.CONTEXT: lambda index, value: f"CONTEXT {value:#x} el{index + 1}",
    PacketKind.OPERATION: _operation,
    PacketKind.ADDRESS: _address,
    PacketKind.COUNTER: _counter,
    PacketKind.UNKNOWN: lambda _index, value: f"UNKNOWN {value:#04x}",
    PacketKind.BAD: lambda _index, _value: "Bad packet!",
}
