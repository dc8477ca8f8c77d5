"""Tests of the classification of A64 instructions: a row for each encoding, with values read from the manual."""

import capstone
import pytest

from spurtle_sim.emulator.a64 import UnsupportedInstructionError, classify, classify_every
from spurtle_sim.trace.instruction import FACT, NZCV, SP, Instruction, InstructionKind

# Word, disassembly, facts, bytes transferred, source registers, destination registers, base register with writeback.
MEMORY = [
    (0xF9400441, "ldr x1, [x2, #8]", "load", 8, "x2", "x1", ""),
    (0x38401441, "ldrb w1, [x2], #1", "load", 1, "x2", "x1", "x2"),
    (0xB8A37841, "ldrsw x1, [x2, x3, lsl #2]", "load", 4, "x2 x3", "x1", ""),
    (0xB85FC3E1, "ldur w1, [sp, #-4]", "load", 4, "sp", "x1", ""),
    (0xF8400841, "ldtr x1, [x2]", "load", 8, "x2", "x1", ""),
    (0x58000081, "ldr x1, #0x10", "load", 8, "", "x1", ""),
    (0x9C000081, "ldr q1, #0x10", "load simd_fp vector", 16, "", "v1", ""),
    (0xB8004C5F, "str wzr, [x2, #4]!", "store", 4, "x2", "", "x2"),
    (0x7D000041, "str h1, [x2]", "store simd_fp", 2, "x2 v1", "", ""),
    (0x3D400041, "ldr b1, [x2]", "load simd_fp", 1, "x2", "v1", ""),
    (0x3CC04041, "ldur q1, [x2, #4]", "load simd_fp vector", 16, "x2", "v1", ""),
    (0x2D000861, "stp s1, s2, [x3]", "store simd_fp", 8, "x3 v1 v2", "", ""),
    (0xA8C10861, "ldp x1, x2, [x3], #0x10", "load", 16, "x3", "x1 x2", "x3"),
    (0xADBF0BE1, "stp q1, q2, [sp, #-0x20]!", "store simd_fp vector", 32, "sp v1 v2", "", "sp"),
    (0x28400861, "ldnp w1, w2, [x3]", "load", 8, "x3", "x1 x2", ""),
    (0x69400861, "ldpsw x1, x2, [x3]", "load", 8, "x3", "x1 x2", ""),
    (0x0CDF2020, "ld1 {v0.8b, v1.8b, v2.8b, v3.8b}, [x1], #32", "load simd_fp vector", 32, "x1", "v0 v1 v2 v3", "x1"),
    (0x0CC2883E, "ld2 {v30.2s, v31.2s}, [x1], x2", "load simd_fp vector", 16, "x1 x2", "v30 v31", "x1"),
    (0x0D402C3F, "ld3 {v31.b, v0.b, v1.b}[3], [x1]", "load simd_fp vector", 3, "x1 v31 v0 v1", "v31 v0 v1", ""),
    (0x4D60EC20, "ld4r {v0.2d, v1.2d, v2.2d, v3.2d}, [x1]", "load simd_fp vector", 32, "x1", "v0 v1 v2 v3", ""),
    (0x4D008420, "st1 {v0.d}[1], [x1]", "store simd_fp vector", 8, "x1 v0", "", ""),
    (0xC85F7C41, "ldxr x1, [x2]", "load exclusive", 8, "x2", "x1", ""),
    (0xC8037C41, "stxr w3, x1, [x2]", "store exclusive", 8, "x2 x1", "x3", ""),
    (0x085FFC41, "ldaxrb w1, [x2]", "load acquire_release exclusive", 1, "x2", "x1", ""),
    (0x88239444, "stlxp w3, w4, w5, [x2]", "store acquire_release exclusive", 8, "x2 x4 x5", "x3", ""),
    (0x88DFFC41, "ldar w1, [x2]", "load acquire_release", 4, "x2", "x1", ""),
    (0x489FFC41, "stlrh w1, [x2]", "store acquire_release", 2, "x2 x1", "", ""),
    (0xF8BFC041, "ldapr x1, [x2]", "load acquire_release", 8, "x2", "x1", ""),
    (0xD91F8041, "stlur x1, [x2, #-8]", "store acquire_release", 8, "x2 x1", "", ""),
    (0x99804041, "ldapursw x1, [x2, #4]", "load acquire_release", 4, "x2", "x1", ""),
    (0xF8210043, "ldadd x1, x3, [x2]", "load store atomic", 16, "x2 x1", "x3", ""),
    (0x3821005F, "staddb w1, [x2]", "store atomic", 2, "x2 x1", "", ""),
    (0xB8A1005F, "ldadda w1, wzr, [x2]", "store atomic acquire_release", 8, "x2 x1", "", ""),
    (0xF8E18043, "swpal x1, x3, [x2]", "load store atomic acquire_release", 16, "x2 x1", "x3", ""),
    (0xF821805F, "swp x1, xzr, [x2]", "load store atomic", 16, "x2 x1", "", ""),
    (0x88A17C43, "cas w1, w3, [x2]", "load store atomic", 8, "x2 x1 x3", "x1", ""),
    (0x4860FC82, "caspal x0, x1, x2, x3, [x4]", "load store atomic acquire_release", 32, "x4 x0 x1 x2 x3", "x0 x1", ""),
    (0xF8200441, "ldraa x1, [x2]", "load", 8, "x2", "x1", ""),
    (0xD50B7421, "dc zva, x1", "store unspecified", 64, "x1", "", ""),
]

# Word, disassembly, kind, facts, source registers, destination registers.
OTHER = [
    (0xF9800040, "prfm pldl1keep, [x2]", "INTEGER", "", "x2", ""),
    (0xD50B7A21, "dc cvac, x1", "SYSTEM", "", "x1", ""),
    (0xD5087801, "at s1e1r, x1", "SYSTEM", "", "x1", ""),
    (0x14000008, "b #0x20", "BRANCH", "branch", "", ""),
    (0x94000008, "bl #0x20", "CALL", "branch link", "", "x30"),
    (0x54000101, "b.ne #0x20", "BRANCH", "branch conditional", "nzcv", ""),
    (0xB4000101, "cbz x1, #0x20", "BRANCH", "branch conditional", "x1", ""),
    (0x37180101, "tbnz w1, #3, #0x20", "BRANCH", "branch conditional", "x1", ""),
    (0xD61F0020, "br x1", "BRANCH", "branch indirect", "x1", ""),
    (0xD63F0020, "blr x1", "CALL", "branch indirect link", "x1", "x30"),
    (0xD65F03C0, "ret", "RETURN", "branch indirect procedure_return", "x30", ""),
    (0xD73F0822, "blraa x1, x2", "CALL", "branch indirect link", "x1", "x30"),
    (0xD65F0BFF, "retaa", "RETURN", "branch indirect procedure_return", "x30", ""),
    (0xD4000001, "svc #0", "SYNCHRONIZE", "exception", "", ""),
    (0xD4201C80, "brk #0xe4", "SYNCHRONIZE", "exception", "", ""),
    (0xD5033FDF, "isb", "SYNCHRONIZE", "", "", ""),
    (0xD5033BBF, "dmb ish", "MEMORY_BARRIER", "", "", ""),
    (0xD503201F, "nop", "INTEGER", "", "", ""),
    (0xD53BD041, "mrs x1, tpidr_el0", "SYSTEM", "", "", "x1"),
    (0xD51BD041, "msr tpidr_el0, x1", "SYSTEM", "", "x1", ""),
    (0x9A831041, "csel x1, x2, x3, ne", "INTEGER", "conditional", "x2 x3 nzcv", "x1"),
    (0x1A9F07E1, "cset w1, ne", "INTEGER", "conditional", "nzcv", "x1"),
    (0xFA44B822, "ccmp x1, #4, #2, lt", "INTEGER", "conditional", "x1 nzcv", "nzcv"),
    (0x3A428020, "ccmn w1, w2, #0, hi", "INTEGER", "conditional", "x1 x2 nzcv", "nzcv"),
    (0x1E62AC20, "fcsel d0, d1, d2, ge", "FP_ADD", "floating_point conditional", "nzcv v1 v2", "v0"),
    (0x1E224420, "fccmp s1, s2, #0, mi", "FP_ADD", "floating_point conditional", "nzcv v1 v2", "nzcv"),
    (0x1E6E1000, "fmov d0, #1.00000000", "FP_ADD", "floating_point", "", "v0"),
    (0x91000441, "add x1, x2, #1", "INTEGER", "", "x2", "x1"),
    (0x910043FF, "add sp, sp, #0x10", "INTEGER", "", "sp", "sp"),
    (0xEB03085F, "cmp x2, x3, lsl #2", "SHIFTED", "", "x2 x3", "nzcv"),
    (0x2B030041, "adds w1, w2, w3", "INTEGER", "", "x2 x3", "x1 nzcv"),
    (0xF2400041, "ands x1, x2, #1", "INTEGER", "", "x2", "x1 nzcv"),
    (0x927FF85F, "and sp, x2, #0xfffffffffffffffe", "INTEGER", "", "x2", "sp"),
    (0xAA0203E1, "mov x1, x2", "INTEGER", "", "x2", "x1"),
    (0x8B224BE1, "add x1, sp, w2, uxtw #2", "SHIFTED", "", "sp x2", "x1"),
    (0x9A030041, "adc x1, x2, x3", "INTEGER", "", "x2 x3 nzcv", "x1"),
    (0xF2800021, "movk x1, #1", "INTEGER", "", "x1", "x1"),
    (0xB37D0C41, "bfi x1, x2, #3, #4", "INTEGER", "", "x2 x1", "x1"),
    (0x93C31041, "extr x1, x2, x3, #4", "INTEGER", "", "x2 x3", "x1"),
    (0x9B031041, "madd x1, x2, x3, x4", "MULTIPLY", "", "x2 x3 x4", "x1"),
    (0x9B037C41, "mul x1, x2, x3", "MULTIPLY", "", "x2 x3", "x1"),
    (0x9AC30841, "udiv x1, x2, x3", "DIVIDE", "", "x2 x3", "x1"),
    (0x9AC32041, "lsl x1, x2, x3", "INTEGER", "", "x2 x3", "x1"),
    (0xDAC00041, "rbit x1, x2", "INTEGER", "", "x2", "x1"),
    (0x1AC34041, "crc32b w1, w2, w3", "INTEGER", "", "x2 x3", "x1"),
    (0x4E22CC20, "fmla v0.4s, v1.4s, v2.4s", "FP_FUSED", "vector floating_point", "v0 v1 v2", "v0"),
    (0x1E622820, "fadd d0, d1, d2", "FP_ADD", "floating_point", "v1 v2", "v0"),
    (0x1E221820, "fdiv s0, s1, s2", "FP_DIVIDE", "floating_point", "v1 v2", "v0"),
    (0x6E62DC20, "fmul v0.2d, v1.2d, v2.2d", "FP_MULTIPLY", "vector floating_point", "v1 v2", "v0"),
    (0x1E612000, "fcmp d0, d1", "FP_ADD", "floating_point", "v0 v1", "nzcv"),
    (0x9E660041, "fmov x1, d2", "TRANSFER", "floating_point", "v2", "x1"),
    (0x9E620020, "scvtf d0, x1", "TRANSFER", "floating_point", "x1", "v0"),
    (0x4E040C20, "dup v0.4s, w1", "TRANSFER", "vector", "x1", "v0"),
    (0x4EA28420, "add v0.4s, v1.4s, v2.4s", "SIMD", "vector", "v1 v2", "v0"),
    (0x4EA29C20, "mul v0.4s, v1.4s, v2.4s", "SIMD_MULTIPLY", "vector", "v1 v2", "v0"),
    (0x4E284820, "aese v0.16b, v1.16b", "SIMD", "vector", "v0 v1", "v0"),
    (0x4F000400, "movi v0.4s, #0", "SIMD", "vector", "", "v0"),
    (0x4F001420, "orr v0.4s, #1", "SIMD", "vector", "v0", "v0"),
    (0x5EE28420, "add d0, d1, d2", "SIMD", "vector", "v1 v2", "v0"),
    (0x5EA1D820, "frecpe s0, s1", "FP_ADD", "vector floating_point", "v1", "v0"),
    (0x4EA1C820, "urecpe v0.4s, v1.4s", "SIMD", "vector", "v1", "v0"),
    (0x5E21D820, "scvtf s0, s1", "FP_ADD", "vector floating_point", "v1", "v0"),
    (0x4F03F600, "fmov v0.4s, #1.00000000", "FP_ADD", "vector floating_point", "", "v0"),
    (0x4E829420, "sdot v0.4s, v1.16b, v2.16b", "SIMD_MULTIPLY", "vector", "v0 v1 v2", "v0"),
    (0x4E829C20, "usdot v0.4s, v1.16b, v2.16b", "SIMD_MULTIPLY", "vector", "v0 v1 v2", "v0"),
    (0x4F22F020, "sudot v0.4s, v1.16b, v2.4b[1]", "SIMD_MULTIPLY", "vector", "v0 v1 v2", "v0"),
    (0x4E82A420, "smmla v0.4s, v1.16b, v2.16b", "SIMD_MULTIPLY", "vector", "v0 v1 v2", "v0"),
    (0x6E82A420, "ummla v0.4s, v1.16b, v2.16b", "SIMD_MULTIPLY", "vector", "v0 v1 v2", "v0"),
    (0x4E82AC20, "usmmla v0.4s, v1.16b, v2.16b", "SIMD_MULTIPLY", "vector", "v0 v1 v2", "v0"),
    (0x6E42FC20, "bfdot v0.4s, v1.8h, v2.8h", "SIMD_MULTIPLY", "vector floating_point", "v0 v1 v2", "v0"),
    (0x6E42EC20, "bfmmla v0.4s, v1.8h, v2.8h", "SIMD_MULTIPLY", "vector floating_point", "v0 v1 v2", "v0"),
    (0x2EC2FC20, "bfmlalb v0.4s, v1.8h, v2.8h", "SIMD_MULTIPLY", "vector floating_point", "v0 v1 v2", "v0"),
    (0x1E634020, "bfcvt h0, s1", "FP_ADD", "floating_point", "v1", "v0"),
    (0x6E828420, "sqrdmlah v0.4s, v1.4s, v2.4s", "SIMD_MULTIPLY", "vector", "v0 v1 v2", "v0"),
    (0x4EA2B420, "sqdmulh v0.4s, v1.4s, v2.4s", "SIMD_MULTIPLY", "vector", "v1 v2", "v0"),
    (0x0E421420, "fadd v0.4h, v1.4h, v2.4h", "FP_ADD", "vector floating_point", "v1 v2", "v0"),
    (0x1EE22020, "fcmp h1, h2", "FP_ADD", "floating_point", "v1 v2", "nzcv"),
    (0x1EE2AC20, "fcsel h0, h1, h2, ge", "FP_ADD", "floating_point conditional", "nzcv v1 v2", "v0"),
    (0x1E7E0020, "fjcvtzs w0, d1", "TRANSFER", "floating_point", "v1", "x0 nzcv"),
    (0xCE030041, "eor3 v1.16b, v2.16b, v3.16b, v0.16b", "SIMD", "vector", "v2 v3 v0", "v1"),
    (0x4E621C20, "bic v0.16b, v1.16b, v2.16b", "SIMD", "vector", "v1 v2", "v0"),
    (0x4E022020, "tbl v0.16b, {v1.16b, v2.16b}, v2.16b", "SIMD", "vector", "v1 v2 v2", "v0"),
    (0x4E031020, "tbx v0.16b, {v1.16b}, v3.16b", "SIMD", "vector", "v0 v1 v3", "v0"),
    (0x6F3D0420, "ushr v0.4s, v1.4s, #3", "SIMD", "vector", "v1", "v0"),
    (0x6F3D1420, "usra v0.4s, v1.4s, #3", "SIMD", "vector", "v0 v1", "v0"),
    (0x0E612820, "xtn v0.4h, v1.4s", "SIMD", "vector", "v1", "v0"),
    (0x4E612820, "xtn2 v0.8h, v1.4s", "SIMD", "vector", "v0 v1", "v0"),
    (0x4EC22820, "trn1 v0.2d, v1.2d, v2.2d", "SIMD", "vector", "v1 v2", "v0"),
    (0x6E0C0420, "mov v0.s[1], v1.s[0]", "SIMD", "vector", "v0 v1", "v0"),
    (0x4EA11C20, "mov v0.16b, v1.16b", "SIMD", "vector", "v1", "v0"),
    (0x0E0C3C01, "mov w1, v0.s[1]", "TRANSFER", "vector", "v0", "x1"),
    (0xBA018424, "rmif x1, #3, #4", "INTEGER", "", "x1 nzcv", "nzcv"),
]


def names(registers: tuple[int, ...]) -> str:
    """Return the names of registers in the notation of the tables."""
    special = {SP: "sp", NZCV: "nzcv"}
    return " ".join(special.get(number, f"x{number}" if number < SP else f"v{number - 32}") for number in registers)


def facts(instruction: Instruction) -> str:
    return " ".join(name for name, bit in FACT.items() if instruction.facts & bit)


def disassembly(word: int) -> str:
    instruction = next(capstone.Cs(capstone.CS_ARCH_ARM64, 0).disasm(word.to_bytes(4, "little"), 0))
    return f"{instruction.mnemonic} {instruction.op_str}".strip()


def test_loads_stores_and_atomic_operations() -> None:
    for word, text, expected, traffic, *registers in MEMORY:
        instruction = classify(word)
        assert disassembly(word) == text
        assert facts(instruction) == expected, text
        assert instruction.traffic == traffic, text
        assert [*map(names, (instruction.sources, instruction.destinations, instruction.base))] == registers, text
        assert instruction.irregular == text.startswith(("stxr", "stlxp", "dc zva")), text
        kind = (
            InstructionKind.ATOMIC
            if "atomic" in expected
            else InstructionKind.LOAD
            if "load" in expected
            else InstructionKind.STORE
        )
        assert instruction.kind is kind, text


def test_other_instructions() -> None:
    for word, text, *expected in OTHER:
        instruction = classify(word)
        assert disassembly(word) == text
        assert [
            instruction.kind.name,
            facts(instruction),
            names(instruction.sources),
            names(instruction.destinations),
        ] == expected, text
        assert (instruction.base, instruction.traffic, instruction.irregular) == ((), 0, False), text


def test_minimum_and_maximum_with_an_immediate() -> None:
    # SMAX, UMAX, SMIN, UMIN (FEAT_CSSC) of Xd or Wd, Xn or Wn and an 8-bit number. capstone does not decode them.
    for size in (0, 1 << 31):
        for opcode in range(4):
            for number in (0, 0x55, 0xFF):
                word = size | 0x11C00000 | opcode << 18 | number << 10 | 2 << 5 | 1
                assert classify(word) == Instruction(InstructionKind.INTEGER, 0, (2,), (1,))
    for unallocated in (0x11D00041, 0x31C00041, 0x51C00041):
        with pytest.raises(UnsupportedInstructionError):
            classify(unallocated)


def test_conditional_selects_and_compares_have_their_condition() -> None:
    # CSEL, CSINC, CSINV, CCMN, CCMP (immediate), FCSEL, FCCMP.
    for word in (0x9A800000, 0x9A800400, 0xDA800000, 0x3A400000, 0xFA400800, 0x1E200C00, 0x1E200400):
        for code in range(16):
            assert classify(word | code << 12).condition == code


def test_only_conditional_selects_and_compares_have_a_condition() -> None:
    for word, text, *_ in (*MEMORY, *OTHER):
        expected = text.split()[0] in ("csel", "cset", "ccmp", "ccmn", "fcsel", "fccmp")
        assert (classify(word).condition is not None) == expected, text


# Word, disassembly, kind, facts, bytes transferred, source registers, destination registers, base register.
TAGS_AND_COPIES = [
    (0xD9600041, "ldg x1, [x2]", "LOAD", "load allocation_tag", 0, "x2 x1", "x1", ""),
    (0xD9200841, "stg x1, [x2]", "STORE", "store allocation_tag", 0, "x2 x1", "", ""),
    (0xD9A01C5F, "st2g sp, [x2, #0x10]!", "STORE", "store allocation_tag", 0, "x2 sp", "", "x2"),
    (0xD9600441, "stzg x1, [x2], #0", "STORE", "store unspecified", 16, "x2 x1", "", "x2"),
    (0xD9E00841, "stz2g x1, [x2]", "STORE", "store unspecified", 32, "x2 x1", "", ""),
    (0x69000861, "stgp x1, x2, [x3]", "STORE", "store", 16, "x3 x1 x2", "", ""),
    (0x68800861, "stgp x1, x2, [x3], #0", "STORE", "store", 16, "x3 x1 x2", "", "x3"),
    (0xD50B7461, "dc gva, x1", "STORE", "store allocation_tag", 0, "x1", "", ""),
    (0xD50B7481, "dc gzva, x1", "STORE", "store unspecified", 64, "x1", "", ""),
    (0x91810441, "addg x1, x2, #0x10, #1", "INTEGER", "", 0, "x2", "x1", ""),
    (0xD18107FF, "subg sp, sp, #0x10, #1", "INTEGER", "", 0, "sp", "sp", ""),
    (0x9ADF1041, "irg x1, x2", "INTEGER", "", 0, "x2", "x1", ""),
    (0xBAC30041, "subps x1, x2, x3", "INTEGER", "", 0, "x2 x3", "x1 nzcv", ""),
    (0x19010440, "cpyfp [x0]!, [x1]!, x2!", "ATOMIC", "load store memory_copy", 0, "x0 x1 x2", "x0 x1 x2", ""),
    (0x1DC20420, "setgp [x0]!, x1!, x2", "STORE", "store memory_set", 0, "x0 x1 x2", "x0 x1", ""),
]


def test_tags_and_copies_that_only_qemu_executes() -> None:
    for word, text, *expected in TAGS_AND_COPIES:
        instruction = classify_every(word)
        assert instruction is not None
        assert text.startswith("stgp") or disassembly(word) == text  # capstone does not decode STGP
        registers = instruction.sources, instruction.destinations, instruction.base
        found = [instruction.kind.name, facts(instruction), instruction.traffic, *map(names, registers)]
        assert found == expected, text


def test_tags_of_a_block_are_not_accessed_at_el0() -> None:
    for word in (0xD9200041, 0xD9A00041, 0xD9E00041):  # STZGM, STGM, LDGM
        assert classify_every(word) is None


def test_unsupported_instructions_are_rejected() -> None:
    for word in (
        0x00000000,  # UDF
        0xA5400000,  # SVE load
        0xC0800000,  # SME outer product
        0xD9200800,  # STG
        0x19000400,  # memory copy
        0xF83F9000,  # ST64B
        0xD69F03E0,  # ERET
        0xD50B7461,  # DC GVA
        0xD50B7701,  # GCSPUSHM
        0xD52B7721,  # GCSPOPM
        0xD91F0C41,  # GCSSTR
        0xBC200041,  # LDFADD
    ):
        with pytest.raises(UnsupportedInstructionError, match=f"0x{word:08x}"):
            classify(word)
