"""The System registers that an SPU can have.

Ref: DDI0487 M.a, D24.7.
"""

from .register import REGISTER_BITS, Field, FineGrainedTrap, Register, Trap
from .values import EC, FM, PCT, AltClk

__all__ = [
    "IMP_PMSRNDR_EL1",
    "PMBIDR_EL1",
    "PMBLIMITR_EL1",
    "PMBPTR_EL1",
    "PMBSR_EL1",
    "PMSCR_EL1",
    "PMSCR_EL2",
    "PMSCR_EL12",
    "PMSDSFR_EL1",
    "PMSEVFR_EL1",
    "PMSFCR_EL1",
    "PMSICR_EL1",
    "PMSIDR_EL1",
    "PMSIRR_EL1",
    "PMSLATFR_EL1",
    "PMSNEVFR_EL1",
    "REGISTERS",
]


PMSCR_EL1 = Register(
    "PMSCR_EL1",
    0,
    9,
    0,
    "Controls what is sampled at EL1 and EL0, and what records can hold.",
    {
        "E0SPE": Field(0, 1, "Enables sampling at EL0 while HCR_EL2.TGE is 0."),
        "E1SPE": Field(1, 1, "Enables sampling at EL1."),
        "CX": Field(3, 1, "Records hold CONTEXTIDR_EL1."),
        "PA": Field(
            4, 1, "While EL1 owns the Profiling Buffer: records hold physical addresses, if PMSCR_EL2.PA is also 1."
        ),
        "TS": Field(5, 1, "While EL1 owns the Profiling Buffer: records hold a timestamp."),
        "PCT": Field(6, 2, "Time in the timestamp. 0b10 is treated as 0b00. Always 0b01 without EL2.", PCT),
    },
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSCR_EL1", 26),
)


PMSCR_EL2 = Register(
    "PMSCR_EL2",
    4,
    9,
    0,
    "Controls what is sampled at EL2 and EL0, and what records can hold, including those of EL1 and EL0.",
    {
        "E0HSPE": Field(0, 1, "Enables sampling at EL0 while HCR_EL2.TGE is 1."),
        "E2SPE": Field(1, 1, "Enables sampling at EL2."),
        "CX": Field(3, 1, "Records hold CONTEXTIDR_EL2."),
        "PA": Field(
            4, 1, "Records hold physical addresses. While EL1 owns the Profiling Buffer, PMSCR_EL1.PA must also be 1."
        ),
        "TS": Field(5, 1, "While EL2 owns the Profiling Buffer: records hold a timestamp."),
        "PCT": Field(
            6,
            2,
            "Time in the timestamp, or the upper limit for PMSCR_EL1.PCT. 0b10 is treated as 0b00.",
            PCT,
        ),
    },
)


PMSCR_EL12 = Register(
    "PMSCR_EL12",
    5,
    9,
    0,
    "Another name of PMSCR_EL1, for EL2 while HCR_EL2.E2H is 1: the name PMSCR_EL1 then accesses PMSCR_EL2.",
    PMSCR_EL1.fields,
)


PMSNEVFR_EL1 = Register(
    "PMSNEVFR_EL1",
    0,
    9,
    1,
    "Filter by inverted event: events that a recorded operation does not have.",
    {"E": Field(0, REGISTER_BITS, "Bit n: while PMSFCR_EL1.FnE is 1, operations with event n are not recorded.")},
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("nPMSNEVFR_EL1", 62),
    enable="EnPMSN",
)


PMSICR_EL1 = Register(
    "PMSICR_EL1",
    0,
    9,
    2,
    "Sample interval counter. Software saves and restores it. It holds its value while profiling is disabled.",
    {
        "COUNT": Field(
            0, 32, "Operations until one is selected. At zero, the next operation reloads it from PMSIRR_EL1."
        ),
        "ECOUNT": Field(56, 8, "Operations by which a selection is still delayed, counted down from a random number."),
    },
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSICR_EL1", 29),
)


PMSIRR_EL1 = Register(
    "PMSIRR_EL1",
    0,
    9,
    3,
    "Sample interval: operations between two samples.",
    {
        "RND": Field(0, 1, "Each sample is delayed by a random number of operations below 256."),
        "INTERVAL": Field(8, 24, "Bits [31:8] of the value that PMSICR_EL1.COUNT is reloaded with. 0 is treated as 1."),
    },
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSIRR_EL1", 31),
)


PMSFCR_EL1 = Register(
    "PMSFCR_EL1",
    0,
    9,
    4,
    "Enables the filters that a sample must pass to be recorded, and selects types for the filter by type.",
    {
        "FE": Field(0, 1, "Enables the filter by event, PMSEVFR_EL1."),
        "FT": Field(1, 1, "Enables the filter by type: the fields from B on in this register."),
        "FL": Field(2, 1, "Enables the filter by latency, PMSLATFR_EL1."),
        "FnE": Field(3, 1, "Enables the filter by inverted event, PMSNEVFR_EL1."),
        "FDS": Field(4, 1, "Enables the filter by data source, PMSDSFR_EL1."),
        "B": Field(16, 1, "Branches pass."),
        "LD": Field(17, 1, "Loads pass, including atomics that return a value."),
        "ST": Field(18, 1, "Stores pass, including atomics."),
        "FP": Field(19, 1, "Floating-point operations pass."),
        "SIMD": Field(20, 1, "Advanced SIMD, SVE and SME operations pass."),
        "Bm": Field(48, 1, "Only branches pass if B is 1. No branch passes if B is 0."),
        "LDm": Field(49, 1, "Only operations of LD pass if LD is 1. None of them passes if LD is 0."),
        "STm": Field(50, 1, "Only operations of ST pass if ST is 1. None of them passes if ST is 0."),
        "FPm": Field(51, 1, "Only operations of FP pass if FP is 1. None of them passes if FP is 0."),
        "SIMDm": Field(52, 1, "Only operations of SIMD pass if SIMD is 1. None of them passes if SIMD is 0."),
    },
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSFCR_EL1", 28),
)


PMSEVFR_EL1 = Register(
    "PMSEVFR_EL1",
    0,
    9,
    5,
    "Filter by event: events that a recorded operation has.",
    {"E": Field(0, REGISTER_BITS, "Bit n: while PMSFCR_EL1.FE is 1, operations without event n are not recorded.")},
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSEVFR_EL1", 27),
)


PMSLATFR_EL1 = Register(
    "PMSLATFR_EL1",
    0,
    9,
    6,
    "Filter by latency: smallest total latency of a recorded operation.",
    {
        "MINLAT": Field(
            0, 16, "While PMSFCR_EL1.FL is 1, operations whose counted total latency is smaller are not recorded."
        )
    },
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSLATFR_EL1", 32),
)


PMSIDR_EL1 = Register(
    "PMSIDR_EL1",
    0,
    9,
    7,
    "Identifies what this SPU can sample, filter and record.",
    {
        "FE": Field(0, 1, "Filtering by event. Always 1."),
        "FT": Field(1, 1, "Filtering by type. Always 1."),
        "FL": Field(2, 1, "Filtering by latency. Always 1."),
        "ArchInst": Field(3, 1, "Architecture instructions are sampled, not micro-ops."),
        "LDS": Field(4, 1, "Records of loads hold a data source."),
        "ERnd": Field(5, 1, "FEAT_SPE_ERnd: random numbers are counted after the interval, in PMSICR_EL1.ECOUNT."),
        "FnE": Field(6, 1, "FEAT_SPE_FnE: filtering by inverted event."),
        "FDS": Field(7, 1, "FEAT_SPE_FDS: filtering by data source."),
        "Interval": Field(8, 4, "Recommended minimum interval. 0: 256 operations."),
        "MaxSize": Field(12, 4, "The maximum size of a record is 2 to this power bytes."),
        "CountSize": Field(16, 4, "Width of latencies. 2: 12 bits. 3: 16 bits. Both saturate."),
        "Format": Field(20, 4, "Format of the records. Always 0."),
        "PBT": Field(24, 1, "FEAT_SPE_PBT: records hold the target of the previous taken branch."),
        "CRR": Field(25, 1, "FEAT_SPE_CRR: records distinguish calls and returns from other branches."),
        "EFT": Field(26, 1, "FEAT_SPE_EFT: filtering by more types, and by masks of types."),
        "FPF": Field(
            27, 1, "FEAT_SPE_FPF: records distinguish floating-point and Advanced SIMD operations from others."
        ),
        "ALTCLK": Field(28, 4, "Clock of the alternate clock issue latency.", AltClk),
        "SME": Field(32, 1, "FEAT_SPE_SME: records describe SME operations."),
    },
    read_only=True,
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSIDR_EL1", 30),
)


PMBLIMITR_EL1 = Register(
    "PMBLIMITR_EL1",
    0,
    10,
    0,
    "Enables the Profiling Buffer, and sets its limit.",
    {
        "E": Field(0, 1, "Enables the Profiling Buffer."),
        "FM": Field(1, 2, "Fill mode: what is done with records. Other values are treated as 0b00.", FM),
        "PMFZ": Field(5, 1, "The event counters of the PMU are frozen while E and PMBSR_EL1.S are 1."),
        "nVM": Field(7, 1, "PMBPTR_EL1 is not a virtual address."),
        "LIMIT": Field(12, 52, "Bits [63:12] of the first address after the Profiling Buffer."),
    },
    trap=Trap.E2PB,
    fine_grained=FineGrainedTrap("PMBLIMITR_EL1", 23),
)


PMBPTR_EL1 = Register(
    "PMBPTR_EL1",
    0,
    10,
    1,
    "Address of the next record in the Profiling Buffer.",
    {
        "PTR": Field(
            0,
            REGISTER_BITS,
            "The buffer is full if a record of the maximum size does not fit between this address and the limit, if "
            "the address is not aligned, or if its top byte differs from that of the limit.",
        )
    },
    trap=Trap.E2PB,
    fine_grained=FineGrainedTrap("PMBPTR_EL1", 24),
)


PMBSR_EL1 = Register(
    "PMBSR_EL1",
    0,
    10,
    3,
    "Reports why profiling has stopped, and what was lost. Software reads back what it writes.",
    {
        "MSS": Field(0, 16, "Bits [5:0]: buffer status code if EC is 0, fault status code for a Data Abort."),
        "COLL": Field(
            16, 1, "An operation was selected but not sampled, because no slot was free. Software clears it."
        ),
        "S": Field(17, 1, "Profiling is stopped, and the interrupt is asserted."),
        "EA": Field(18, 1, "An External abort was reported. Software clears it."),
        "DL": Field(
            19, 1, "Part of a record may be lost: PMBPTR_EL1 may not follow a complete record. Software clears it."
        ),
        "EC": Field(26, 6, "Class of the event that stopped profiling.", EC),
        "MSS2": Field(32, 24, "Further syndrome of a Data Abort, in the fields that are implemented."),
        "DirtyBit": Field(37, 1, "The Permission fault is due to dirty state."),
        "Overlay": Field(38, 1, "The Permission fault is due to an overlay."),
        "AssuredOnly": Field(39, 1, "The Permission fault is due to AssuredOnly, at stage 2."),
        "TopLevel": Field(40, 1, "The Permission fault is due to TopLevel, at stage 2."),
    },
    trap=Trap.E2PB,
    fine_grained=FineGrainedTrap("PMBSR_EL1", 25),
)


PMSDSFR_EL1 = Register(
    "PMSDSFR_EL1",
    0,
    10,
    4,
    "Filter by data source: data sources that a recorded load can have.",
    {
        "S": Field(
            0,
            REGISTER_BITS,
            "Bit n: while PMSFCR_EL1.FDS is 1, loads pass whose data source is n in its low six bits. Operations "
            "without a data source pass.",
        )
    },
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("nPMSDSFR_EL1", 19, second=True),
    enable="EnPMS3",
)


PMBIDR_EL1 = Register(
    "PMBIDR_EL1",
    0,
    10,
    7,
    "Describes the Profiling Buffer to software at this Exception level.",
    {
        "Align": Field(0, 4, "PMBPTR_EL1 must be a multiple of 2 to this power bytes."),
        "P": Field(4, 1, "A higher Exception level, or another Security state, owns the Profiling Buffer."),
        "F": Field(5, 1, "Writes to the Profiling Buffer can update Access flags and dirty state."),
        "AddrMode": Field(6, 2, "Kinds of address that PMBPTR_EL1 can hold. 0: virtual addresses."),
        "EA": Field(8, 4, "External aborts on writes. 0: PMBSR_EL1 reports them. 1: they are ignored."),
        "MaxBuffSize": Field(32, 16, "Maximum size of the Profiling Buffer. 0: no limit."),
    },
    read_only=True,
    fine_grained=FineGrainedTrap("PMBIDR_EL1", 63),
    owned=False,
)


IMP_PMSRNDR_EL1 = Register(
    "IMP_PMSRNDR_EL1",
    0,
    10,
    2,
    "IMPLEMENTATION DEFINED: states of the pseudorandom number generators. Software reads and seeds them.",
    {
        "STATE": Field(0, 32, "State of the generator of the sample interval counters (D17.3.2). 0 is treated as 1."),
        "ACCESS": Field(
            32,
            32,
            "State of the generator that chooses one of several accesses (D17.6.4.3, D17.6.4.5, D17.6.6). 0 is treated "
            "as 1.",
        ),
    },
    crn=15,
    trap=Trap.TPMS,
)


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
"""Every System register that an SPU can have, in the order of their encodings. `SPUConfig.registers` lists those of a
configuration."""
