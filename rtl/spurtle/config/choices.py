"""The choices that an SPU is built from: features, sizes and IMPLEMENTATION DEFINED behavior."""

# Ref: DDI0487 M.a, D17.3 to D17.7.

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
"""Packets that a choice adds: a layout has a record field for one exactly if the choice is set."""


class UnpredictableFilter(Enum):
    """What becomes of records when the setting of a filter is CONSTRAINED UNPREDICTABLE (D17.5, PMSFCR_EL1).

    That is an enabled filter that selects nothing (FE or FnE without an event, FL with MINLAT = 0, FT without a type
    and without FEAT_SPE_EFT), and FE and FnE together where they select an event both.
    """

    NO_EFFECT = "the filter has no effect"
    DISCARD = "every record is discarded"


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The choices that an SPU is built from. `SPUConfig` checks them.

    Parameters
    ----------
    name : str
        Names the Verilog module (`spurtle_<name>`) and its files.
    layout : RecordLayout
        Where each packet of a record stands.
    version : PMSVer
        FEAT_SPE version.
    ops_per_cycle : int
        Lanes of the sampling point: 1 to 8 operations can pass in a cycle.
    slots : int
        Sampled operations that can be in flight at once: 1 to 8 (D17.3.7). The shorter the interval, the more
        operations collide (I_RCCQG).
    ernd : bool
        FEAT_SPE_ERnd: the random number is counted after the interval, in PMSICR_EL1.ECOUNT (D17.3.4.3).
    eft, fne, fds : bool
        FEAT_SPE_EFT, FEAT_SPE_FnE, FEAT_SPE_FDS: filtering by more types and by masks of them, by inverted events, by
        data source (D17.5).
    mops, gcs, mte, nv2, sve, sme : bool
        The PE has FEAT_MOPS, FEAT_GCS, FEAT_MTE2, FEAT_NV2, FEAT_SVE, FEAT_SME: memory copy and set (D17.6.4.3), the
        Guarded control stack (D17.6.4.5), Allocation Tags (D17.6.4.1), System registers in memory (D17.6.4.2), scalable
        vectors, the ZA array and streaming (D17.6.6).
    el2, el3 : bool
        The PE has EL2, EL3 (D17.6.9). Without EL3 it has one Security state, whose EL2 or EL1 owns the Profiling
        Buffer.
    sel2, ecv, ecv_poff : bool
        The PE has FEAT_SEL2, FEAT_ECV, FEAT_ECV_POFF: EL2 in Secure state; offset physical time, and an offset for it
        (D17.6.9).
    fgt, fgt2 : bool
        The PE has FEAT_FGT, FEAT_FGT2: EL2 traps accesses to single System registers.
    the, poe, pie : bool
        The PE has FEAT_THE; FEAT_S1POE or FEAT_S2POE; FEAT_S1PIE or FEAT_S2PIE: PMBSR_EL1.MSS2 tells more of a fault.
    rme : bool
        The PE has FEAT_RME: a state, and an address, can be Realm's (NSE, D18.2.1).
    spe_sme : bool
        FEAT_SPE_SME: operations on the ZA array, and on more than one vector, are recorded as such (D17.6.6).
    pbt : bool
        FEAT_SPE_PBT: where the taken branch before went, in the record of every branch (D17.6.3.1).
    pbt_of_all : bool
        And in that of every other operation.
    crr, fpf : bool
        FEAT_SPE_CRR, FEAT_SPE_FPF: whether a branch calls or returns; whether an operation that is none of the named
        ones is floating point, Advanced SIMD (D18.2.7).
    altclk : AltClk
        The clock of the alternate clock issue latency, if there is one (D17.6.1).
    imp_counter, imp_address : int
        INDEX of a Counter and of an Address packet of the core's own: 6, 7, or from 16 to 31; 0 for none.
    unpredictable_filter : UnpredictableFilter
        What a filter does whose setting is CONSTRAINED UNPREDICTABLE.
    arch_inst : bool
        PMSIDR_EL1.ArchInst: the core samples architecture instructions (True) or micro-ops.
    counter_bits : int
        Width of the latency counters: 12 or 16.
    events : frozenset of int
        Bits of the Events packet that this SPU can record: those that are not optional, and others.
    events_bytes : int
        Payload of the Events packet: 1, 2, 4 or 8 bytes.
    data_source_bytes : int
        Payload of the Data Source packet: 1 or 2 bytes, 0 for no such packet.
    bus_bytes : int
        Width of the buffer write port: 4, 8, 16, 32 or 64 bytes. With a packed layout not less than its alignment.
    not_taken_target : bool
        A not-taken branch records PC + 4 as its target, as known silicon does; otherwise it records none (D17.6.3).
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
    not_taken_target: bool = True

    @cached_property
    def features(self) -> frozenset[str]:
        """The features that are set, by the names of their fields."""
        return frozenset(field.name for field in fields(self) if getattr(self, field.name) is True)

    @property
    def module(self) -> str:
        """Name of the Verilog module."""
        return f"spurtle_{self.name}"

    @property
    def count_delay(self) -> int:
        """Cycles from the sampling point to the sample interval counter: they are what counts the lanes takes."""
        return 0 if self.ops_per_cycle == 1 else 1 if self.ops_per_cycle <= 4 else 2

    @property
    def answer_latency(self) -> int:
        """Cycles from an operation at the sampling point to the answer whether it is sampled."""
        return 1 if self.ops_per_cycle == 1 else self.count_delay + 2

    @property
    def selections_per_cycle(self) -> int:
        """Operations of one cycle that can be selected. With FEAT_SPE_ERnd two: the random number of one interval may
        run out as the next begins; the one after that is at least 256 operations off.
        """
        return 2 if self.ernd and self.ops_per_cycle > 1 else 1

    @property
    def two_accesses(self) -> bool:
        """There are operations that load from one address and store to another, of which one is sampled."""
        return self.mops or self.gcs

    @property
    def scalable(self) -> bool:
        """There are operations on scalable vectors: with FEAT_SVE, or with FEAT_SME while streaming."""
        return self.sve or self.sme

    @property
    def access_bits(self) -> int:
        """Random bits by which it is chosen what is sampled of a selected operation: one for one of two accesses, and
        those for an element of a non-contiguous SVE access (D17.6.6 R_MYPFF).
        """
        return self.two_accesses + ELEMENT_BITS * self.scalable

    @property
    def several_owners(self) -> bool:
        """The Profiling Buffer can have another owner than the one that it has."""
        return self.el2 or self.el3

    @property
    def discard_mode(self) -> bool:
        """PMBLIMITR_EL1.FM can be 0b10 (D17.5.5)."""
        return self.version >= PMSVer.SPE_V1P2

    @property
    def external_aborts(self) -> bool:
        """PMBSR_EL1 reports External aborts on writes to the Profiling Buffer. From FEAT_SPEv1p3 on, which comes with
        Armv8.8, the PE ignores them (PMBIDR_EL1.EA).
        """
        return self.version < PMSVer.SPE_V1P3

    @property
    def fault_flags(self) -> tuple[str, ...]:
        """What PMBSR_EL1.MSS2 tells of a fault, by the names of its bits."""
        return (
            *(["DirtyBit"] if self.pie else []),
            *(["Overlay"] if self.poe else []),
            *(["AssuredOnly", "TopLevel"] if self.the else []),
        )

    @property
    def filters(self) -> tuple[str, ...]:
        """Filters, by the names of the fields of PMSFCR_EL1 that enable them."""
        return ("FE", "FT", "FL", *(["FnE"] if self.fne else []), *(["FDS"] if self.fds else []))

    @property
    def filter_types(self) -> tuple[str, ...]:
        """Operation types that PMSFCR_EL1 can select, by the names of its fields, in the order of their bits."""
        return ("B", "LD", "ST", "FP", "SIMD") if self.eft else ("B", "LD", "ST")

    @property
    def feed_events(self) -> tuple[str, ...]:
        """What PMU event SAMPLE_FEED has variants for: SAMPLE_FEED_BR and so on."""
        types = ("br", "ld", "st", "fp", "simd") if self.eft else ("br", "ld", "st")
        return (*types, "op", "event", "lat", *(["ds"] if self.fds else []))

    @property
    def latencies(self) -> tuple[str, ...]:
        """What is counted of an operation in flight."""
        return ("total", "issue", "translation", *(["alternate_issue"] if self.altclk else []))

    @property
    def max_record_bytes(self) -> int:
        """Bytes that the longest record may have; each record has so many where the layout is not packed."""
        return self.layout.max_size

    @cached_property
    def packet_bytes(self) -> Mapping[Packet, int]:
        """Bytes of each packet, header included."""
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
        """Return the choices alone: what is derived from them is not pickled or copied."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
