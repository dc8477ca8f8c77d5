"""perf.data files with samples and mappings of a Linux kernel, as `perf record -a` writes them on an Arm machine."""

import os
import struct
from collections.abc import Sequence
from pathlib import Path

from spurtle_sim.perf.events import Aux, Mmap, process_events
from spurtle_sim.perf.format import Misc, RecordType, SymbolType
from spurtle_sim.perf.process import Mapping, Process
from spurtle_sim.perf.sideband import KERNEL_PID, KernelFunction
from spurtle_sim.perf.writer import Recording, content
from tests.support.perf_records import PID, branch

__all__ = ["KALLSYMS", "LINKED", "MODULE", "MOVED", "kernel_recording"]

LINKED = 0xFFFF_8000_0801_0000
"""Address of the first function in KALLSYMS."""

MOVED = 0x12_3456_0000
"""Distance between KALLSYMS and the recorded kernel: another boot."""

MODULE = 0xFFFF_8000_0100_0000
"""Address of the only module. It is the same in both boots."""

KALLSYMS = f"""\
{LINKED - 0x10000:x} T _text
{LINKED:x} t $x
{LINKED:x} T _stext
{LINKED:x} t __pi_memcpy
{LINKED:x} T memcpy
{LINKED + 0x100:x} t do_idle
{LINKED + 0x200:x} D jiffies
{LINKED + 0x1000:x} T _etext
{MODULE:x} t ext4_readpage	[ext4]
{MODULE + 0x80:x} T _RNvCskwGfYPst2Cb_3foo16example_function	[ext4]
"""

_KERNEL = 1  # cpumode in the misc word


def kernel_recording(
    addresses: Sequence[int],
    *,
    build_id: bytes = b"",
    user: int = 0x40_0000,
    module: int = MODULE,
    module_build_id: bytes = b"",
    generated: Sequence[tuple[KernelFunction, bool]] = (),
) -> bytes:
    """Return a file with a branch at each address of the kernel of 64 bits, and at one address of a program.

    Before the samples, the kernel adds each function of `generated`, or removes it.
    """
    code = Mapping(user, 0x2000, 0, 5, "/nowhere/program")
    kernel = Mapping(LINKED - 0x10000 + MOVED, 0x20_0000, LINKED - 0x10000 + MOVED, 5, "[kernel.kallsyms]_text")
    ext4 = Mapping(module, 0x1000, 0, 5, "/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko")
    process = Process(Path(code.path), ["program"], PID, (code,))
    # Records have the lower 56 bits of an address, and EL1 in bit 61.
    plain = [address & (1 << 56) - 1 | 1 << 61 for address in addresses]
    data = b"".join(branch(pc, user, 7, 60) for pc in [*plain, user + 4])
    events = process_events(process, [Aux(time=100, pid=PID, tid=PID, data=data)], end=400)
    added = [
        Mmap(time=0, pid=KERNEL_PID, tid=0, mapping=kernel, build_id=build_id),
        Mmap(time=0, pid=KERNEL_PID, tid=0, mapping=ext4, build_id=module_build_id),
        *(
            Mmap(time=0, pid=KERNEL_PID, tid=0, mapping=Mapping(each.address, each.size, 0, 5, _placeholder(number)))
            for number, (each, _) in enumerate(generated)
        ),
    ]
    file = content(Recording(argv=["program"], events=[*added, *events], midr=0x410F_D0C1))
    # The writer marks all mappings as those of programs.
    body = struct.pack("<I", KERNEL_PID)
    for size in range(0x60, 0x100, 8):
        for misc in (Misc.USER, Misc.USER | Misc.MMAP_BUILD_ID):
            old = struct.pack("<I2H", RecordType.MMAP2, misc, size)
            file = file.replace(
                old + body, struct.pack("<I2H", RecordType.MMAP2, misc - Misc.USER + _KERNEL, size) + body
            )
    for number, (each, added) in enumerate(generated):
        file = _with_function(file, os.fsencode(_placeholder(number)), each, added=added)
    return file


def _placeholder(number: int) -> str:
    return f"a mapping that becomes the record of function {number}"


def _with_function(file: bytes, placeholder: bytes, function: KernelFunction, *, added: bool) -> bytes:
    """Return the file with a KSYMBOL record in place of the mapping of a placeholder. The sizes are equal."""
    path = file.index(placeholder)
    start = path - 72  # header and members of MMAP2
    size = struct.unpack_from("<H", file, start + 6)[0]
    type_ = SymbolType.BPF if function.bpf else SymbolType.OUT_OF_LINE
    body = struct.pack("<QI2H", function.address, function.size, type_, not added) + os.fsencode(function.name)
    head = struct.pack("<I2H", RecordType.KSYMBOL, _KERNEL, size)
    end = path + len(placeholder)
    return file[:start] + (head + body).ljust(end - start, b"\0") + file[end:]
