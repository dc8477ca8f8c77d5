"""Constants of the perf.data format, for its writer and its reader.

Ref: Linux tools/perf/Documentation/perf.data-file-format.txt, include/uapi/linux/perf_event.h.
"""

from dataclasses import dataclass
from enum import IntEnum, IntFlag, unique

__all__ = [
    "ARM_SPE",
    "HEADER_BYTES",
    "MAGIC",
    "Attribute",
    "AuxFlag",
    "Feature",
    "Misc",
    "RecordType",
    "SampleField",
    "Settings",
    "SymbolType",
]

MAGIC = b"PERFILE2"
"""First bytes of a little-endian file."""

HEADER_BYTES = 104

ARM_SPE = 4
"""Type of the AUX data of Arm SPE (`enum auxtrace_type`)."""


@unique
class RecordType(IntEnum):
    """Types of the records in the data section. The perf tool writes types from 64 on, the kernel the others."""

    MMAP = 1
    LOST = 2
    COMM = 3
    EXIT = 4
    FORK = 7
    MMAP2 = 10
    AUX = 11
    ITRACE_START = 12
    LOST_SAMPLES = 13
    KSYMBOL = 17
    ATTR = 64
    HEADER_BUILD_ID = 67
    AUXTRACE_INFO = 70
    AUXTRACE = 71
    TIME_CONV = 79
    HEADER_FEATURE = 80
    COMPRESSED = 81
    COMPRESSED2 = 83


class Misc(IntFlag):
    """Bits of the `misc` word of a record."""

    USER = 2
    MMAP_DATA = 1 << 13  # in MMAP2: the memory cannot be executed
    COMM_EXEC = 1 << 13  # in COMM: the name changed because the process executed another program
    MMAP_BUILD_ID = 1 << 14
    BUILD_ID_SIZE = 1 << 15


@unique
class SymbolType(IntEnum):
    """Types of the functions in KSYMBOL records."""

    BPF = 1
    OUT_OF_LINE = 2  # code that calls probes


class SampleField(IntFlag):
    """Bits of `sample_type`."""

    IP = 1 << 0
    TID = 1 << 1
    TIME = 1 << 2
    ADDR = 1 << 3
    CPU = 1 << 7
    PERIOD = 1 << 8
    WEIGHT = 1 << 14
    DATA_SRC = 1 << 15
    IDENTIFIER = 1 << 16
    PHYS_ADDR = 1 << 19


class Attribute(IntFlag):
    """Bits of the flag word of `perf_event_attr`."""

    EXCLUDE_KERNEL = 1 << 5
    EXCLUDE_HV = 1 << 6
    MMAP = 1 << 8
    COMM = 1 << 9
    TASK = 1 << 13
    MMAP_DATA = 1 << 17
    SAMPLE_ID_ALL = 1 << 18
    MMAP2 = 1 << 23
    COMM_EXEC = 1 << 24
    BUILD_ID = 1 << 34


class AuxFlag(IntFlag):
    """Flags of an AUX record."""

    TRUNCATED = 1
    OVERWRITE = 2
    PARTIAL = 4
    COLLISION = 8


@unique
class Feature(IntEnum):
    """Bits of the feature bitmap: sections that follow the data section."""

    BUILD_ID = 2
    HOSTNAME = 3
    OSRELEASE = 4
    VERSION = 5
    ARCH = 6
    NRCPUS = 7
    CPUID = 9
    CMDLINE = 11
    EVENT_DESC = 12
    NUMA_TOPOLOGY = 14
    AUXTRACE = 18
    SAMPLE_TIME = 21
    MEM_TOPOLOGY = 22


@unique
class ConfigBit(IntEnum):
    """Bits of `perf_event_attr.config` of the SPE event. The names in lower case are the terms of perf."""

    TS_ENABLE = 0
    PA_ENABLE = 1
    PCT_ENABLE = 2
    JITTER = 16
    BRANCH_FILTER = 32
    LOAD_FILTER = 33
    STORE_FILTER = 34
    DISCARD = 35
    BRANCH_FILTER_MASK = 36
    LOAD_FILTER_MASK = 37
    STORE_FILTER_MASK = 38
    SIMD_FILTER = 39
    SIMD_FILTER_MASK = 40
    FLOAT_FILTER = 41
    FLOAT_FILTER_MASK = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Members of `perf_event_attr` that configure the SPE event, as the Linux driver reads them.

    Parameters
    ----------
    period : int
        Sample interval in operations.
    config, config1, config2, config3, config4 : int
        Terms of the event. config: packets, jitter, Discard mode, types; config1: events; config2: latency; config3:
        inverted events; config4: data sources.
    """

    period: int = 1
    config: int = 0
    config1: int = 0
    config2: int = 0
    config3: int = 0
    config4: int = 0
