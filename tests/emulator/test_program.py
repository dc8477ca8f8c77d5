"""Tests of recorded operations: against expected values, against a second emulation, and on a real program."""

import hashlib
import os
import re
import shutil
import signal
import struct
import threading
from dataclasses import replace
from itertools import islice
from pathlib import Path
from signal import SIGBUS, SIGILL, SIGINT, SIGSEGV, SIGTERM, SIGTRAP, Signals
from typing import Any

import capstone
import numpy as np
import pytest
from unicorn import UC_ARCH_ARM64, UC_HOOK_MEM_WRITE, UC_MODE_ARM
from unicorn.arm64_const import UC_ARM64_REG_SP
from unicorn.unicorn import Uc

from spurtle.support.errors import UserError
from spurtle_sim.emulator.a64 import classify, condition_holds
from spurtle_sim.emulator.loader import build_stack, read_image
from spurtle_sim.emulator.program import Program
from spurtle_sim.trace.dtypes import OPERATION
from spurtle_sim.trace.instruction import FACT, Instruction
from tests.support.elf import CODE, DATA, EXIT, write_elf
from tests.support.paths import WORKLOADS

SORT = WORKLOADS / "sort.elf"

TEXT_HEADER, DATA_HEADER = 64, 64 + 56
"""Offsets of the program headers of `write_elf`."""


def run(program: Program, limit: int = 65536) -> np.ndarray:
    return np.concatenate(list(program.run(limit)))


def facts(value: int) -> set[str]:
    return {name for name, bit in FACT.items() if int(value) & bit}


# Word, disassembly, address of the access or None.
ACCESSES = [
    (0xD2A00821, "mov x1, #0x410000", None),
    (0xA9400C22, "ldp x2, x3, [x1]", DATA),
    (0xAD410C22, "ldp q2, q3, [x1, #0x20]", DATA + 0x20),
    (0x4C402020, "ld1 {v0.16b, v1.16b, v2.16b, v3.16b}, [x1]", DATA),
    (0x4C408820, "ld2 {v0.4s, v1.4s}, [x1]", DATA),
    (0x0D402C20, "ld3 {v0.b, v1.b, v2.b}[3], [x1]", DATA),
    (0x3CCFC020, "ldur q0, [x1, #0xfc]", DATA + 0xFC),
    (0xC85F7C22, "ldxr x2, [x1]", DATA),
    (0xC8037C22, "stxr w3, x2, [x1]", DATA),
    (0xC8047C22, "stxr w4, x2, [x1]", None),  # fails: the monitor is in the Open Access state
    (0xC87F1422, "ldxp x2, x5, [x1]", DATA),
    (0xC8261422, "stxp w6, x2, x5, [x1]", DATA),
    (0xF8220024, "ldadd x2, x4, [x1]", DATA),
    (0xB822003F, "stadd w2, [x1]", DATA),
    (0xB8E28024, "swpal w2, w4, [x1]", DATA),
    (0xC8A27C24, "cas x2, x4, [x1]", DATA),
    (0x48227C24, "casp x2, x3, x4, x5, [x1]", DATA),
    (0x91012026, "add x6, x1, #0x48", None),
    (0xD50B7426, "dc zva, x6", DATA + 0x40),
    (0xD50B7A21, "dc cvac, x1", None),
    (0xF9800020, "prfm pldl1keep, [x1]", None),
    (0xB8004C22, "str w2, [x1, #4]!", DATA + 4),
    (0x913FE027, "add x7, x1, #0xff8", None),
    (0xF90000E2, "str x2, [x7]", DATA + 0xFFC),  # crosses a page boundary
    (0xD503203F, "yield", None),
    (0xD503205F, "wfe", None),
    (0xD5033FDF, "isb", None),
    (0xD28000E0, "mov x0, #7", None),
    (0xD2800BC8, "mov x8, #0x5e", None),
    (0xD4000001, "svc #0", None),
]


def test_accesses_of_each_kind_are_recorded(tmp_path: Path) -> None:
    decoder = capstone.Cs(capstone.CS_ARCH_ARM64, 0)
    for word, text, _ in ACCESSES:
        instruction = next(decoder.disasm(word.to_bytes(4, "little"), 0))
        assert f"{instruction.mnemonic} {instruction.op_str}".strip() == text
    program = Program(write_elf(tmp_path / "accesses", [word for word, *_ in ACCESSES]))
    operations = run(program)
    assert program.exit_status == 7
    assert operations["pc"].tolist() == list(range(CODE, CODE + 4 * len(ACCESSES), 4))
    for operation, (_, text, va) in zip(operations, ACCESSES, strict=True):
        assert operation["va"] == (va or 0), text
        assert ("va_valid" in facts(operation["facts"])) == (va is not None), text
    assert facts(operations["facts"][9]) == {"store", "exclusive", "retired", "taken"}
    assert facts(operations["facts"][18]) == {"store", "unspecified", "retired", "taken", "va_valid"}
    assert facts(operations["facts"][-1]) == {"exception", "retired", "taken"}


def test_conditional_selects_record_whether_their_condition_passed(tmp_path: Path) -> None:
    # For each value of the flags and each condition: csel x1, x6, x7, COND; cbz x1, .+8. The branch shows the outcome.
    words = [0xD2800026, 0xD2800007]  # x6 = 1, x7 = 0
    for flags in range(16):
        words += [0xD2A00000 | flags << 17, 0xD51B4200]  # movz x0, #FLAGS << 12, lsl #16; msr nzcv, x0
        for condition in range(16):
            words += [0x9A8700C1 | condition << 12, 0xB4000041, 0xD503201F]
    operations = run(Program(write_elf(tmp_path / "selects", [*words, *EXIT])))
    selects = operations[operations["pc"] >= CODE + 8]
    selects = selects[(selects["facts"] & (FACT["conditional"] | FACT["branch"])) == FACT["conditional"]]
    branches = operations[(operations["facts"] & FACT["branch"]) != 0]
    assert len(selects) == len(branches) == 256
    passed = [condition_holds(condition, flags << 28) for flags in range(16) for condition in range(16)]
    assert ((selects["facts"] & FACT["taken"]) != 0).tolist() == passed
    assert ((branches["facts"] & FACT["taken"]) == 0).tolist() == passed
    assert (branches["target"] == branches["pc"] + np.where(passed, 4, 8).astype(np.uint64)).all()


def test_conditional_selects_of_sixteen_thousand_encodings(tmp_path: Path) -> None:
    # Four iterations over different words: CSEL or CSINC x0, Xn, Xm, COND. The flags change with each iteration.
    iterations, count = 4, 16_000
    words = [
        0x9A800000 | (index >> 10) << 16 | (index & 15) << 12 | (index >> 9 & 1) << 10 | (index >> 4 & 31) << 5
        for index in range(count)
    ]
    assert len(set(words)) == count
    loop = [0xD51B4209, *words, 0x8B0B0129, 0xD100054A]  # msr nzcv, x9; SELECTS; add x9, x9, x11; sub x10, x10, #1
    start = [
        0xD2B20009,
        0xD2AA000B,
        0xD2800000 | iterations << 5 | 10,
    ]  # x9 = 0x9000_0000; x11 = 0x5000_0000; x10 = ITERATIONS
    back = [0xB5000000 | (-len(loop) & 0x7FFFF) << 5 | 10]  # cbnz x10, LOOP
    operations = run(Program(write_elf(tmp_path / "selects", [*start, *loop, *back, *EXIT])))
    selects = operations[(operations["facts"] & (FACT["conditional"] | FACT["branch"])) == FACT["conditional"]]
    flags = [0x9, 0xE, 0x3, 0x8]
    expected = [condition_holds(index & 15, nzcv << 28) for nzcv in flags for index in range(count)]
    assert ((selects["facts"] & FACT["taken"]) != 0).tolist() == expected


def test_every_pc_follows_from_the_previous_operation() -> None:
    operations = next(Program(SORT).run())
    branch = (operations["facts"] & FACT["branch"]) != 0
    following = np.where(branch, operations["target"], operations["pc"] + np.uint64(4))
    assert (operations["pc"][1:] == following[:-1]).all()
    taken = (operations["facts"] & FACT["taken"]) != 0
    assert (taken == (operations["target"] != operations["pc"] + np.uint64(4)))[branch].all()
    assert not operations["target"][~branch].any()


def test_operations_do_not_depend_on_the_array_length() -> None:
    expected = next(Program(SORT).run())
    pieces = list(islice(Program(SORT).run(limit=1024), len(expected) // 1024))
    assert all(piece.dtype == OPERATION and 0 < len(piece) <= 1024 for piece in pieces)
    joined = np.concatenate(pieces)
    assert (joined == expected[: len(joined)]).all()


def test_an_exclusive_pair_can_span_arrays(tmp_path: Path) -> None:
    # x1 = DATA; LOOP: ldxr x2, [x1]; add x2, x2, #1; stxr w3, x2, [x1]; cbnz w3, LOOP
    words = [0xD2A00821, 0xC85F7C22, 0x91000442, 0xC8037C22, 0x35FFFFA3, *EXIT]
    path = write_elf(tmp_path / "exclusive", words)
    operations = run(Program(path), limit=1)
    assert len(operations) == len(words)  # one iteration: the store succeeds
    assert (operations == run(Program(path))).all()
    assert operations["va"][3] == DATA


def test_unexpected_traffic_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_traffic(word: int) -> Instruction:
        instruction = classify(word)
        return replace(instruction, traffic=8) if instruction.traffic == 16 else instruction

    monkeypatch.setattr("spurtle_sim.emulator.program.classify", wrong_traffic)
    words = [word for word, *_ in ACCESSES[:2]]  # mov x1, #0x410000; ldp x2, x3, [x1]
    with pytest.raises(RuntimeError, match="the accesses of the emulator do not match the instructions"):
        run(Program(write_elf(tmp_path / "accesses", [*words, *EXIT])))


@pytest.mark.parametrize("limit", [1, 3, 65536])
def test_time_advances_one_nanosecond_per_instruction(tmp_path: Path, limit: int) -> None:
    # x1 = DATA; x0 = 0; x8 = 113; svc: clock_gettime(0, DATA); ldr x0, [x1, #8]: the nanoseconds are the exit status.
    words = [0xD2A00821, 0xD2800000, 0xD2800E28, 0xD4000001, 0xF9400420, *EXIT]
    program = Program(write_elf(tmp_path / "time", words))
    run(program, limit)
    assert program.exit_status == 4


def test_the_program_writes_to_standard_error_of_the_host(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    # write(2, DATA, 5): five zero bytes on standard error.
    words = [0xD2800040, 0xD2A00821, 0xD28000A2, 0xD2800808, 0xD4000001, *EXIT]
    program = Program(write_elf(tmp_path / "output", words))
    run(program)
    assert capfd.readouterr().err == "\0" * 5
    assert program.exit_status == 5  # result of write


@pytest.mark.parametrize(
    ("words", "retired", "number", "message"),
    [
        ([0xD2800021, 0xF9400020], 1, SIGSEGV, "crashed at PC 0x400004 .*read from 0x1 .8 bytes"),
        ([0xD2800021, 0xF9000020], 1, SIGSEGV, "crashed at PC 0x400004 .*write to 0x1 "),
        ([0xD2A00801, 0xF9000020], 1, SIGSEGV, "crashed at PC 0x400004 .*write to 0x400000 "),  # its own code
        ([0xD2A00821, 0xD61F0020], 2, SIGSEGV, "crashed at PC 0x410000 .*jump to 0x410000 "),  # data
        ([0xD2A00801, 0x91000821, 0xD61F0020], 3, SIGBUS, "crashed at PC 0x400002 .*PC is not a multiple of 4"),
        ([0xD4200000], 0, SIGTRAP, "breakpoint"),
        ([0x00000000], 0, SIGILL, "unsupported instruction: .*0x00000000"),
        ([0xA5400000], 0, SIGILL, "unsupported instruction: .*0xa5400000"),
        ([0xD503201F, 0xA5400000], 1, SIGILL, "crashed at PC 0x400004 .*unsupported instruction"),
        # An unsupported instruction that is not reached.
        ([0xF94003FF, 0xD2800021, 0xF9400020, 0xA5400000], 2, SIGSEGV, "crashed at PC 0x400008 .*read from 0x1 "),
        ([0xD503207F], 1, SIGILL, "waits for an interrupt"),
    ],
)
def test_a_crash_ends_the_program(
    tmp_path: Path, words: list[int], retired: int, number: Signals, message: str
) -> None:
    program = Program(write_elf(tmp_path / "crash", [*words, *EXIT]))
    operations = run(program)
    assert program.exit_status == 128 + number
    assert re.fullmatch(f"crash .*{message}.* [(]{number.name}[)]", program.failure)
    assert operations["pc"].tolist() == list(range(CODE, CODE + 4 * retired, 4))


def test_the_target_of_a_jump_that_crashes_is_recorded(tmp_path: Path) -> None:
    operations = run(Program(write_elf(tmp_path / "jump", [0xD2A00821, 0xD61F0020])))  # x1 = DATA; br x1
    assert operations["target"].tolist() == [0, DATA]
    assert facts(operations["facts"][1]) >= {"branch", "retired", "taken"}


def test_files_that_are_not_executables_are_rejected(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("#!/bin/sh")
    absent = tmp_path / "absent"
    for path, message in (
        (absent, "absent cannot be read: No such file"),
        (tmp_path, "cannot be read: it must be a regular file"),
        (text, "text must be .* not an ELF file"),
        (write_elf(tmp_path / "x86", EXIT, machine=62), "x86 must be built for AArch64"),
        (write_elf(tmp_path / "object", EXIT, kind=1), "object must be an executable, not an object file"),
        (write_elf(tmp_path / "data", EXIT, flags=0b100), "data must have an executable segment"),
        (write_elf(tmp_path / "rwx", EXIT, flags=0b111), "rwx must not have a writable executable segment"),
    ):
        with pytest.raises(UserError, match=message):
            Program(path)


def test_dynamic_executables_are_rejected(tmp_path: Path) -> None:
    path = write_elf(tmp_path / "dynamic", EXIT)
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, 64 + 56, 3)  # the second program header becomes PT_INTERP
    path.write_bytes(content)
    with pytest.raises(UserError, match="linked statically"):
        Program(path)


PATCHES = [
    ("<H", 54, 55, "program headers"),  # e_phentsize
    ("<H", 56, 0, "program headers"),  # e_phnum
    ("<H", 56, 0xFFFF, "program headers"),
    ("<Q", 32, 1 << 63, "program headers"),  # e_phoff
    ("<Q", 24, CODE + 0x1000, "must start in an executable segment, not at 0x401000"),  # e_entry
    ("<Q", 24, (1 << 64) - 4, "must start in an executable segment"),
    ("<B", 4, 1, "64-bit"),  # EI_CLASS
    ("<B", 5, 2, "little-endian"),  # EI_DATA
    ("<Q", TEXT_HEADER + 8, 0x800, "another offset in its page than in the file"),  # p_offset
    ("<Q", TEXT_HEADER + 8, 1 << 62, "ends at byte 0x4000000000000008 of the file, which has 0x1008 bytes"),
    ("<Q", TEXT_HEADER + 32, 1 << 40, "0x10000000000 bytes in the file and only 0x8 in memory"),  # p_filesz
    ("<Q", TEXT_HEADER + 40, 1 << 40, "at most 0x40000000 bytes, not 0x1000000"),  # p_memsz
    ("<Q", DATA_HEADER + 40, (1 << 64) - 1, "must end at 0x700000000000 or below"),
    ("<Q", DATA_HEADER + 16, (1 << 64) - 0x1000, "must end at 0x700000000000 or below"),  # p_vaddr
    ("<Q", DATA_HEADER + 16, CODE, "writable executable segment"),
    ("<I", DATA_HEADER, 3, "linked statically"),  # p_type
]
"""Format, offset and value of a field with which the file cannot be loaded, and the reason."""


@pytest.mark.parametrize(("layout", "offset", "value", "message"), PATCHES)
def test_invalid_headers_are_rejected(tmp_path: Path, layout: str, offset: int, value: int, message: str) -> None:
    path = write_elf(tmp_path / "patched", EXIT)
    content = bytearray(path.read_bytes())
    struct.pack_into(layout, content, offset, value)
    path.write_bytes(content)
    with pytest.raises(UserError, match=f"patched .*{message}"):
        Program(path)


@pytest.mark.parametrize("size", [*range(0, 0x60, 7), 0x1000, 0x1004])
def test_truncated_files_are_rejected(tmp_path: Path, size: int) -> None:
    path = write_elf(tmp_path / "cut", EXIT)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(
        UserError, match=r"cut must .* not an ELF file|cut must have complete program headers|of the file, which"
    ):
        Program(path)


def test_invalid_sections_are_ignored(tmp_path: Path) -> None:
    # The kernel does not read sections. The emulator reads them only for the names of functions.
    content = bytearray(SORT.read_bytes())
    (offset,) = struct.unpack_from("<Q", content, 40)  # e_shoff
    content[offset:] = bytes(0xFF for _ in content[offset:])
    path = tmp_path / "sections"
    path.write_bytes(content)
    program = Program(path)
    next(program.run())
    assert program.symbol(program.image.entry) == f"{program.image.entry:#x}"


def test_arguments_can_contain_any_bytes(tmp_path: Path) -> None:
    uc = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
    build_stack(uc, read_image(write_elf(tmp_path / "bytes", EXIT)), ("program", "\udcff"), 1)
    _, _, argument = struct.unpack("<3Q", uc.mem_read(uc.reg_read(UC_ARM64_REG_SP), 24))
    assert bytes(uc.mem_read(argument, 2)) == b"\xff\0"


@pytest.mark.parametrize("arguments", [["x" * 9_000_000], [""] * 300_000])
def test_arguments_that_are_too_long_are_rejected(tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(UserError, match=r"^the arguments of the program must be at most 2,097,152 bytes, not "):
        Program(write_elf(tmp_path / "long", EXIT), arguments)


def test_a_program_must_be_a_regular_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^/dev/zero cannot be read: it must be a regular file$"):
        Program("/dev/zero")


def test_position_independent_executable(tmp_path: Path) -> None:
    program = Program(write_elf(tmp_path / "pie", EXIT, kind=3))
    assert run(program)["pc"].tolist() == [0x5555_5555_0000 + CODE, 0x5555_5555_0000 + CODE + 4]
    assert program.image.mappings[0].start == 0x5555_5555_0000 + CODE
    assert program.image.headers == (0, 56, 2), "no segment contains the program headers"


@pytest.mark.parametrize("kind", [2, 3])
def test_address_of_program_headers_in_a_segment(tmp_path: Path, kind: int) -> None:
    path = write_elf(tmp_path / "headers", EXIT, kind=kind)
    content = bytearray(path.read_bytes())
    size = 0x1000 + 4 * len(EXIT)
    struct.pack_into("<5Q", content, 64 + 8, 0, CODE - 0x1000, CODE - 0x1000, size, size)
    path.write_bytes(content)
    base = 0x5555_5555_0000 if kind == 3 else 0
    assert read_image(path).headers == (base + CODE - 0x1000 + 64, 56, 2)


def test_initial_stack(tmp_path: Path) -> None:
    image = read_image(write_elf(tmp_path / "stack", EXIT))
    uc = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
    build_stack(uc, image, ("program", "argument"), 1)
    sp = uc.reg_read(UC_ARM64_REG_SP)
    assert sp % 16 == 0
    argc, program, argument, *ends = struct.unpack("<5Q", uc.mem_read(sp, 40))
    assert (argc, ends) == (2, [0, 0])
    assert bytes(uc.mem_read(program, 8)) == b"program\0"
    assert bytes(uc.mem_read(argument, 9)) == b"argument\0"
    auxiliary = dict(struct.iter_unpack("<2Q", uc.mem_read(sp + 40, 11 * 16)))
    at_null, at_phdr, at_entry, at_random = 0, 3, 9, 25
    assert auxiliary[at_null] == 0
    assert (auxiliary[at_phdr], auxiliary[at_entry]) == (0, CODE)
    assert bytes(uc.mem_read(auxiliary[at_random], 4)).hex() == "f5b16522"


def test_a_signal_during_a_hook_ends_the_program() -> None:
    program = Program(SORT)
    writes: list[int] = []

    def interrupt(*_: Any) -> None:
        writes.append(1)
        if len(writes) == 5000:
            program.kill(SIGTERM)

    program._uc.hook_add(UC_HOOK_MEM_WRITE, interrupt)  # pyright: ignore[reportPrivateUsage]
    operations = run(program)
    assert (len(writes), program.exit_status, program.failure) == (5000, 128 + SIGTERM, "")
    assert (operations == next(Program(SORT).run(len(operations)))).all(), "the last row must be complete"


def test_a_signal_ends_a_loop(tmp_path: Path) -> None:
    program = Program(write_elf(tmp_path / "loop", [0x14000000]))  # b .
    for number, operations in enumerate(program.run()):
        assert (operations["pc"] == CODE).all() and (operations["target"] == CODE).all()
        if number == 1:
            program.kill(SIGINT)
    assert program.exit_status == 128 + SIGINT


def test_a_signal_interrupts_a_blocking_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # x1 = DATA; x2 = 1; x8 = 63; svc: read(0, DATA, 1). There is no input until the timer `guard` expires.
    program = Program(write_elf(tmp_path / "read", [0xD2A00821, 0xD2800022, 0xD28007E8, 0xD4000001, *EXIT]))
    reader, writer = os.pipe()
    host_read = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, length: host_read(descriptor or reader, length))
    before = signal.signal(SIGTERM, lambda number, _: program.kill(Signals(number)))
    guard = threading.Timer(20, os.write, [writer, b"x"])
    guard.start()
    threading.Timer(0.1, signal.pthread_kill, [threading.get_ident(), SIGTERM]).start()
    operations = run(program)
    interrupted = guard.is_alive()
    guard.cancel()
    signal.signal(SIGTERM, before)
    os.close(reader)
    os.close(writer)
    assert interrupted
    assert (len(operations), program.exit_status) == (4, 128 + SIGTERM)


def test_symbol_is_the_function_and_the_offset() -> None:
    program = Program(SORT)
    start = next(address for address, name in program.image.functions if name == "sift")
    assert program.symbol(start) == "sift+0x0"
    assert program.symbol(start + 8) == "sift+0x8"
    assert program.symbol(0x1000) == "0x1000"


# A real program.


@pytest.mark.skipif(
    "SPURTLE_BUSYBOX" not in os.environ, reason="SPURTLE_BUSYBOX does not name a static AArch64 busybox"
)
def test_busybox_sha256sum(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    busybox = shutil.copy(os.environ["SPURTLE_BUSYBOX"], tmp_path / "busybox")
    content = bytes(index * index % 251 for index in range(20_000))
    file = tmp_path / "content"
    file.write_bytes(content)
    totals: list[int] = []
    for _ in range(2):
        program = Program(busybox, ["sha256sum", str(file)])
        totals.append(len(run(program)))
        assert program.exit_status == 0
        assert capfd.readouterr() == (f"{hashlib.sha256(content).hexdigest()}  {file}\n", "")
    assert totals[0] == totals[1] > 1_000_000
