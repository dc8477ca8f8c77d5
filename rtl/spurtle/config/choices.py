"""Choices that an SPU is built from: features, sizes and IMPLEMENTATION DEFINED behavior.

Ref: DDI0487 M.a, D17.3 to D17.7.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from types import MappingProxyType

from ..arch import AltClk, PMSVer
from .random_numbers import ELEMENT_BITS
from .record_layouts import Packet, RecordField, RecordLayout

__all__ = ["OPTIONAL_PACKETS", "Choices", "UnpredictableFilter"]

OPTIONAL_PACKETS: Mapping[Packet, str] = MappingProxyType(
    {
        Packet.DATA_SOURCE: "data_source_bytes",
        Packet.PREVIOUS_TARGET: "pbt",
        Packet.ALTERNATE_ISSUE: "altclk",
        Packet.IMP_COUNTER: "imp_counter",
        Packet.IMP_ADDRESS: "imp_address",
    }
)
"""Packets that a choice adds. A layout has a record field for such a packet if and only if the choice is set."""


class UnpredictableFilter(Enum):
    """Effect of a filter whose setting is CONSTRAINED UNPREDICTABLE (D17.5, PMSFCR_EL1).

    Such settings are an enabled filter that selects nothing (FE or FnE without an event, FL with MINLAT = 0, FT without
    a type and without FEAT_SPE_EFT), and FE together with FnE if both select the same event.
    """

    NO_EFFECT = "the filter has no effect"
    DISCARD = "every record is discarded"


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Choices that an SPU is built from. `SPUConfig` checks them.

    Parameters
    ----------
    name : str
        Name of the configuration, and of the Verilog module (`spurtle_<name>`) and its files.
    layout : RecordLayout
        Order and offsets of the packets of a record.
    version : PMSVer
        FEAT_SPE version.
    ops_per_cycle : int
        Lanes of the sampling point: operations that can pass in a cycle, 1 to 8.
    slots : int
        Sampled operations that can be in flight at once, 1 to 8 (D17.3.7). With more slots fewer samples are lost to
        collisions at short intervals (I_RCCQG).
    ernd : bool
        FEAT_SPE_ERnd: the random number is counted after the interval, in PMSICR_EL1.ECOUNT (D17.3.4.3).
    eft, fne, fds : bool
        FEAT_SPE_EFT, FEAT_SPE_FnE, FEAT_SPE_FDS: filtering by more types and by masks of types, by inverted event, by
        data source (D17.5).
    mops, gcs, mte, nv2, sve, sme : bool
        The PE has FEAT_MOPS, FEAT_GCS, FEAT_MTE2, FEAT_NV2, FEAT_SVE, FEAT_SME: memory copy and set (D17.6.4.3), the
        Guarded control stack (D17.6.4.5), Allocation Tags (D17.6.4.1), System registers in memory (D17.6.4.2), scalable
        vectors, the ZA array and Streaming SVE mode (D17.6.6).
    el2, el3 : bool
        The PE has EL2, EL3 (D17.6.9). A PE without EL3 has one Security state, and its EL2 or EL1 owns the Profiling
        Buffer.
    sel2, ecv, ecv_poff : bool
        The PE has FEAT_SEL2, FEAT_ECV, FEAT_ECV_POFF: EL2 in Secure state; offset physical time; the offset of physical
        time (D17.6.9).
    fgt, fgt2 : bool
        The PE has FEAT_FGT, FEAT_FGT2: EL2 can trap accesses to individual System registers.
    the, poe, pie : bool
        The PE has FEAT_THE; FEAT_S1POE or FEAT_S2POE; FEAT_S1PIE or FEAT_S2PIE: PMBSR_EL1.MSS2 has more fields.
    rme : bool
        The PE has FEAT_RME: Realm state and Realm addresses exist (NSE, D18.2.1).
    spe_sme : bool
        FEAT_SPE_SME: records describe operations on the ZA array and on more than one vector (D17.6.6).
    pbt : bool
        FEAT_SPE_PBT: the record of every branch holds the target of the previous taken branch (D17.6.3.1).
    pbt_of_all : bool
        The records of all other operations hold it too. Needs `pbt`.
    crr, fpf : bool
        FEAT_SPE_CRR, FEAT_SPE_FPF: records distinguish calls and returns from other branches; records of other
        operations distinguish floating point and Advanced SIMD (D18.2.7).
    altclk : AltClk
        Clock of the alternate clock issue latency, or NONE (D17.6.1).
    imp_counter, imp_address : int
        INDEX of an IMPLEMENTATION DEFINED Counter and Address packet: 6, 7, or 16 to 31; 0 for no such packet.
    unpredictable_filter : UnpredictableFilter
        Effect of a filter whose setting is CONSTRAINED UNPREDICTABLE.
    arch_inst : bool
        PMSIDR_EL1.ArchInst: the core samples architecture instructions (True) or micro-ops (False).
    counter_bits : int
        Width of the latency counters, 12 or 16.
    events : frozenset of int
        Bits of the Events packet that this SPU can record. Events that are not optional must be among them.
    events_bytes : int
        Size of the payload of the Events packet, 1, 2, 4 or 8 bytes.
    data_source_bytes : int
        Size of the payload of the Data Source packet, 1 or 2 bytes; 0 for no such packet.
    bus_bytes : int
        Width of the write port, 4, 8, 16, 32 or 64 bytes. With a packed layout, at least its alignment.
    outstanding : int
        Records at the write port that memory has not answered yet, 1 to 8, together at most a page long. With more,
        records follow each other without a gap at a longer latency of memory.
    not_taken_target : bool
        The record of a not-taken branch holds PC + 4 as target, as on known silicon; otherwise it holds no target
        (D17.6.3).
    """

    name: str
    layout: RecordLayout
    version: PMSVer = PMSVer.SPE
    ops_per_cycle: int = 1
    slots: int = 1
    ernd: bool = False
    eft: bool = False
    fne: bool = False
    fds: bool = False
    mops: bool = False
    gcs: bool = False
    mte: bool = False
    nv2: bool = False
    sve: bool = False
    sme: bool = False
    el2: bool = False
    el3: bool = False
    sel2: bool = False
    ecv: bool = False
    ecv_poff: bool = False
    fgt: bool = False
    fgt2: bool = False
    the: bool = False
    poe: bool = False
    pie: bool = False
    rme: bool = False
    spe_sme: bool = False
    pbt: bool = False
    pbt_of_all: bool = False
    crr: bool = False
    fpf: bool = False
    altclk: AltClk = AltClk.NONE
    imp_counter: int = 0
    imp_address: int = 0
    unpredictable_filter: UnpredictableFilter = UnpredictableFilter.NO_EFFECT
    arch_inst: bool = True
    counter_bits: int = 12
    events: frozenset[int] = frozenset(range(8))
    events_bytes: int = 1
    data_source_bytes: int = 0
    bus_bytes: int = 8
    outstanding: int = 1
    not_taken_target: bool = True

    @cached_property
    def features(self) -> frozenset[str]:
        """Names of the fields that are True."""
        return frozenset(field.name for field in fields(self) if getattr(self, field.name) is True)

    @property
    def module(self) -> str:
        """Name of the Verilog module."""
        return f"spurtle_{self.name}"

    @property
    def count_delay(self) -> int:
        """Cycles from the sampling point to the sample interval counter, in which operations are counted."""
        return 0 if self.ops_per_cycle == 1 else 1 if self.ops_per_cycle <= 4 else 2

    @property
    def answer_latency(self) -> int:
        """Cycles from an operation at the sampling point to the report of whether it is sampled."""
        return 1 if self.ops_per_cycle == 1 else self.count_delay + 2

    @property
    def selections_per_cycle(self) -> int:
        """Operations of one cycle that can be selected.

        With FEAT_SPE_ERnd there can be two: the random number of one interval can reach zero in the cycle in which the
        next interval ends. The selection after that is at least 256 operations later.
        """
        return 2 if self.ernd and self.ops_per_cycle > 1 else 1

    @property
    def two_accesses(self) -> bool:
        """Whether there are operations that load from one address and store to another. One of the two is sampled."""
        return self.mops or self.gcs

    @property
    def scalable(self) -> bool:
        """Whether there are operations on scalable vectors: with FEAT_SVE, or with FEAT_SME in Streaming SVE mode."""
        return self.sve or self.sme

    @property
    def access_bits(self) -> int:
        """Random bits that choose the sampled access of a selected operation.

        One bit chooses one of two accesses. ELEMENT_BITS choose an element of a non-contiguous SVE access (D17.6.6
        R_MYPFF).
        """
        return self.two_accesses + ELEMENT_BITS * self.scalable

    @property
    def several_owners(self) -> bool:
        """Whether the owner of the Profiling Buffer can change."""
        return self.el2 or self.el3

    @property
    def discard_mode(self) -> bool:
        """Whether PMBLIMITR_EL1.FM can be 0b10, Discard mode (D17.5.5)."""
        return self.version >= PMSVer.SPE_V1P2

    @property
    def external_aborts(self) -> bool:
        """Whether PMBSR_EL1 reports External aborts on writes to the Profiling Buffer.

        From FEAT_SPEv1p3 on, which requires Armv8.8, the PE ignores them (PMBIDR_EL1.EA).
        """
        return self.version < PMSVer.SPE_V1P3

    @property
    def fault_flags(self) -> tuple[str, ...]:
        """Names of the implemented fields of PMBSR_EL1.MSS2."""
        return (
            *(["DirtyBit"] if self.pie else []),
            *(["Overlay"] if self.poe else []),
            *(["AssuredOnly", "TopLevel"] if self.the else []),
        )

    @property
    def filters(self) -> tuple[str, ...]:
        """Names of the fields of PMSFCR_EL1 that enable the filters."""
        return ("FE", "FT", "FL", *(["FnE"] if self.fne else []), *(["FDS"] if self.fds else []))

    @property
    def filter_types(self) -> tuple[str, ...]:
        """Names of the fields of PMSFCR_EL1 that select operation types, in the order of their bits."""
        return ("B", "LD", "ST", "FP", "SIMD") if self.eft else ("B", "LD", "ST")

    @property
    def feed_events(self) -> tuple[str, ...]:
        """Suffixes of the PMU events SAMPLE_FEED_*, in lower case."""
        types = ("br", "ld", "st", "fp", "simd") if self.eft else ("br", "ld", "st")
        return (*types, "op", "event", "lat", *(["ds"] if self.fds else []))

    @property
    def latencies(self) -> tuple[str, ...]:
        """Names of the latencies that are counted for an operation in flight."""
        return ("total", "issue", "translation", *(["alternate_issue"] if self.altclk else []))

    @property
    def max_record_bytes(self) -> int:
        """Maximum size of a record in bytes. If the layout is not packed, all records have this size."""
        return self.layout.max_size

    @cached_property
    def packet_bytes(self) -> Mapping[Packet, int]:
        """Size of each packet in bytes, header included.

        An Address or Counter packet with an INDEX of 8 or more has an extended header of two bytes (D18.2.1, D18.2.3).
        """
        return MappingProxyType(
            {
                Packet.PC: 9,
                Packet.TARGET: 9,
                Packet.VA: 9,
                Packet.PA: 9,
                Packet.PREVIOUS_TARGET: 9,
                Packet.IMP_ADDRESS: 9 + (self.imp_address >= 8),
                Packet.CONTEXT_EL1: 5,
                Packet.CONTEXT_EL2: 5,
                Packet.OPERATION: 2,
                Packet.EVENTS: 1 + self.events_bytes,
                Packet.TOTAL: 3,
                Packet.ISSUE: 3,
                Packet.TRANSLATION: 3,
                Packet.ALTERNATE_ISSUE: 3,
                Packet.IMP_COUNTER: 3 + (self.imp_counter >= 8),
                Packet.DATA_SOURCE: 1 + self.data_source_bytes,
                Packet.TIMESTAMP: 9,
                Packet.END: 1,
            }
        )

    @cached_property
    def record_fields(self) -> tuple[tuple[RecordField, int, Mapping[Packet, int]], ...]:
        """Fields of the layout, each with its size in bytes and the byte offset of each of its packets within it."""
        sizes = self.packet_bytes
        return tuple((field, field.size(sizes), dict(field.offsets(sizes))) for field in self.layout.fields)

    def __getstate__(self) -> dict[str, object]:
        """Return the choices alone. Values that are derived from them are not pickled or copied."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
