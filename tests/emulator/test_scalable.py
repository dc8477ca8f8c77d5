"""Classification of SVE instructions."""

import pytest

from spurtle_sim.emulator.a64.scalable import classify_scalable
from spurtle_sim.trace.instruction import FACT, NZCV, Instruction
from spurtle_sim.trace.instruction import InstructionKind as Kind
from spurtle_sim.trace.vectors import pack_vectors

LOAD = FACT["load"] | FACT["simd_fp"] | FACT["vector"]
STORE = FACT["store"] | FACT["simd_fp"] | FACT["vector"]
VECTOR = FACT["vector"]
FLOAT = FACT["vector"] | FACT["floating_point"]
SVE = pack_vectors()
PREDICATED = pack_vectors(predicated=True)
GATHER = pack_vectors(predicated=True, gather_scatter=True)
FOUR = pack_vectors(predicated=True, count=4)


def z(*numbers: int) -> tuple[int, ...]:
    return tuple(32 + number for number in numbers)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (
            0xA5E0A061,
            Instruction(Kind.LOAD, LOAD, (3,), z(1), irregular=True, vectors=PREDICATED),
        ),  # ld1d {z1.d}, p0/z, [x3]
        (
            0xC5E0C001,
            Instruction(Kind.LOAD, LOAD, (0, *z(0)), z(1), irregular=True, vectors=GATHER),
        ),  # ld1d from [x0, z0.d, lsl #3]
        (0xA5E0E020, Instruction(Kind.LOAD, LOAD, (1,), z(0, 1, 2, 3), irregular=True, vectors=FOUR)),  # ld4d
        (0x858044C5, Instruction(Kind.LOAD, LOAD, (6,), z(5), irregular=True, vectors=SVE)),  # ldr z5, [x6, #1, mul vl]
        (
            0xE5E144A3,
            Instruction(Kind.STORE, STORE, (5, 1, *z(3)), irregular=True, vectors=PREDICATED),
        ),  # st1d to [x5, x1, lsl #3]
        (0xE4636444, Instruction(Kind.STORE, STORE, (2, 3, *z(4, 5, 6, 7)), irregular=True, vectors=FOUR)),  # st4b
        (
            0xE582A021,
            Instruction(Kind.STORE, STORE, (1, *z(2, 1)), irregular=True, vectors=GATHER),
        ),  # st1d to [x1, z2.d]
        (
            0x8437D608,
            Instruction(Kind.LOAD, LOAD, z(16), z(8), irregular=True, vectors=GATHER),
        ),  # ld1b {z8.s}, p5/z, [z16.s, #23]
        (
            0xE4D0A253,
            Instruction(Kind.STORE, STORE, z(18, 19), irregular=True, vectors=GATHER),
        ),  # st1h {z19.d}, p0, [z18.d, #32]
        (0x8400EBC8, Instruction(Kind.INTEGER, 0, z(30))),  # prfb pstl1keep, p2, [z30.s]
        (0xE58003E3, Instruction(Kind.STORE, STORE, (31,), irregular=True, vectors=SVE)),  # str p3, [sp]
        (0x85C00080, Instruction(Kind.INTEGER, 0, (4,))),  # prfb
        (0x05A46080, Instruction(Kind.SIMD, VECTOR, z(4, 4), z(0), vectors=SVE)),  # zip1 z0.s, z4.s, z4.s
        (0x04A14004, Instruction(Kind.SIMD, VECTOR, (), z(4), vectors=SVE)),  # index z4.s, #0, #1
        (
            0x04824020,
            Instruction(Kind.SIMD_MULTIPLY, VECTOR, z(0, 1, 2), z(0), vectors=PREDICATED),
        ),  # mla z0.s, p0/m, z1.s, z2.s
        (
            0x65E18040,
            Instruction(Kind.FP_FUSED, FLOAT, z(0, 2, 1), z(0), vectors=PREDICATED),
        ),  # fmad z0.d, p0/m, z2.d, z1.d
        (0x65C02021, Instruction(Kind.FP_ADD, FLOAT, z(1), z(1), vectors=SVE)),  # faddv d1, p0, z1.d
        (0x65D0A063, Instruction(Kind.FP_ADD, FLOAT, z(3, 3), z(3), vectors=PREDICATED)),  # scvtf z3.d, p0/m, z3.s
        (0x65C24031, Instruction(Kind.INTEGER, FLOAT, z(1, 2), (NZCV,), vectors=SVE)),  # fcmgt p1.d, p0/z, z1.d, z2.d
        (0x25E20C22, Instruction(Kind.INTEGER, VECTOR, (1, 2), (NZCV,), vectors=SVE)),  # whilelo p2.d, w1, w2
        (0x2518E3E0, Instruction(Kind.INTEGER, VECTOR, (), (NZCV,), vectors=SVE)),  # ptrue p0.b
        (0x05E03841, Instruction(Kind.TRANSFER, VECTOR, (2,), z(1), vectors=SVE)),  # mov z1.d, x2
        (0x05E1A083, Instruction(Kind.TRANSFER, VECTOR, z(4), (3,), vectors=SVE)),  # lastb x3, p0, z4.d
        (0x04E0E3E5, Instruction(Kind.INTEGER, 0, (), (5,))),  # cntd x5
        (0x04B0E3E7, Instruction(Kind.INTEGER, 0, (7,), (7,))),  # incw x7
        (0x04E0FFE7, Instruction(Kind.INTEGER, 0, (7,), (7,))),  # uqdecd w7
        (0x04245026, Instruction(Kind.INTEGER, 0, (4,), (6,))),  # addvl x6, x4, #1
        (0x05E0CC20, Instruction(Kind.SIMD, VECTOR, z(0, 1), z(0), vectors=SVE)),  # sel, as mov z0.d, p3/m, z1.d
        (0x05D34020, Instruction(Kind.SIMD, VECTOR, z(0), z(0), vectors=PREDICATED)),  # mov z0.d, p3/m, #1
        (0x04D02440, Instruction(Kind.SIMD, VECTOR, z(2), z(0), vectors=PREDICATED)),  # movprfx z0.d, p1/z, z2.d
        (0x05E18440, Instruction(Kind.SIMD, VECTOR, z(2), z(0), vectors=SVE)),  # compact z0.d, p1, z2.d
        (0xE5804000, Instruction(Kind.STORE, STORE, (0, *z(0)), irregular=True, vectors=SVE)),  # str z0, [x0]
        (0x85800000, Instruction(Kind.LOAD, LOAD, (0,), (), irregular=True, vectors=SVE)),  # ldr p0, [x0]
        (0x8B000000, None),  # add x0, x0, x0
        (0x64FFFFFF, None),  # unallocated
    ],
)
def test_classification(word: int, expected: Instruction | None) -> None:
    assert classify_scalable(word) == expected
