"""Headers, indices and field encodings of packets (D18.2).

Ref: DDI0487 M.a, D18.2.
"""

from enum import IntEnum, unique

from .fields import BitField

__all__ = [
    "ADDRESS_BITS",
    "CONTEXT_BITS",
    "COUNT_BITS",
    "CR",
    "ETS",
    "EVL",
    "EXTENDED_INDEX",
    "HEADER_CLASS",
    "HEADER_INDEX",
    "HEADER_SIZE",
    "INSTRUCTION_TOP",
    "PHYSICAL_TOP",
    "VIRTUAL_ADDRESS_BITS",
    "AddressIndex",
    "ContextIndex",
    "CounterIndex",
    "DataSource",
    "Header",
    "OperationClass",
]


@unique
class Header(IntEnum):
    """First byte of each packet, with its index, class and size fields zero.

    Bits [5:4] are SZ: the payload has `1 << SZ` bytes.
    """

    PADDING = 0x00
    END = 0x01
    EXTENDED = 0x20
    EVENTS = 0x42
    DATA_SOURCE = 0x43
    OPERATION = 0x48
    CONTEXT = 0x64
    TIMESTAMP = 0x71
    COUNTER = 0x98
    ADDRESS = 0xB0

    @staticmethod
    def size_field(payload_bytes: int) -> int:
        """Return SZ within the header, for packets whose payload has more than one size."""
        return (payload_bytes.bit_length() - 1) << HEADER_SIZE.lsb


@unique
class AddressIndex(IntEnum):
    """INDEX of an Address packet (D18.2.1)."""

    PC = 0
    TARGET = 1
    VA = 2
    PA = 3
    PREVIOUS_TARGET = 4


@unique
class CounterIndex(IntEnum):
    """INDEX of a Counter packet (D18.2.3)."""

    TOTAL = 0
    ISSUE = 1
    TRANSLATION = 2
    ALTERNATE_ISSUE = 4


@unique
class ContextIndex(IntEnum):
    """INDEX of a Context packet (D18.2.2)."""

    EL1 = 0
    EL2 = 1


@unique
class DataSource(IntEnum):
    """Payload of a Data Source packet (D18.2.4), which is IMPLEMENTATION DEFINED: codes of cores of Arm.

    Ref: Neoverse N1 PMU guide, data source encoding; Linux tools/perf/util/arm-spe-decoder.
    """

    L1D = 0x0
    L2 = 0x8
    PEER_CORE = 0x9
    LOCAL_CLUSTER = 0xA
    SYSTEM_CACHE = 0xB
    PEER_CLUSTER = 0xC
    REMOTE = 0xD
    DRAM = 0xE


@unique
class OperationClass(IntEnum):
    """CLASS of an Operation Type packet (D18.2.7)."""

    OTHER = 0
    LOAD_STORE = 1
    BRANCH = 2


@unique
class EVL(IntEnum):
    """Limits of EVL, the vector length field, which holds log2(bits / 32) (D18.2.7)."""

    BITS_32 = 0b000
    BITS_2048 = 0b110
    MORE = 0b111


@unique
class ETS(IntEnum):
    """Limits of ETS, the tile size field, which holds log2(bits / 128) (D18.2.7)."""

    BITS_128 = 0b0000
    BITS_262144 = 0b1011
    WHOLE_ARRAY = 0b1111


@unique
class CR(IntEnum):
    """Call and return field of a branch (D18.2.7)."""

    NOT_RECORDED = 0b00
    LINK = 0b01
    RETURN = 0b10
    NEITHER = 0b11


VIRTUAL_ADDRESS_BITS = 64
"""Width of a data virtual address with its top byte: the payload of an Address packet (D18.2.1)."""

CONTEXT_BITS = 32
"""Width of the payload of a Context packet: CONTEXTIDR_EL1 or CONTEXTIDR_EL2 (D18.2.2)."""

COUNT_BITS = 64
"""Width of the payload of a Timestamp packet: a count of the Generic Timer (D18.2.9)."""

ADDRESS_BITS = 56
"""Width of ADDR in an Address packet. The meaning of the top byte depends on INDEX (D18.2.1)."""

HEADER_SIZE = BitField(4, 2)
"""SZ of a header of 0x40 or more: the payload has `1 << SZ` bytes (D18.1)."""

HEADER_INDEX = BitField(0, 3)
"""INDEX[2:0] of an Address or Counter packet (D18.2.1, D18.2.3)."""

HEADER_CLASS = BitField(0, 2)
"""INDEX of a Context packet, CLASS of an Operation Type packet (D18.2.2, D18.2.7)."""

EXTENDED_INDEX = BitField(0, 2)
"""INDEX[4:3] in the preceding byte of an extended header (D18.2.1, D18.2.3)."""

INSTRUCTION_TOP = {"NSE": BitField(4, 1), "EL": BitField(5, 2), "NS": BitField(7, 1)}
"""Fields in the top byte of an instruction address: PC, target, previous target (D18.2.1)."""

PHYSICAL_TOP = {"PAT": BitField(0, 4), "NSE": BitField(4, 1), "CH": BitField(6, 1), "NS": BitField(7, 1)}
"""Fields in the top byte of a data physical address (D18.2.1)."""
