"""A packet as a line of text, in the words of `perf report -D`."""

# Where perf 6.1 has no word, a newer perf's is taken; where no perf has one, the number is printed.

from collections.abc import Callable

from spurtle.arch import ADDRESS_BITS, AddressIndex, CounterIndex, Event

from .decode import DecodedPacket, PacketKind
from .operation_type import OperationType, operation_type

__all__ = ["describe", "line"]

_EVENT_WORDS: dict[int, str] = {
    Event.GENERATED_EXCEPTION: "EXCEPTION-GEN",
    Event.RETIRED: "RETIRED",
    Event.L1D_ACCESS: "L1D-ACCESS",
    Event.L1D_REFILL: "L1D-REFILL",
    Event.TLB_ACCESS: "TLB-ACCESS",
    Event.TLB_WALK: "TLB-REFILL",
    Event.NOT_TAKEN: "NOT-TAKEN",
    Event.MISPREDICTED: "MISPRED",
    Event.LLC_ACCESS: "LLC-ACCESS",
    Event.LLC_MISS: "LLC-REFILL",
    Event.REMOTE_ACCESS: "REMOTE-ACCESS",
    Event.MISALIGNED: "ALIGNMENT",
    16: "TXN",  # Transactional: reads as zero now
    Event.PARTIAL_PREDICATE: "SVE-PARTIAL-PRED",
    Event.EMPTY_PREDICATE: "SVE-EMPTY-PRED",
    Event.L2D_ACCESS: "L2D-ACCESS",
    Event.L2D_MISS: "L2D-MISS",
    Event.CACHE_DATA_MODIFIED: "HITM",
    Event.RECENTLY_FETCHED: "LFB",
    Event.DATA_SNOOPED: "SNOOPED",
    Event.STREAMING_SVE: "STREAMING-SVE",
    Event.SMCU: "SMCU",
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
    """Offset, bytes and meaning of a packet of `data`, as `perf report -D` lays them out."""
    packet_bytes = data[packet.offset : packet.offset + packet.size].hex(" ")
    return f".  {packet.offset:08x}:  {packet_bytes:<47} {describe(packet)}"


def describe(packet: DecodedPacket) -> str:
    """The meaning of a packet."""
    return _DESCRIBE[packet.kind](packet.index, packet.value)


def _events(_index: int, value: int) -> str:
    words = (_EVENT_WORDS.get(bit, f"IMPDEF:{bit}") for bit in range(value.bit_length()) if value >> bit & 1)
    return " ".join(("EV", *words))


def _address(index: int, value: int) -> str:
    address, top = value & (1 << ADDRESS_BITS) - 1, value >> ADDRESS_BITS
    if index in _LOCATION_WORDS:
        nse = " nse=1" if top >> 4 & 1 else ""
        return f"{_LOCATION_WORDS[index]} {address:#x} el{top >> 5 & 0b11} ns={top >> 7}{nse}"
    if index == AddressIndex.VA:
        return f"VA {value:#x}"
    if index == AddressIndex.PA:
        nse = " nse=1" if top >> 4 & 1 else ""
        return f"PA {address:#x} ns={top >> 7} ch={top >> 6 & 1} pat={top & 0b1111:x}{nse}"
    return f"ADDR {value:#x} ({index})"


def _counter(index: int, value: int) -> str:
    return f"LAT {value}{_COUNTER_WORDS.get(index, f' ({index})')}"


def _operation(index: int, value: int) -> str:
    operation = operation_type(index, value)
    if operation.kind == "branch":
        return _branch(operation)
    attributes = operation.attributes
    flags = "".join(word for name, word in _FLAG_WORDS.items() if attributes.get(name))
    if operation.kind in ("load", "store"):
        # perf says 4096 for "more than 2048 bits".
        bits = f" EVLEN {32 << (value >> 4 & 0b111)}" if "bits" in attributes else ""
        return ("LD" if operation.kind == "load" else "ST") + _FORM_WORDS.get(operation.form, "") + bits + flags
    if operation.form == "sve":
        return f"SVE-OTHER EVLEN {32 << (value >> 4 & 0b111)}{flags}"
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
