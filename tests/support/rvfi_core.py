"""A model of a RISC-V core with RVFI: two privilege modes, interrupts, exceptions, multi-cycle instructions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from spurtle.shell.rvfi import PrivilegeMode

__all__ = ["CoreModel", "Cycle", "Retirement"]

_PROGRAM, _HANDLER = 0x1000, 0x8000
"""Addresses of the program in user mode and of the handler of all exceptions and interrupts."""

_INTERRUPTS = 0.3
"""Probability of an interrupt in a cycle of an instruction in which none has been taken so far."""


@dataclass(frozen=True)
class _Instruction:
    """An instruction.

    Parameters
    ----------
    insn : int
        Encoding.
    cycles : tuple of int
        Numbers of cycles that it may take.
    traps : float
        Probability that an execution causes an exception.
    branch : bool
    jumps : float
        Probability that the branch goes to the start of the program.
    access : str
        Name of the RVFI mask of its access to memory, empty if it makes none.
    """

    insn: int
    cycles: tuple[int, ...] = (1,)
    traps: float = 0
    branch: bool = False
    jumps: float = 0
    access: str = ""

    @property
    def size(self) -> int:
        """Size in bytes."""
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
        Signals of RVFI except `valid`.
    flushed : bool
        Whether an operation was abandoned after the previous retirement. RVFI does not report such an operation.
    branch, exception_return : bool
    """

    rvfi: dict[str, int]
    flushed: bool
    branch: bool
    exception_return: bool


@dataclass(frozen=True)
class Cycle:
    """A clock cycle.

    Parameters
    ----------
    mode : PrivilegeMode
        Privilege mode of the core.
    retired : sequence of Retirement
        Instructions that RVFI reports, in program order. This core retires at most one instruction in a cycle.
    """

    mode: PrivilegeMode
    retired: Sequence[Retirement]


class CoreModel:
    """A core that executes a random program until each cycle of each instruction has been interrupted.

    Interrupts are masked in the first instruction of the handler and in its MRET, so these two are not interrupted. The
    core starts in the handler, in machine mode. The handler may be interrupted, and may cause exceptions.

    Parameters
    ----------
    random : Random
    lag : int
        Latency of RVFI relative to `Cycle.mode`, in cycles. With 0 the mode changes in the cycle in which the
        previous instruction retires.
    reports_traps : bool
        Whether RVFI reports an instruction that causes an exception.
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
        """Return the cycles from reset on."""
        cycles = list(self._execute())
        nothing: list[Retirement | None] = [None] * self._lag
        modes = [mode for mode, _ in cycles] + [cycles[-1][0]] * self._lag
        retired = nothing + [retirement for _, retirement in cycles]
        return [Cycle(mode, [row] if row else []) for mode, row in zip(modes, retired, strict=True)]

    def _execute(self) -> Iterable[tuple[PrivilegeMode, Retirement | None]]:
        """Yield the mode after each cycle, and the instruction that retires in the cycle."""
        random = self._random
        remaining = self._interruptible()
        pc, mode = _HANDLER, PrivilegeMode.MACHINE
        returns = [(_PROGRAM, PrivilegeMode.USER)]
        intr = flushed = False
        while remaining:
            instruction = self._memory[pc]
            cycles = random.choice(instruction.cycles)
            traps = random.random() < instruction.traps
            interrupted = [age for age in range(cycles) if (pc, age) in remaining and random.random() < _INTERRUPTS]
            yield from [(mode, None)] * (interrupted[0] if interrupted else cycles - 1)
            if interrupted:
                remaining.remove((pc, interrupted[0]))
                returns.append((pc, mode))
                target = (_HANDLER, PrivilegeMode.MACHINE)
            elif traps:
                returns.append((pc + instruction.size, mode))
                target = (_HANDLER, PrivilegeMode.MACHINE)
            elif instruction is _MRET:
                target = returns.pop()
            else:
                target = (_PROGRAM if random.random() < instruction.jumps else pc + instruction.size, mode)
            if interrupted or (traps and not self._reports_traps):
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
        """Return each cycle in which an instruction may be interrupted: its address, and the cycle from 0."""
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
