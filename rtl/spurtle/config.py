"""The configuration of an SPU: features, sizes and IMPLEMENTATION DEFINED choices, each made here and nowhere else."""

# Ref: DDI0487 M.a, D17.3 to D17.7 for the choices, D24.7 (PMSIDR_EL1, PMBIDR_EL1) for what software discovers.

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from itertools import combinations, product
from types import MappingProxyType

from . import arch
from .arch import AltClk, Event, PMSVer, Register
from .layout import (
    ARM_MODEL,
    HISILICON_MOBILE,
    KUNPENG_920,
    MINIMAL,
    NEOVERSE_N1,
    V1P4,
    Packet,
    Place,
    RecordLayout,
    check_type,
)

__all__ = [
    "CONFIGS",
    "ELEMENT_BITS",
    "LFSR_ACCESS_RESET",
    "LFSR_DELAYS",
    "LFSR_RESET",
    "NO_SHELL",
    "SHELLS",
    "SPUConfig",
    "UnpredictableFilter",
    "check_config",
]

LFSR_DELAYS = (11, 20, 26, 32)
"""The pseudorandom bit sequence of every SPU (D17.3.2): a bit is the exclusive or of those so many places before it.
The characteristic polynomial is primitive, and eight new bits depend on none of each other."""

LFSR_RESET = 0x6A09_E667
"""The generator's state after reset: the last 32 bits, the newest in bit 0. Any but zero would do."""

LFSR_ACCESS_RESET = 0xBB67_AE85
"""The same of the second generator, which chooses what is sampled of an operation that accesses more than one place."""


NO_SHELL = "none"
"""In place of the name of a shell: the SPU's own ports."""

SHELLS = ("axi4", "axi4-apb")
"""What can stand around an SPU: see `bus.Shell`."""

ELEMENT_BITS = 8
"""Of the random number that chooses an element of a non-contiguous SVE access. A vector has up to 256 bytes."""


class UnpredictableFilter(Enum):
    """What becomes of records when the setting of a filter is CONSTRAINED UNPREDICTABLE (D17.5, PMSFCR_EL1).

    That is an enabled filter that selects nothing (FE or FnE without an event, FL with MINLAT = 0, FT without a type
    and without FEAT_SPE_EFT), and FE and FnE together where they select an event both.
    """

    NO_EFFECT = "the filter has no effect"
    DISCARD = "every record is discarded"


@dataclass(frozen=True, kw_only=True)
class SPUConfig:
    """What one SPU is built from. PMSIDR_EL1, PMBIDR_EL1 and PMSVer are derived, so that software can only discover
    what is there.

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
        Sampled operations that can be in flight at once: 1 to 8 (D17.3.7).
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

    Raises
    ------
    TypeError
        If a choice is of another type.
    ValueError
        If a choice is out of range, or two exclude each other; the message names both.
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

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type in (str, bool, int, RecordLayout):
                check_type(field.name, getattr(self, field.name), field.type)
        check_type("events", self.events, frozenset)
        for event in self.events:
            check_type("an event", event, int)
        self._check_range("ops_per_cycle", self.ops_per_cycle, 1, 8)
        self._check_range("slots", self.slots, 1, 8)
        self._check_choice("counter_bits", self.counter_bits, (12, 16))
        self._check_choice("events_bytes", self.events_bytes, (1, 2, 4, 8))
        self._check_choice("data_source_bytes", self.data_source_bytes, (0, 1, 2))
        self._check_choice("bus_bytes", self.bus_bytes, (4, 8, 16, 32, 64))
        self._check_choice("version", self.version, tuple(PMSVer))
        self._check_choice("altclk", self.altclk, tuple(AltClk))
        self._check_choice("imp_counter", self.imp_counter, _IMPLEMENTATION_DEFINED)
        self._check_choice("imp_address", self.imp_address, _IMPLEMENTATION_DEFINED)
        if self.unpredictable_filter not in [*UnpredictableFilter]:
            raise ValueError(
                "unpredictable_filter must be UnpredictableFilter.NO_EFFECT or UnpredictableFilter.DISCARD, "
                f"not {self.unpredictable_filter!r}"
            )
        if not (self.name.isidentifier() and self.name.isascii()):
            raise ValueError(f"name must be an ASCII identifier, because it names a Verilog module, not {self.name!r}")
        self._check_features()
        self._check_events()
        self._check_layout()

    def _check_events(self) -> None:
        if missing := self._required_events() - self.events:
            raise ValueError(
                f"events must include {sorted(map(int, missing))} (not optional), not just {sorted(self.events)}"
            )
        if outside := [event for event in sorted(self.events) if not 0 <= event < 8 * self.events_bytes]:
            raise ValueError(f"events must be below 8 * events_bytes = {8 * self.events_bytes}, not {outside[-1]}")
        if undefined := self.events - self._defined_events():
            vectors = (f"{name} {getattr(self, name)}" for name in ("sve", "sme", "spe_sme"))
            raise ValueError(
                f"events must be defined in version {self.version:d} with {', '.join(vectors)}, not {sorted(undefined)}"
            )

    def _required_events(self) -> frozenset[int]:
        """Bits of the Events packet that D18.2.6 does not make optional."""
        vectors = {Event.PARTIAL_PREDICATE, Event.EMPTY_PREDICATE} if self.scalable else set()
        streaming = {Event.STREAMING_SVE, Event.SMCU} if self.spe_sme else set()
        return frozenset({*range(8), *vectors, *streaming})

    def _defined_events(self) -> frozenset[int]:
        """Bits of the Events packet that can be one (D18.2.6)."""
        events = {*range(11), *range(12, 16), *range(48, 64)}
        if self.version >= PMSVer.SPE_V1P1:
            events.add(Event.MISALIGNED)
        if self.scalable:
            events |= {Event.PARTIAL_PREDICATE, Event.EMPTY_PREDICATE}
        if self.spe_sme:
            events |= {Event.STREAMING_SVE, Event.SMCU}
        events |= {*range(19, 24)} if self.version >= PMSVer.SPE_V1P4 else {*range(24, 32)}
        return frozenset(events)

    def _check_features(self) -> None:
        for feature, needed in _NEEDED_VERSION.items():
            if getattr(self, feature) and self.version < needed:
                raise ValueError(f"version must be {needed:d} or later with {feature}, not {self.version:d}")
        for feature, needed in _NEEDED_FEATURES.items():
            for other in needed:
                if getattr(self, feature) and not getattr(self, other):
                    raise ValueError(f"{other} must be True with {feature}, not False")
        if self.version >= PMSVer.SPE_V1P2 and not self.fne:
            raise ValueError(f"fne must be True from version {PMSVer.SPE_V1P2:d} on, not False in {self.version:d}")
        if self.fds and self.el2 and not self.fgt2:
            raise ValueError("fgt2 must be True with fds and el2, not False")
        if self.fds and not self.data_source_bytes:
            raise ValueError("data_source_bytes must be 1 or 2 with fds, not 0")
        if self.version >= PMSVer.SPE_V1P4 and self.data_source_bytes and not self.fds:
            raise ValueError(
                f"fds must be True with a data source from version {PMSVer.SPE_V1P4:d} on, not False with "
                f"data_source_bytes {self.data_source_bytes}"
            )
        if self.altclk is AltClk.SMCU and not self.spe_sme:
            raise ValueError("altclk must not be AltClk.SMCU without spe_sme")

    def _check_layout(self) -> None:
        layout = self.layout
        placed = layout.packets
        if twice := {packet for packet in placed if placed.count(packet) > 1}:
            raise ValueError(f"layout must have one place for each packet, not more for {_names(twice)}")
        wanted = {
            Packet.DATA_SOURCE: ("data_source_bytes", self.data_source_bytes),
            Packet.PREVIOUS_TARGET: ("pbt", self.pbt),
            Packet.ALTERNATE_ISSUE: ("altclk", self.altclk),
            Packet.IMP_COUNTER: ("imp_counter", self.imp_counter),
            Packet.IMP_ADDRESS: ("imp_address", self.imp_address),
        }
        for packet, (name, value) in wanted.items():
            if bool(value) != (packet in placed):
                has = "a place" if packet in placed else "no place"
                raise ValueError(
                    f"{name} must be {'set' if packet in placed else '0'} where the layout has {has} for "
                    f"{packet.value}, not {value!r}"
                )
        if self.el2 and Packet.CONTEXT_EL2 not in placed:
            raise ValueError("layout must have a place for CONTEXT_EL2 with el2, in which it may be collected")
        if missing := {*Packet} - {*wanted} - _OPTIONAL - {*placed}:
            raise ValueError(f"layout must have a place for {_names(missing)}")
        for place in layout.places:
            for one, other in combinations(place.runs, 2):
                for pair in product(one, other):
                    if not self._exclusive(*pair):
                        raise ValueError(
                            f"layout must have places of their own for {_names(pair)}, which one operation can have "
                            f"both in {self.name}"
                        )
        self._check_choice("layout.max_size", layout.max_size, (64, 128, 256, 512, 1024, 2048))
        self._check_choice("layout.align", layout.align, tuple(1 << bit for bit in range(12)))
        ends = layout.offsets(self.packet_bytes)
        if outside := [packet for packet in ends if ends[packet] + self.packet_bytes[packet] > layout.max_size]:
            raise ValueError(
                f"layout.max_size must be at least {layout.longest(self.packet_bytes)} in {self.name}, "
                f"not {layout.max_size}: there is no room for {_names(outside)}"
            )
        if not layout.packed and layout.align != layout.max_size:
            raise ValueError(
                f"layout.align must be layout.max_size, {layout.max_size}, where no place is elastic, "
                f"not {layout.align}"
            )
        if layout.packed and layout.align > 8:
            raise ValueError(f"layout.align must be 1, 2, 4 or 8 where a place is elastic, not {layout.align}")
        if layout.packed and self.bus_bytes < layout.align:
            raise ValueError(
                f"bus_bytes must be at least layout.align, {layout.align}, with a packed layout, not {self.bus_bytes}"
            )

    def _exclusive(self, one: Packet, other: Packet) -> bool:
        """No operation has both packets: a branch accesses nothing but the Guarded control stack (D17.6.3)."""
        pair = {one, other}
        return not self.gcs and Packet.TARGET in pair and bool(pair & _OF_ACCESSES)

    @staticmethod
    def _check_choice(name: str, value: object, allowed: tuple[int, ...]) -> None:
        # To Python, True and 1.0 are 1.
        if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
            raise ValueError(f"{name} must be {' or '.join(str(int(choice)) for choice in allowed)}, not {value!r}")

    @staticmethod
    def _check_range(name: str, value: int, least: int, most: int) -> None:
        if not least <= value <= most:
            raise ValueError(f"{name} must be from {least} to {most}, not {value!r}")

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
    def registers(self) -> tuple[Register, ...]:
        """The System registers that there are; others are UNDEFINED."""
        absent = {
            arch.PMSNEVFR_EL1.name: not self.fne,
            arch.PMSDSFR_EL1.name: not self.fds,
            arch.PMSCR_EL2.name: not self.several_owners,
        }
        return tuple(register for register in arch.REGISTERS if not absent.get(register.name))

    @property
    def accessors(self) -> tuple[Register, ...]:
        """The System registers, and the other name that one of them has with FEAT_VHE, which comes with EL2."""
        return (*self.registers, *([arch.PMSCR_EL12] if self.el2 else []))

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
    def places(self) -> tuple[tuple[Place, int, Mapping[Packet, int]], ...]:
        """Each place of the layout, its bytes, and the first byte in it of each packet that can stand there."""
        sizes = self.packet_bytes
        return tuple((place, place.size(sizes), dict(place.offsets(sizes))) for place in self.layout.places)

    @property
    def filter_events(self) -> int:
        """Events that PMSEVFR_EL1 and PMSNEVFR_EL1 can select, as a mask. Never E[0]; E[6] only with FEAT_SPE_FnE
        (D17.5.2).
        """
        never = {Event.GENERATED_EXCEPTION} if self.fne else {Event.GENERATED_EXCEPTION, Event.NOT_TAKEN}
        return sum(1 << event for event in self.events - never)

    @property
    def pmsidr(self) -> int:
        """PMSIDR_EL1."""
        return arch.PMSIDR_EL1.pack(
            FE=1,
            FT=1,
            FL=1,
            ArchInst=self.arch_inst,
            LDS=self.data_source_bytes != 0,
            ERnd=self.ernd,
            FnE=self.fne,
            FDS=self.fds,
            PBT=self.pbt,
            CRR=self.crr,
            EFT=self.eft,
            FPF=self.fpf,
            ALTCLK=self.altclk,
            SME=self.spe_sme,
            MaxSize=self.layout.max_size.bit_length() - 1,
            CountSize={12: 0b0010, 16: 0b0011}[self.counter_bits],
        )

    @property
    def pmbidr(self) -> int:
        """PMBIDR_EL1 but for P, which depends on who reads. From FEAT_SPEv1p3 on, which comes with Armv8.8, F has to be
        one and EA has to say what becomes of an external abort: it is ignored.
        """
        described = not self.external_aborts
        return arch.PMBIDR_EL1.pack(Align=self.layout.align.bit_length() - 1, F=described, EA=described)

    def writable(self, register: Register) -> int:
        """Bits of `register` that hold what software writes; every other bit is RES0 or read-only. None of a register
        that is not there.
        """
        if register.read_only or register not in self.registers:
            return 0
        types = [*self.filter_types, *([f"{name}m" for name in self.filter_types] if self.eft else [])]
        pct = arch.PMSCR_EL1.fields["PCT"].mask
        if self.el2:
            pct = 0 if self.ecv else arch.PMSCR_EL1.pack(PCT=0b10)
        masks = {
            # PCT[1] comes with FEAT_ECV. Without EL2 PMSCR_EL1.PCT is `fixed`, and EL3 finds PMSCR_EL2 RES0.
            arch.PMSCR_EL1.name: self._mask(arch.PMSCR_EL1, *arch.PMSCR_EL1.fields) & ~pct,
            arch.PMSCR_EL2.name: self._mask(arch.PMSCR_EL2, *arch.PMSCR_EL2.fields) & ~pct if self.el2 else 0,
            arch.PMSICR_EL1.name: self._mask(arch.PMSICR_EL1, "COUNT", *(["ECOUNT"] if self.ernd else [])),
            arch.PMSFCR_EL1.name: self._mask(arch.PMSFCR_EL1, *self.filters, *types),
            arch.PMSEVFR_EL1.name: self.filter_events,
            arch.PMSNEVFR_EL1.name: self.filter_events,
            arch.PMSLATFR_EL1.name: (1 << self.counter_bits) - 1,
            # nVM comes with a feature that is not configured.
            arch.PMBLIMITR_EL1.name: self._mask(
                arch.PMBLIMITR_EL1, "E", "LIMIT", *(["FM", "PMFZ"] if self.discard_mode else [])
            ),
            arch.PMBSR_EL1.name: self._mask(arch.PMBSR_EL1, "MSS", "COLL", "S", "EA", "DL", "EC", *self.fault_flags),
            arch.IMP_PMSRNDR_EL1.name: self._mask(
                arch.IMP_PMSRNDR_EL1, "STATE", *(["ACCESS"] if self.access_bits else [])
            ),
        }
        return masks.get(register.name, self._mask(register, *register.fields))

    def fixed(self, register: Register) -> int:
        """Return the bits of a writable `register` that read as one, whatever software writes."""
        if register is arch.PMSCR_EL1 and not self.el2:
            return arch.PMSCR_EL1.pack(PCT=arch.PCT.PHYSICAL)
        return 0

    @staticmethod
    def _mask(register: Register, *fields: str) -> int:
        return sum(register.fields[field].mask for field in fields)


def check_config(config: object) -> None:
    """Check the configuration that a component is built from.

    Raises
    ------
    TypeError
        If it is something else, its name for instance.
    """
    check_type("config", config, SPUConfig)


_NEEDED_VERSION = {
    "rme": PMSVer.SPE_V1P2,
    "fds": PMSVer.SPE_V1P3,
    "eft": PMSVer.SPE_V1P4,
    "fpf": PMSVer.SPE_V1P4,
    "mops": PMSVer.SPE_V1P3,
    "gcs": PMSVer.SPE_V1P4,
    "sve": PMSVer.SPE_V1P1,
    "sme": PMSVer.SPE_V1P1,
    "spe_sme": PMSVer.SPE_V1P4,
}
"""The least versions with these features: those that define their packets (D18.2.7, D18.2.6), or that the architecture
which first permits the feature requires. FEAT_RME comes with Armv9.2, FEAT_SPE_FDS with Armv8.8, FEAT_SPE_EFT and
FEAT_SPE_FPF with Armv9.4."""

_NEEDED_FEATURES = {
    "eft": ("fpf",),
    "fpf": ("eft",),
    "gcs": ("crr",),
    "spe_sme": ("sme",),
    "pbt_of_all": ("pbt",),
    "nv2": ("el2",),
    "sel2": ("el2", "el3"),
    "ecv_poff": ("el2", "ecv"),
    "fgt": ("el2",),
    "fgt2": ("fgt",),
    "rme": ("el2", "el3", "sel2"),
}

_IMPLEMENTATION_DEFINED = (0, 6, 7, *range(16, 32))
"""INDEX of an Address or Counter packet, 0 for none (D18.2.1, D18.2.3)."""

_OPTIONAL = frozenset({Packet.CONTEXT_EL2, Packet.ISSUE})
"""Packets that a layout may leave out: what is never collected without EL2, and a counter that is fixed in the
implementation (D17.6)."""

_OF_ACCESSES = frozenset({Packet.VA, Packet.PA, Packet.TRANSLATION, Packet.DATA_SOURCE})


def _names(packets: Iterable[Packet]) -> str:
    return ", ".join(sorted(packet.value for packet in packets))


CONFIGS: Mapping[str, SPUConfig] = MappingProxyType(
    {
        config.name: config
        for config in (
            SPUConfig(name="minimal", layout=MINIMAL),
            SPUConfig(
                name="neoverse_n1",
                layout=NEOVERSE_N1,
                el2=True,
                el3=True,
                arch_inst=False,
                # 12 is Neoverse N1's own: a late prefetch.
                events=frozenset(range(11)) | {12},
                events_bytes=2,
                data_source_bytes=1,
            ),
            SPUConfig(
                name="kunpeng_920",
                layout=KUNPENG_920,
                el2=True,
                el3=True,
                arch_inst=False,
                events=frozenset(range(11)),
                events_bytes=2,
            ),
            SPUConfig(
                name="hisilicon_mobile",
                layout=HISILICON_MOBILE,
                el2=True,
                el3=True,
                arch_inst=False,
                events=frozenset(range(11)),
                events_bytes=4,
            ),
            SPUConfig(
                name="arm_model",
                layout=ARM_MODEL,
                version=PMSVer.SPE_V1P2,
                ops_per_cycle=2,
                slots=2,
                fne=True,
                sve=True,
                el2=True,
                el3=True,
                sel2=True,
                ecv=True,
                ecv_poff=True,
                fgt=True,
                pbt=True,
                crr=True,
                counter_bits=16,
                events=frozenset({*range(12), 17, 18}),
                events_bytes=4,
                data_source_bytes=1,
            ),
            SPUConfig(
                name="v1p4",
                layout=V1P4,
                version=PMSVer.SPE_V1P4,
                ops_per_cycle=8,
                slots=4,
                ernd=True,
                eft=True,
                fne=True,
                fds=True,
                mops=True,
                gcs=True,
                mte=True,
                nv2=True,
                sve=True,
                sme=True,
                el2=True,
                el3=True,
                sel2=True,
                ecv=True,
                ecv_poff=True,
                fgt=True,
                fgt2=True,
                the=True,
                poe=True,
                pie=True,
                rme=True,
                spe_sme=True,
                pbt=True,
                crr=True,
                fpf=True,
                altclk=AltClk.SMCU,
                arch_inst=False,
                counter_bits=16,
                events=frozenset({*range(13), *range(17, 26)}),
                events_bytes=4,
                data_source_bytes=2,
                bus_bytes=16,
            ),
        )
    }
)
"""The named configurations: what is supported and tested end to end. Any other is built at the user's own risk."""
