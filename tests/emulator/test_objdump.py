"""Classification of instructions, compared with the disassembly of GNU objdump."""

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from spurtle_sim.emulator.a64 import classify_every
from spurtle_sim.trace.instruction import FACT, Instruction
from tests.support.objdump import disassemble, needs_objdump
from tests.support.paths import WORKLOADS
from tests.support.qemu import SYSROOT
from tests.support.seeds import SEED
from tests.support.tiers import tiers

KINDS = (
    *("load", "store", "atomic", "exclusive", "branch", "exception", "allocation_tag", "memory_copy", "memory_set"),
)
SIMD = ("simd_fp", "vector", "floating_point")


def words_of_programs() -> list[int]:
    """Return the different instruction words of the executables that are present."""
    libraries = [SYSROOT / "lib" / name for name in ("libc.so.6", "libm.so.6", "libstdc++.so.6")]
    found: set[int] = set()
    for path in (*WORKLOADS.glob("*.elf"), *libraries, Path(os.environ.get("SPURTLE_BUSYBOX", ""))):
        if path.is_file():
            with path.open("rb") as file:
                for section in ELFFile(file).iter_sections():
                    if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR and section["sh_type"] == "SHT_PROGBITS":
                        content = section.data()
                        found.update(word for (word,) in struct.iter_unpack("<I", content[: len(content) // 4 * 4]))
    return sorted(found)


def is_unallocated(word: int, text: str) -> bool:
    """Return whether the disassembler shows an unallocated word: FMLAL and similar with another size."""
    return text.startswith(("fmlal", "fmlsl")) and bool(word >> 22 & 1)


def kinds(instruction: Instruction) -> frozenset[str]:
    found = {name for name in (*KINDS, *SIMD) if instruction.facts & FACT[name]}
    return frozenset(found - {*SIMD} | ({"simd"} if found & {*SIMD} else set()))


@needs_objdump
@pytest.mark.parametrize("count", tiers(full=[6_000], long=[600_000]))
def test_kinds_and_sizes(count: int, record_property: Callable[[str, object], None]) -> None:
    """Words of programs, the same with another bit, and random words of which about half are allocated."""
    generator = random.Random(SEED)
    real = words_of_programs()
    drawn = generator.choices(real, k=count // 3)
    changed = [word ^ 1 << generator.randrange(32) for word in generator.choices(real, k=count // 2)]
    randoms = [generator.getrandbits(32) for _ in range(count)]
    wrong: dict[str, str] = {}
    compared = 0
    for word, expected in disassemble(set(drawn + changed + randoms)):
        if not expected.runs or is_unallocated(word, expected.text):
            continue
        compared += 1
        found = classify_every(word)
        if found is None:
            wrong[expected.text] = "not classified"
        elif kinds(found) != expected.kinds or expected.traffic not in (None, found.traffic):
            wrong[expected.text] = f"{word:08x}: {sorted(kinds(found))}, {found.traffic} bytes, not {expected[2:]}"
    assert wrong == {}
    assert compared > 5 * count // 6
    record_property("words", compared)
