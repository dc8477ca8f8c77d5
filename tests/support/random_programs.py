"""Random programs without system calls, for comparisons of two emulators."""

from collections.abc import Callable
from random import Random

from tests.support.elf import DATA, EXIT

__all__ = ["random_program"]

_TURNS = 40
_BASE = 20  # register with the address of the data
_COUNTER = 28
_CALLS = 3
_MAX_OFFSET = 4  # of a branch, in instructions
_NOP, _RET = 0xD503201F, 0xD65F03C0


def random_program(seed: int, length: int = 120) -> list[int]:
    """Return a loop of random instructions, which calls a function, and the end of the program."""
    random = Random(seed)
    words = [_movz(register, random.getrandbits(16)) for register in range(16)]
    words += [_movz(_BASE, DATA >> 16, 1), _movz(_COUNTER, _TURNS)]
    body: list[int] = []
    while len(body) < length:
        body += random.choice(_KINDS)(random)
    del body[length:]
    body += [_NOP] * _MAX_OFFSET  # a branch can lead beyond the random instructions
    function = [*(random.choice(_SIMPLE)(random)[0] for _ in range(5)), _RET]
    end = [0xF1000400 | _COUNTER << 5 | _COUNTER, 0]  # subs
    calls = [0x94000000 | (_CALLS - index + len(end) + len(EXIT)) for index in range(_CALLS)]
    distance = len(body) + len(calls) + 1
    end[1] = 0x54000001 | (-distance & 0x7FFFF) << 5  # b.ne
    return [*words, *body, *calls, *end, *EXIT, *function]


def _movz(register: int, value: int, shift: int = 0) -> int:
    return 0xD2800000 | shift << 21 | value << 5 | register


def _three(opcode: int) -> Callable[[Random], list[int]]:
    """Return a function that makes an instruction with two sources."""

    def make(random: Random) -> list[int]:
        rd, rn, rm = (random.randrange(16) for _ in range(3))
        return [opcode | rm << 16 | rn << 5 | rd]

    return make


def _conditional(opcode: int) -> Callable[[Random], list[int]]:
    """Return a function that makes a conditional select or compare."""

    def make(random: Random) -> list[int]:
        rd, rn, rm = (random.randrange(16) for _ in range(3))
        return [opcode | rm << 16 | random.randrange(16) << 12 | rn << 5 | rd]

    return make


def _access(opcode: int, scale: int) -> Callable[[Random], list[int]]:
    """Return a function that makes a load or store with an offset of at most 64 times `scale` bytes."""
    return lambda random: [opcode | random.randrange(64 // scale) << 10 | _BASE << 5 | random.randrange(16)]


def _pair(opcode: int) -> Callable[[Random], list[int]]:
    def make(random: Random) -> list[int]:
        first = random.randrange(15)
        return [opcode | random.randrange(32) << 15 | (first + 1) << 10 | _BASE << 5 | first]

    return make


def _fixed(*words: int) -> Callable[[Random], list[int]]:
    return lambda _: [*words]


def _branch(random: Random) -> list[int]:
    offset, register = random.randint(1, _MAX_OFFSET), random.randrange(16)
    return [
        random.choice(
            (
                0x54000000 | offset << 5 | random.randrange(15),  # b.cond
                0xB4000000 | offset << 5 | register,  # cbz
                0xB5000000 | offset << 5 | register,  # cbnz
                0x36000000 | random.randrange(32) << 19 | offset << 5 | register,  # tbz
                0x14000000 | offset,  # b
            )
        )
    ]


_SIMPLE = (_three(0x8B000000), _three(0xCA000000), _three(0xEB000000))  # add, eor, subs
_KINDS = (
    *(2 * _SIMPLE),
    _three(0x9B007C00),  # mul
    *(_conditional(opcode) for opcode in (0x9A800000, 0x9A800400, 0x1E600C00)),  # csel, csinc, fcsel
    lambda random: [_conditional(0xFA400000)(random)[0] & ~0x10],  # ccmp
    _access(0xF9400000, 8), _access(0xF9000000, 8), _access(0x39400000, 1), _access(0x3DC00000, 16),  # ldr, str, ldrb
    _pair(0xA9400000), _pair(0xA9000000),  # ldp, stp
    _fixed(0xF8210280), _fixed(0xF83F0280 & ~0x1F | 0x1F),  # ldadd x1, x0, [x20]; the same without a result
    _fixed(0xC85F7E82, 0xC8037E82), _fixed(0xC8037E82),  # ldxr x2, [x20]; stxr w3, x2, [x20]; stxr alone
    _fixed(0xD50B7434), _fixed(0x4C402284), _fixed(0x4C002284),  # dc zva, x20; ld1 and st1 of four registers
    _branch, _branch, _branch,
)  # fmt: skip
