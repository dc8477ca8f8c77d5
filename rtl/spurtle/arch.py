"""The architecture's own numbers: registers, packet headers, operation types, events, buffer status codes.

Data only, shared by the gateware, the reference, the decoder and the documents, under the architecture's names.
"""

# Ref: DDI0487 M.a, D18.2 (packets) and D24.7 (System registers).

from dataclasses import dataclass
from enum import IntEnum, unique
from types import SimpleNamespace
from typing import Any

from amaranth.lib import data

__all__ = [
    "BSC",
    "CR",
    "EC",
    "ETS",
    "EVL",
    "FM",
    "PCT",
    "REGISTERS",
    "AddressIndex",
    "AltClk",
    "ContextIndex",
    "CounterIndex",
    "Event",
    "Field",
    "Header",
    "OperationClass",
    "PMSVer",
    "Register",
]


# Packets: D18.2.


@unique
class Header(IntEnum):
    """First byte of each packet with its index, class and size fields zero. Bits [5:4] are SZ: a payload of `1 << SZ`
    bytes.
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
        """SZ in its place, for the packets whose payload has more than one size."""
        return (payload_bytes.bit_length() - 1) << 4


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
class OperationClass(IntEnum):
    """CLASS of an Operation Type packet (D18.2.7)."""

    OTHER = 0
    LOAD_STORE = 1
    BRANCH = 2


@unique
class Event(IntEnum):
    """Bit numbers of the Events packet (D18.2.6)."""

    GENERATED_EXCEPTION = 0
    RETIRED = 1
    L1D_ACCESS = 2
    L1D_REFILL = 3
    TLB_ACCESS = 4
    TLB_WALK = 5
    NOT_TAKEN = 6
    MISPREDICTED = 7
    LLC_ACCESS = 8
    LLC_MISS = 9
    REMOTE_ACCESS = 10
    MISALIGNED = 11
    PARTIAL_PREDICATE = 17
    EMPTY_PREDICATE = 18
    L2D_ACCESS = 19
    L2D_MISS = 20
    CACHE_DATA_MODIFIED = 21
    RECENTLY_FETCHED = 22
    DATA_SNOOPED = 23
    STREAMING_SVE = 24
    SMCU = 25


@unique
class EVL(IntEnum):
    """Bounds of the vector length field of an Operation Type packet, which holds log2(bits / 32) (D18.2.7)."""

    BITS_32 = 0b000
    BITS_2048 = 0b110
    MORE = 0b111


@unique
class ETS(IntEnum):
    """Bounds of the tile size field, which holds log2(bits / 128) (D18.2.7)."""

    BITS_128 = 0b0000
    BITS_262144 = 0b1011
    WHOLE_ARRAY = 0b1111


@unique
class CR(IntEnum):
    """Whether a branch calls or returns (D18.2.7)."""

    NOT_RECORDED = 0b00
    LINK = 0b01
    RETURN = 0b10
    NEITHER = 0b11


ADDRESS_BITS = 56
"""ADDR of an Address packet: what the top byte says depends on INDEX (D18.2.1)."""


# System registers: D24.7.


@unique
class PMSVer(IntEnum):
    """ID_AA64DFR0_EL1.PMSVer: which version of the extension."""

    SPE = 1
    SPE_V1P1 = 2
    SPE_V1P2 = 3
    SPE_V1P3 = 4
    SPE_V1P4 = 5


@unique
class AltClk(IntEnum):
    """PMSIDR_EL1.ALTCLK: the clock of the alternate clock issue latency (D17.6.1)."""

    NONE = 0
    SMCU = 1
    IMPLEMENTATION_DEFINED = 15


@unique
class EC(IntEnum):
    """PMBSR_EL1.EC: class of the buffer management event."""

    OTHER = 0x00
    GRANULE_PROTECTION = 0x1E
    IMPLEMENTATION_DEFINED = 0x1F
    STAGE_1 = 0x24
    STAGE_2 = 0x25


@unique
class BSC(IntEnum):
    """PMBSR_EL1.MSS[5:0] when EC is 0: buffer status code."""

    NOT_STOPPED = 0
    BUFFER_FILLED = 1


@unique
class FM(IntEnum):
    """PMBLIMITR_EL1.FM: what is done with records. Other values are reserved."""

    FILL = 0b00
    DISCARD = 0b10


@unique
class PCT(IntEnum):
    """PMSCR_EL1.PCT and PMSCR_EL2.PCT: which time a record holds. The other value is reserved; bit 1 needs FEAT_ECV."""

    VIRTUAL = 0b00
    PHYSICAL = 0b01
    OFFSET_PHYSICAL = 0b11


@dataclass(frozen=True)
class Field:
    """A field of a System register: `width` bits from bit `lsb` upward."""

    lsb: int
    width: int = 1

    @property
    def mask(self) -> int:
        """The field's bits, in place."""
        return ((1 << self.width) - 1) << self.lsb


@dataclass(frozen=True)
class Register:
    """A 64-bit System register: op0 is 3 for all of them.

    Bits that no field names are RES0. Which fields a configuration implements is `SPUConfig.writable`'s to say.
    """

    name: str
    op1: int
    crm: int
    op2: int
    fields: dict[str, Field]
    read_only: bool = False
    crn: int = 9

    def layout(self) -> data.FlexibleLayout:
        """The fields as an Amaranth layout of 64 bits."""
        return data.FlexibleLayout(
            64, {name: data.Field(field.width, field.lsb) for name, field in self.fields.items()}
        )

    def unpack(self, value: int) -> Any:
        """The fields of `value`, as attributes."""
        return SimpleNamespace(
            **{name: (value >> field.lsb) & ((1 << field.width) - 1) for name, field in self.fields.items()}
        )

    def pack(self, **fields: int) -> int:
        """The value that holds `fields`, all others zero. Raises KeyError on an unknown field, ValueError on one that
        is too large.
        """
        value = 0
        for name, number in fields.items():
            field = self.fields[name]
            if not 0 <= number < 1 << field.width:
                raise ValueError(f"{self.name}.{name} must be below {1 << field.width}, not {number}")
            value |= number << field.lsb
        return value


PMSCR_EL1 = Register(
    "PMSCR_EL1",
    0,
    9,
    0,
    {"E0SPE": Field(0), "E1SPE": Field(1), "CX": Field(3), "PA": Field(4), "TS": Field(5), "PCT": Field(6, 2)},
)
PMSCR_EL2 = Register(
    "PMSCR_EL2",
    4,
    9,
    0,
    {"E0HSPE": Field(0), "E2SPE": Field(1), "CX": Field(3), "PA": Field(4), "TS": Field(5), "PCT": Field(6, 2)},
)
PMSNEVFR_EL1 = Register("PMSNEVFR_EL1", 0, 9, 1, {"E": Field(0, 64)})
PMSICR_EL1 = Register("PMSICR_EL1", 0, 9, 2, {"COUNT": Field(0, 32), "ECOUNT": Field(56, 8)})
PMSIRR_EL1 = Register("PMSIRR_EL1", 0, 9, 3, {"RND": Field(0), "INTERVAL": Field(8, 24)})
PMSFCR_EL1 = Register(
    "PMSFCR_EL1",
    0,
    9,
    4,
    {
        "FE": Field(0),
        "FT": Field(1),
        "FL": Field(2),
        "FnE": Field(3),
        "FDS": Field(4),
        "B": Field(16),
        "LD": Field(17),
        "ST": Field(18),
        "FP": Field(19),
        "SIMD": Field(20),
        "Bm": Field(48),
        "LDm": Field(49),
        "STm": Field(50),
        "FPm": Field(51),
        "SIMDm": Field(52),
    },
)
PMSEVFR_EL1 = Register("PMSEVFR_EL1", 0, 9, 5, {"E": Field(0, 64)})
PMSLATFR_EL1 = Register("PMSLATFR_EL1", 0, 9, 6, {"MINLAT": Field(0, 16)})
PMSIDR_EL1 = Register(
    "PMSIDR_EL1",
    0,
    9,
    7,
    {
        "FE": Field(0),
        "FT": Field(1),
        "FL": Field(2),
        "ArchInst": Field(3),
        "LDS": Field(4),
        "ERnd": Field(5),
        "FnE": Field(6),
        "FDS": Field(7),
        "Interval": Field(8, 4),
        "MaxSize": Field(12, 4),
        "CountSize": Field(16, 4),
        "Format": Field(20, 4),
        "PBT": Field(24),
        "CRR": Field(25),
        "EFT": Field(26),
        "FPF": Field(27),
        "ALTCLK": Field(28, 4),
        "SME": Field(32),
    },
    read_only=True,
)
PMBLIMITR_EL1 = Register(
    "PMBLIMITR_EL1",
    0,
    10,
    0,
    {"E": Field(0), "FM": Field(1, 2), "PMFZ": Field(5), "nVM": Field(7), "LIMIT": Field(12, 52)},
)
PMBPTR_EL1 = Register("PMBPTR_EL1", 0, 10, 1, {"PTR": Field(0, 64)})
PMBSR_EL1 = Register(
    "PMBSR_EL1",
    0,
    10,
    3,
    {
        "MSS": Field(0, 16),
        "COLL": Field(16),
        "S": Field(17),
        "EA": Field(18),
        "DL": Field(19),
        "EC": Field(26, 6),
        "MSS2": Field(32, 24),
    },
)
PMSDSFR_EL1 = Register("PMSDSFR_EL1", 0, 10, 4, {"S": Field(0, 64)})
PMBIDR_EL1 = Register(
    "PMBIDR_EL1",
    0,
    10,
    7,
    {
        "Align": Field(0, 4),
        "P": Field(4),
        "F": Field(5),
        "AddrMode": Field(6, 2),
        "EA": Field(8, 4),
        "MaxBuffSize": Field(32, 16),
    },
    read_only=True,
)
IMP_PMSRNDR_EL1 = Register("IMP_PMSRNDR_EL1", 0, 10, 2, {"STATE": Field(0, 32), "ACCESS": Field(32, 32)}, crn=15)
"""IMPLEMENTATION DEFINED: the states of the pseudorandom number generators, to be read and seeded. That of the sample
interval counters (D17.3.2), and that which chooses one of two accesses (D17.6.4.3, D17.6.4.5)."""

REGISTERS = (
    PMSCR_EL1,
    PMSNEVFR_EL1,
    PMSICR_EL1,
    PMSIRR_EL1,
    PMSFCR_EL1,
    PMSEVFR_EL1,
    PMSLATFR_EL1,
    PMSIDR_EL1,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSDSFR_EL1,
    PMBIDR_EL1,
    PMSCR_EL2,
    IMP_PMSRNDR_EL1,
)
"""Every System register that an SPU can have, in the order of their encodings. `SPUConfig.registers` has its own."""
