"""The System registers that an SPU can have."""

# Ref: DDI0487 M.a, D24.7.

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
    "What EL1 lets be sampled, and lets records hold.",
    {
        "E0SPE": Field(0, 1, "Operations at EL0 are sampled, where HCR_EL2.TGE is 0."),
        "E1SPE": Field(1, 1, "Operations at EL1 are sampled."),
        "CX": Field(3, 1, "Records hold CONTEXTIDR_EL1."),
        "PA": Field(
            4, 1, "Records hold physical addresses where EL1 owns the Profiling Buffer, if PMSCR_EL2.PA is 1 too."
        ),
        "TS": Field(5, 1, "Records hold a timestamp, where EL1 owns the Profiling Buffer."),
        "PCT": Field(6, 2, "Which time the timestamp is of. 0b10 is taken as 0b00. Always 0b01 without EL2.", PCT),
    },
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSCR_EL1", 26),
)


PMSCR_EL2 = Register(
    "PMSCR_EL2",
    4,
    9,
    0,
    "What EL2 lets be sampled, and lets records hold, its own and those of EL1 and EL0.",
    {
        "E0HSPE": Field(0, 1, "Operations at EL0 are sampled, where HCR_EL2.TGE is 1."),
        "E2SPE": Field(1, 1, "Operations at EL2 are sampled."),
        "CX": Field(3, 1, "Records hold CONTEXTIDR_EL2."),
        "PA": Field(
            4, 1, "Records hold physical addresses. Where EL1 owns the Profiling Buffer, PMSCR_EL1.PA decides too."
        ),
        "TS": Field(5, 1, "Records hold a timestamp, where EL2 owns the Profiling Buffer."),
        "PCT": Field(
            6,
            2,
            "Which time the timestamp is of, or the most that PMSCR_EL1.PCT can get. 0b10 is taken as 0b00.",
            PCT,
        ),
    },
)


PMSCR_EL12 = Register(
    "PMSCR_EL12",
    5,
    9,
    0,
    "PMSCR_EL1, for a hypervisor whose accesses to PMSCR_EL1 go to PMSCR_EL2, because HCR_EL2.E2H is one.",
    PMSCR_EL1.fields,
)


PMSNEVFR_EL1 = Register(
    "PMSNEVFR_EL1",
    0,
    9,
    1,
    "Events that keep a sample from becoming a record.",
    {"E": Field(0, REGISTER_BITS, "Bit n: with PMSFCR_EL1.FnE, there is no record of an operation that has event n.")},
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("nPMSNEVFR_EL1", 62),
    enable="EnPMSN",
)


PMSICR_EL1 = Register(
    "PMSICR_EL1",
    0,
    9,
    2,
    "The sample interval counter. It is software's to save and restore, and stands still while profiling is disabled.",
    {
        "COUNT": Field(0, 32, "Operations until one is selected. At zero the next one reloads it from PMSIRR_EL1."),
        "ECOUNT": Field(56, 8, "Operations that a selection is still put off, by a random number."),
    },
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSICR_EL1", 29),
)


PMSIRR_EL1 = Register(
    "PMSIRR_EL1",
    0,
    9,
    3,
    "How many operations lie between two samples.",
    {
        "RND": Field(0, 1, "Each sample is put off by a random number of operations below 256."),
        "INTERVAL": Field(8, 24, "Bits [31:8] of what PMSICR_EL1.COUNT is reloaded with. 0 is taken as 1."),
    },
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSIRR_EL1", 31),
)


PMSFCR_EL1 = Register(
    "PMSFCR_EL1",
    0,
    9,
    4,
    "Which filters a sample has to pass to become a record, and which types of operation pass the one by type.",
    {
        "FE": Field(0, 1, "Filter by events: PMSEVFR_EL1."),
        "FT": Field(1, 1, "Filter by type: the other fields of this register."),
        "FL": Field(2, 1, "Filter by latency: PMSLATFR_EL1."),
        "FnE": Field(3, 1, "Filter by inverted events: PMSNEVFR_EL1."),
        "FDS": Field(4, 1, "Filter by data source: PMSDSFR_EL1."),
        "B": Field(16, 1, "Branches pass."),
        "LD": Field(17, 1, "Loads pass, and atomics that return a value."),
        "ST": Field(18, 1, "Stores pass, and atomics."),
        "FP": Field(19, 1, "Floating-point operations pass."),
        "SIMD": Field(20, 1, "Advanced SIMD, SVE and SME operations pass."),
        "Bm": Field(48, 1, "Only branches pass if B is 1, and none if it is 0."),
        "LDm": Field(49, 1, "Only what LD stands for passes if LD is 1, and nothing of it if it is 0."),
        "STm": Field(50, 1, "Only what ST stands for passes if ST is 1, and nothing of it if it is 0."),
        "FPm": Field(51, 1, "Only what FP stands for passes if FP is 1, and nothing of it if it is 0."),
        "SIMDm": Field(52, 1, "Only what SIMD stands for passes if SIMD is 1, and nothing of it if it is 0."),
    },
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSFCR_EL1", 28),
)


PMSEVFR_EL1 = Register(
    "PMSEVFR_EL1",
    0,
    9,
    5,
    "Events that a sample has to have to become a record.",
    {"E": Field(0, REGISTER_BITS, "Bit n: with PMSFCR_EL1.FE, there is no record of an operation that lacks event n.")},
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSEVFR_EL1", 27),
)


PMSLATFR_EL1 = Register(
    "PMSLATFR_EL1",
    0,
    9,
    6,
    "How long an operation has to take for its sample to become a record.",
    {"MINLAT": Field(0, 16, "With PMSFCR_EL1.FL, there is no record of a smaller total latency, as it is recorded.")},
    trap=Trap.TPMS,
    fine_grained=FineGrainedTrap("PMSLATFR_EL1", 32),
)


PMSIDR_EL1 = Register(
    "PMSIDR_EL1",
    0,
    9,
    7,
    "What this SPU can sample, filter and record.",
    {
        "FE": Field(0, 1, "It filters by events. Always 1."),
        "FT": Field(1, 1, "It filters by type. Always 1."),
        "FL": Field(2, 1, "It filters by latency. Always 1."),
        "ArchInst": Field(3, 1, "It samples architecture instructions, and not micro-ops."),
        "LDS": Field(4, 1, "Records of loads hold a data source."),
        "ERnd": Field(5, 1, "FEAT_SPE_ERnd: random numbers are counted after the interval, in PMSICR_EL1.ECOUNT."),
        "FnE": Field(6, 1, "FEAT_SPE_FnE: it filters by inverted events."),
        "FDS": Field(7, 1, "FEAT_SPE_FDS: it filters by data source."),
        "Interval": Field(8, 4, "The least interval that is advised: 0 for 256 operations."),
        "MaxSize": Field(12, 4, "No record has more than 2 to this power bytes."),
        "CountSize": Field(16, 4, "Bits of a latency: 2 for 12 bits, 3 for 16 bits. Both saturate."),
        "Format": Field(20, 4, "Format of the records. Always 0."),
        "PBT": Field(24, 1, "FEAT_SPE_PBT: records hold the target of the taken branch before."),
        "CRR": Field(25, 1, "FEAT_SPE_CRR: records tell calls and returns from other branches."),
        "EFT": Field(26, 1, "FEAT_SPE_EFT: it filters by more types, and by masks of types."),
        "FPF": Field(27, 1, "FEAT_SPE_FPF: records tell floating-point and Advanced SIMD operations from others."),
        "ALTCLK": Field(28, 4, "The clock of the alternate clock issue latency.", AltClk),
        "SME": Field(32, 1, "FEAT_SPE_SME: records tell of SME operations."),
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
    "Whether there is a Profiling Buffer, and where it ends.",
    {
        "E": Field(0, 1, "The Profiling Buffer is enabled."),
        "FM": Field(1, 2, "What is done with records. Other values are taken as 0b00.", FM),
        "PMFZ": Field(5, 1, "While E and PMBSR_EL1.S are 1, the event counters of the PMU are frozen."),
        "nVM": Field(7, 1, "PMBPTR_EL1 is no virtual address."),
        "LIMIT": Field(12, 52, "Bits [63:12] of the first address behind the Profiling Buffer."),
    },
    trap=Trap.E2PB,
    fine_grained=FineGrainedTrap("PMBLIMITR_EL1", 23),
)


PMBPTR_EL1 = Register(
    "PMBPTR_EL1",
    0,
    10,
    1,
    "Where in the Profiling Buffer the next record goes.",
    {
        "PTR": Field(
            0,
            REGISTER_BITS,
            "An address. The buffer is full if no record of the largest size fits between it and the limit, if it is "
            "not aligned, and if its top byte is not the limit's.",
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
    "Why profiling has stopped, and what was lost. Whatever software writes reads back.",
    {
        "MSS": Field(0, 16, "Bits [5:0]: the buffer status code if EC is 0, the fault status code of a Data Abort."),
        "COLL": Field(16, 1, "An operation was selected and not sampled, as no slot was free. Software clears it."),
        "S": Field(17, 1, "Profiling is stopped, and the interrupt is high."),
        "EA": Field(18, 1, "There was an External abort. Software clears it."),
        "DL": Field(19, 1, "Part of a record may have been lost: PMBPTR_EL1 may not be its end. Software clears it."),
        "EC": Field(26, 6, "What stopped profiling.", EC),
        "MSS2": Field(32, 24, "More of a Data Abort, as far as there are fields for it."),
        "DirtyBit": Field(37, 1, "The permission fault is one of dirty state."),
        "Overlay": Field(38, 1, "The permission fault is one of an overlay."),
        "AssuredOnly": Field(39, 1, "The permission fault is one of AssuredOnly, at stage 2."),
        "TopLevel": Field(40, 1, "The permission fault is one of TopLevel, at stage 2."),
    },
    trap=Trap.E2PB,
    fine_grained=FineGrainedTrap("PMBSR_EL1", 25),
)


PMSDSFR_EL1 = Register(
    "PMSDSFR_EL1",
    0,
    10,
    4,
    "Data sources that a load may have for its sample to become a record.",
    {
        "S": Field(
            0,
            REGISTER_BITS,
            "Bit n: with PMSFCR_EL1.FDS, there are records of loads whose data source is n, in its low six bits. What "
            "has no data source passes.",
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
    "What the Profiling Buffer is to software at this Exception level.",
    {
        "Align": Field(0, 4, "PMBPTR_EL1 has to be a multiple of 2 to this power."),
        "P": Field(4, 1, "A higher Exception level, or another Security state, owns the Profiling Buffer."),
        "F": Field(5, 1, "Writes to the Profiling Buffer can update Access flags and dirty state."),
        "AddrMode": Field(6, 2, "Kinds of address that PMBPTR_EL1 can be. 0: virtual addresses."),
        "EA": Field(8, 4, "What becomes of External aborts on writes. 0: PMBSR_EL1 reports them. 1: they are ignored."),
        "MaxBuffSize": Field(32, 16, "The largest Profiling Buffer that there can be. 0: there is no limit."),
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
    "IMPLEMENTATION DEFINED: the states of the pseudorandom number generators, to be read and seeded.",
    {
        "STATE": Field(0, 32, "Of that of the sample interval counters (D17.3.2). 0 is taken as 1."),
        "ACCESS": Field(
            32,
            32,
            "Of that which chooses one of several accesses (D17.6.4.3, D17.6.4.5, D17.6.6). 0 is taken as 1.",
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
"""Every System register that an SPU can have, in the order of their encodings. `SPUConfig.registers` has its own."""
