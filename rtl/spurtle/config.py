"""The configuration of an SPU: features, sizes and IMPLEMENTATION DEFINED choices, each made here and nowhere else."""

# Ref: DDI0487 M.a, D17.3 to D17.7 for the choices, D24.7 (PMSIDR_EL1, PMBIDR_EL1) for what software discovers.

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from . import arch
from .arch import Event, PMSVer, Register
from .layout import MINIMAL, NEOVERSE_N1, V1P4, Packet, RecordLayout

__all__ = ["CONFIGS", "LFSR_ACCESS_RESET", "LFSR_DELAYS", "LFSR_RESET", "SPUConfig", "UnpredictableFilter"]

LFSR_DELAYS = (11, 20, 26, 32)
"""The pseudorandom bit sequence of every SPU (D17.3.2): a bit is the exclusive or of those so many places before it.
The characteristic polynomial is primitive, and eight new bits depend on none of each other."""

LFSR_RESET = 0x6A09_E667
"""The generator's state after reset: the last 32 bits, the newest in bit 0. Any but zero would do."""

LFSR_ACCESS_RESET = 0xBB67_AE85
"""The same of the second generator, which chooses one of two accesses."""


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
    mops, gcs : bool
        The PE has FEAT_MOPS, FEAT_GCS: memory copy and set, the Guarded control stack (D17.6.4.3, D17.6.4.5).
    unpredictable_filter : UnpredictableFilter
        What a filter does whose setting is CONSTRAINED UNPREDICTABLE.
    arch_inst : bool
        PMSIDR_EL1.ArchInst: the core samples architecture instructions (True) or micro-ops.
    counter_bits : int
        Width of the latency counters: 12 or 16.
    events : frozenset of int
        Bits of the Events packet that this SPU can record.
    events_bytes : int
        Payload of the Events packet: 1, 2, 4 or 8 bytes.
    data_source_bytes : int
        Payload of the Data Source packet: 1 or 2 bytes, 0 for no such packet.
    bus_bytes : int
        Width of the buffer write port: 8 or 16 bytes.
    not_taken_target : bool
        A not-taken branch records PC + 4 as its target, as known silicon does; otherwise it records none (D17.6.3).

    Raises
    ------
    ValueError
        If two choices exclude each other; the message names both.
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
    unpredictable_filter: UnpredictableFilter = UnpredictableFilter.NO_EFFECT
    arch_inst: bool = True
    counter_bits: int = 12
    events: frozenset[int] = frozenset(range(8))
    events_bytes: int = 1
    data_source_bytes: int = 0
    bus_bytes: int = 8
    not_taken_target: bool = True

    def __post_init__(self) -> None:
        self._check_range("ops_per_cycle", self.ops_per_cycle, 1, 8)
        self._check_range("slots", self.slots, 1, 8)
        self._check_choice("counter_bits", self.counter_bits, (12, 16))
        self._check_choice("events_bytes", self.events_bytes, (1, 2, 4, 8))
        self._check_choice("data_source_bytes", self.data_source_bytes, (0, 1, 2))
        self._check_choice("bus_bytes", self.bus_bytes, (8, 16))
        self._check_choice("version", self.version, tuple(PMSVer))
        if self.unpredictable_filter not in [*UnpredictableFilter]:
            raise ValueError(
                "unpredictable_filter must be UnpredictableFilter.NO_EFFECT or UnpredictableFilter.DISCARD, "
                f"not {self.unpredictable_filter!r}"
            )
        if not self.name.isidentifier():
            raise ValueError(f"name must be an identifier, because it names a Verilog module, not {self.name!r}")
        if not {Event.RETIRED, Event.NOT_TAKEN} <= self.events:
            raise ValueError(f"events must include 1 (retired) and 6 (not taken), not {sorted(self.events)}")
        if max(self.events) >= 8 * self.events_bytes:
            raise ValueError(f"events must be below 8 * events_bytes = {8 * self.events_bytes}, not {max(self.events)}")
        if undefined := self.events - _defined_events(self.version):
            raise ValueError(
                f"events must be defined in version {self.version:d} without SVE and SME, not {sorted(undefined)}"
            )
        for feature, needed in _NEEDED_VERSION.items():
            if getattr(self, feature) and self.version < needed:
                raise ValueError(f"version must be {needed:d} or later with {feature}, not {self.version:d}")
        if self.version >= PMSVer.SPE_V1P2 and not self.fne:
            raise ValueError(f"fne must be True from version {PMSVer.SPE_V1P2:d} on, not False in {self.version:d}")
        if self.fds and not self.data_source_bytes:
            raise ValueError("data_source_bytes must be 1 or 2 with fds, not 0")
        if self.version >= PMSVer.SPE_V1P4 and self.data_source_bytes and not self.fds:
            raise ValueError(
                f"fds must be True with a data source from version {PMSVer.SPE_V1P4:d} on, not False with "
                f"data_source_bytes {self.data_source_bytes}"
            )
        if (self.data_source_bytes != 0) != any(Packet.DATA_SOURCE in place for place in self.layout.places):
            raise ValueError(
                "data_source_bytes must be 0 exactly when the layout has no place for DATA_SOURCE, "
                f"not {self.data_source_bytes}"
            )
        shared = [place for place in self.layout.places if Packet.TARGET in place and len(place) > 1]
        if self.gcs and shared:
            raise ValueError(
                "layout must have a place of its own for TARGET with gcs, as a branch can make an access too, not one "
                f"for {', '.join(packet.value for packet in shared[0])}"
            )
        if self.layout.used(self.packet_bytes) > self.layout.size:
            raise ValueError(
                f"layout must have room for its packets: they need {self.layout.used(self.packet_bytes)} bytes, "
                f"not {self.layout.size}"
            )
        if self.layout.size not in (64, 128, 256, 512, 1024, 2048):
            raise ValueError(
                f"layout.size must be a power of two from 64 to 2048 (PMSIDR_EL1.MaxSize), not {self.layout.size}"
            )

    @staticmethod
    def _check_choice(name: str, value: int, allowed: tuple[int, ...]) -> None:
        if value not in allowed:
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
    def discard_mode(self) -> bool:
        """PMBLIMITR_EL1.FM can be 0b10 (D17.5.5)."""
        return self.version >= PMSVer.SPE_V1P2

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
        absent = {arch.PMSNEVFR_EL1.name: not self.fne, arch.PMSDSFR_EL1.name: not self.fds}
        return tuple(register for register in arch.REGISTERS if not absent.get(register.name))

    @property
    def record_bytes(self) -> int:
        """Bytes of a record; PMBPTR_EL1 moves in steps of this size."""
        return self.layout.size

    @property
    def packet_bytes(self) -> Mapping[Packet, int]:
        """Bytes of each packet, header included."""
        return MappingProxyType(
            {
                Packet.PC: 9,
                Packet.TARGET: 9,
                Packet.VA: 9,
                Packet.PA: 9,
                Packet.CONTEXT_EL1: 5,
                Packet.CONTEXT_EL2: 5,
                Packet.OPERATION: 2,
                Packet.EVENTS: 1 + self.events_bytes,
                Packet.TOTAL: 3,
                Packet.ISSUE: 3,
                Packet.TRANSLATION: 3,
                Packet.DATA_SOURCE: 1 + self.data_source_bytes,
                Packet.TIMESTAMP: 9,
                Packet.END: 1,
            }
        )

    @property
    def packet_offsets(self) -> Mapping[Packet, int]:
        """First byte in a record of each packet that the layout has a place for."""
        return MappingProxyType({packet: offset for offset, packet in self.layout.offsets(self.packet_bytes)})

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
            EFT=self.eft,
            MaxSize=self.record_bytes.bit_length() - 1,
            CountSize={12: 0b0010, 16: 0b0011}[self.counter_bits],
        )

    @property
    def pmbidr(self) -> int:
        """PMBIDR_EL1 but for P, which depends on who reads. From FEAT_SPEv1p3 on, which comes with Armv8.8, F has to be
        one and EA has to say what becomes of an external abort: it is ignored.
        """
        described = int(self.version >= PMSVer.SPE_V1P3)
        return arch.PMBIDR_EL1.pack(Align=self.record_bytes.bit_length() - 1, F=described, EA=described)

    def writable(self, register: Register) -> int:
        """Bits of `register` that hold what software writes; every other bit is RES0 or read-only. None of a register
        that is not there.
        """
        if register.read_only or register not in self.registers:
            return 0
        types = [*self.filter_types, *([f"{name}m" for name in self.filter_types] if self.eft else [])]
        masks = {
            # PCT[1] comes with FEAT_ECV.
            arch.PMSCR_EL1.name: self._mask(arch.PMSCR_EL1, "E0SPE", "E1SPE", "CX", "PA", "TS")
            | 1 << arch.PMSCR_EL1.fields["PCT"].lsb,
            arch.PMSICR_EL1.name: self._mask(arch.PMSICR_EL1, "COUNT", *(["ECOUNT"] if self.ernd else [])),
            arch.PMSFCR_EL1.name: self._mask(arch.PMSFCR_EL1, *self.filters, *types),
            arch.PMSEVFR_EL1.name: self.filter_events,
            arch.PMSNEVFR_EL1.name: self.filter_events,
            arch.PMSLATFR_EL1.name: (1 << self.counter_bits) - 1,
            # PMFZ and nVM come with features that are not configured.
            arch.PMBLIMITR_EL1.name: self._mask(
                arch.PMBLIMITR_EL1, "E", "LIMIT", *(["FM"] if self.discard_mode else [])
            ),
            # MSS2 says more of faults that the write port does not report.
            arch.PMBSR_EL1.name: self._mask(arch.PMBSR_EL1, "MSS", "COLL", "S", "EA", "DL", "EC"),
            arch.IMP_PMSRNDR_EL1.name: self._mask(
                arch.IMP_PMSRNDR_EL1, "STATE", *(["ACCESS"] if self.two_accesses else [])
            ),
        }
        return masks.get(register.name, self._mask(register, *register.fields))

    @staticmethod
    def _mask(register: Register, *fields: str) -> int:
        return sum(register.fields[field].mask for field in fields)


_NEEDED_VERSION = {"mops": PMSVer.SPE_V1P3, "gcs": PMSVer.SPE_V1P4}
"""The versions that define the packets of these features (D18.2.7)."""


def _defined_events(version: PMSVer) -> frozenset[int]:
    """Bits of the Events packet that can be one in a PE without SVE and SME (D18.2.6)."""
    events = {*range(11), *range(12, 16), *range(48, 64)}
    if version >= PMSVer.SPE_V1P1:
        events.add(Event.MISALIGNED)
    events |= {*range(19, 24)} if version >= PMSVer.SPE_V1P4 else {*range(24, 32)}
    return frozenset(events)


CONFIGS: Mapping[str, SPUConfig] = MappingProxyType(
    {
        config.name: config
        for config in (
            SPUConfig(name="minimal", layout=MINIMAL),
            SPUConfig(
                name="neoverse_n1",
                layout=NEOVERSE_N1,
                arch_inst=False,
                # 12 is Neoverse N1's own: a late prefetch.
                events=frozenset(range(11)) | {12},
                events_bytes=2,
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
                arch_inst=False,
                counter_bits=16,
                events=frozenset({*range(13), *range(19, 24)}),
                events_bytes=4,
                data_source_bytes=2,
                bus_bytes=16,
            ),
        )
    }
)
"""The named configurations: what is supported and tested end to end. Any other is built at the user's own risk."""
