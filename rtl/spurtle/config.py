"""The configuration of an SPU: features, sizes and IMPLEMENTATION DEFINED choices, each made here and nowhere else."""

# Ref: DDI0487 M.a, D17.3 to D17.7 for the choices, D24.7 (PMSIDR_EL1, PMBIDR_EL1) for what software discovers.

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from . import arch
from .arch import Event, PMSVer, Register
from .layout import MINIMAL, NEOVERSE_N1, Packet, RecordLayout

__all__ = ["CONFIGS", "LFSR_DELAYS", "LFSR_RESET", "SPUConfig"]

LFSR_DELAYS = (11, 20, 26, 32)
"""The pseudorandom bit sequence of every SPU (D17.3.2): a bit is the exclusive or of those so many places before it.
The characteristic polynomial is primitive, and eight new bits depend on none of each other."""

LFSR_RESET = 0x6A09_E667
"""The generator's state after reset: the last 32 bits, the newest in bit 0. Any but zero would do."""


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
        self._check_choice("version", self.version, (PMSVer.SPE,))
        if not self.name.isidentifier():
            raise ValueError(f"name must be an identifier, because it names a Verilog module, not {self.name!r}")
        if not {Event.RETIRED, Event.NOT_TAKEN} <= self.events:
            raise ValueError(f"events must include 1 (retired) and 6 (not taken), not {sorted(self.events)}")
        if max(self.events) >= 8 * self.events_bytes:
            raise ValueError(f"events must be below 8 * events_bytes = {8 * self.events_bytes}, not {max(self.events)}")
        if (self.data_source_bytes != 0) != any(Packet.DATA_SOURCE in place for place in self.layout.places):
            raise ValueError(
                "data_source_bytes must be 0 exactly when the layout has no place for DATA_SOURCE, "
                f"not {self.data_source_bytes}"
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
        """Events that PMSEVFR_EL1 can select, as a mask. Never E[0]; E[6] only with FEAT_SPE_FnE (D17.5.2)."""
        return sum(1 << event for event in self.events - {Event.GENERATED_EXCEPTION, Event.NOT_TAKEN})

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
            MaxSize=self.record_bytes.bit_length() - 1,
            CountSize={12: 0b0010, 16: 0b0011}[self.counter_bits],
        )

    @property
    def pmbidr(self) -> int:
        """PMBIDR_EL1 but for P, which depends on who reads."""
        return arch.PMBIDR_EL1.pack(Align=self.record_bytes.bit_length() - 1)

    def writable(self, register: Register) -> int:
        """Bits of `register` that hold what software writes; every other bit is RES0 or read-only."""
        if register.read_only:
            return 0
        masks = {
            # PCT[1] comes with FEAT_ECV.
            arch.PMSCR_EL1.name: self._mask(arch.PMSCR_EL1, "E0SPE", "E1SPE", "CX", "PA", "TS")
            | 1 << arch.PMSCR_EL1.fields["PCT"].lsb,
            # FnE, FDS, the SIMD and FP types, the type masks, FM and PMFZ come with features that are
            # not configured.
            arch.PMSICR_EL1.name: self._mask(arch.PMSICR_EL1, "COUNT", *(["ECOUNT"] if self.ernd else [])),
            arch.PMSFCR_EL1.name: self._mask(arch.PMSFCR_EL1, "FE", "FT", "FL", "B", "LD", "ST"),
            arch.PMSEVFR_EL1.name: self.filter_events,
            arch.PMSLATFR_EL1.name: (1 << self.counter_bits) - 1,
            arch.PMBLIMITR_EL1.name: self._mask(arch.PMBLIMITR_EL1, "E", "LIMIT"),
            # MSS2 came with FEAT_SPEv1p4's syndromes.
            arch.PMBSR_EL1.name: self._mask(arch.PMBSR_EL1, "MSS", "COLL", "S", "EA", "DL", "EC"),
        }
        return masks.get(register.name, self._mask(register, *register.fields))

    @staticmethod
    def _mask(register: Register, *fields: str) -> int:
        return sum(register.fields[field].mask for field in fields)


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
                name="wide",
                layout=NEOVERSE_N1,
                ops_per_cycle=8,
                slots=4,
                ernd=True,
                arch_inst=False,
                counter_bits=16,
                events=frozenset(range(11)) | {12},
                events_bytes=2,
                data_source_bytes=1,
                bus_bytes=16,
            ),
        )
    }
)
"""The named configurations: what is supported and tested end to end. Any other is built at the user's own risk."""
