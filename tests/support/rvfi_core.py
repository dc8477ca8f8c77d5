"""A RISC-V core as RVFI shows it: user and machine mode, interrupts, exceptions, instructions of several cycles."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from spurtle.shell.rvfi import PrivilegeMode

__all__ = ["CoreModel", "Cycle", "Retirement"]

_PROGRAM, _HANDLER = 0x1000, 0x8000
"""Addresses of the program in user mode, and of the handler of all exceptions and interrupts."""

_INTERRUPTS = 0.3
"""Chance that an interrupt is taken in a cycle in which it was not yet."""


@dataclass(frozen=True)
class _Instruction:
    """An instruction, and the numbers of cycles that it may take. Chances are those of each execution.

    Parameters
    ----------
    insn : int
    cycles : tuple of int
    traps : float
        Chance that it causes an exception.
    branch : bool
    jumps : float
        Chance that the program begins again behind a branch.
    access : str
        Name of the mask that says what it accesses; empty if nothing.
    """

    insn: int
    cycles: tuple[int, ...] = (1,)
    traps: float = 0
    branch: bool = False
    jumps: float = 0
    access: str = ""

    @property
    def size(self) -> int:
        """Bytes."""
        return 4 if self.insn & 0b11 == 0b11 else 2


_KINDS = (
    _Instruction(0x0010_0093),  # addi
    _Instruction(0x0001),  # c.nop
    _Instruction(0x0220_C1B3, cycles=(4, 6)),  # div
    _Instruction(0x0001_2083, cycles=(2, 4), traps=0.2, access="mem_rmask"),  # lw
    _Instruction(0x0011_2023, cycles=(1, 3), traps=0.2, access="mem_wmask"),  # sw
)
_BEQ = _Instruction(0x0020_8463, cycles=(1, 2), branch=True, jumps=0.2)
_NOT_TAKEN = _Instruction(0x0020_8463, branch=True)
_ECALL = _Instruction(0x0000_0073, cycles=(2,), traps=1)
_JAL = _Instruction(0x0000_006F, cycles=(1, 2), branch=True, jumps=1)
_MRET = _Instruction(0x3020_0073, cycles=(2,), branch=True)


@dataclass(frozen=True)
class Retirement:
    """An instruction that retires or traps.

    Parameters
    ----------
    rvfi : dict of str to int
        What RVFI reports, but `valid`.
    flushed : bool
        An operation that began after the retirement before was abandoned. RVFI does not report it.
    branch, exception_return : bool
    """

    rvfi: dict[str, int]
    flushed: bool
    branch: bool
    exception_return: bool


@dataclass(frozen=True)
class Cycle:
    """A cycle of the clock.

    Parameters
    ----------
    mode : Mode
        Privilege mode of the core.
    retired : sequence of Retirement
        What RVFI reports, in program order. This core retires one instruction in a cycle at most.
    """

    mode: PrivilegeMode
    retired: Sequence[Retirement]


class CoreModel:
    """A core that executes a random program until an interrupt was taken in each cycle of each instruction, but for
    those of the handler in which interrupts are masked: its first instruction and its MRET.

    It starts in the handler, in machine mode. The handler may be interrupted itself, and may cause exceptions.

    Parameters
    ----------
    random : Random
    lag : int
        Cycles that RVFI is behind `Cycle.mode`. Without a lag the mode is that of the next instruction as soon as one
        retires.
    reports_traps : bool
        RVFI reports an instruction that causes an exception.
    """

    def __init__(self, random: Random, *, lag: int = 0, reports_traps: bool = True):
        self._random = random
        self._lag = lag
        self._reports_traps = reports_traps
        self._memory = {
            **_placed(_PROGRAM, [*random.sample([*_KINDS, _BEQ, _ECALL], 7), _JAL]),
            **_placed(_HANDLER, [*random.sample([*_KINDS, _NOT_TAKEN], 4), _MRET]),
        }

    def run(self) -> list[Cycle]:
        """Return what happens in each cycle from reset on."""
        cycles = list(self._execute())
        nothing: list[Retirement | None] = [None] * self._lag
        modes = [mode for mode, _ in cycles] + [cycles[-1][0]] * self._lag
        retired = nothing + [retirement for _, retirement in cycles]
        return [Cycle(mode, [row] if row else []) for mode, row in zip(modes, retired, strict=True)]

    def _execute(self) -> Iterable[tuple[PrivilegeMode, Retirement | None]]:
        """Yield the mode that follows each cycle, and what retires in the cycle."""
        random = self._random
        left = self._interruptible()
        pc, mode = _HANDLER, PrivilegeMode.MACHINE
        returns = [(_PROGRAM, PrivilegeMode.USER)]
        intr = flushed = False
        while left:
            instruction = self._memory[pc]
            cycles = random.choice(instruction.cycles)
            traps = random.random() < instruction.traps
            taken = [age for age in range(cycles) if (pc, age) in left and random.random() < _INTERRUPTS]
            yield from [(mode, None)] * (taken[0] if taken else cycles - 1)
            if taken:
                left.remove((pc, taken[0]))
                returns.append((pc, mode))
                target = (_HANDLER, PrivilegeMode.MACHINE)
            elif traps:
                returns.append((pc + instruction.size, mode))
                target = (_HANDLER, PrivilegeMode.MACHINE)
            elif instruction is _MRET:
                target = returns.pop()
            else:
                target = (_PROGRAM if random.random() < instruction.jumps else pc + instruction.size, mode)
            if taken or (traps and not self._reports_traps):
                yield target[1], None
                intr = flushed = True
            else:
                rvfi = {"pc_rdata": pc, "pc_wdata": target[0], "mode": mode, "intr": int(intr), "trap": int(traps)}
                accesses = {"mem_addr": 0x100, instruction.access: 0b1111} if instruction.access and not traps else {}
                yield (
                    target[1],
                    Retirement(
                        {"insn": instruction.insn, **rvfi, **accesses},
                        flushed,
                        instruction.branch,
                        exception_return=instruction is _MRET,
                    ),
                )
                intr, flushed = traps, False
            pc, mode = target

    def _interruptible(self) -> set[tuple[int, int]]:
        """Return the address of each instruction that may be interrupted with each of its cycles."""
        return {
            (address, age)
            for address, instruction in self._memory.items()
            for age in range(max(instruction.cycles))
            if address != _HANDLER and instruction is not _MRET
        }


def _placed(address: int, instructions: Iterable[_Instruction]) -> dict[int, _Instruction]:
    """Return the instructions by their addresses, the first one at `address`."""
    memory: dict[int, _Instruction] = {}
    for instruction in instructions:
        memory[address] = instruction
        address += instruction.size
    return memory
