"""A static AArch64 Linux program, run instruction by instruction: each one that retires becomes an operation."""

# Ref: DDI0487 M.a, D17.6.3 to D17.6.5 (what is recorded of branches, accesses and conditional operations).

import signal
import threading
from array import array
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import unicorn
from unicorn import arm64_const as regs
from unicorn.unicorn import Uc, UcError

from .classify import FACT, Instruction, UnsupportedError, classify, condition_holds
from .errors import UserError
from .loader import build_stack, read_image
from .syscalls import Kernel
from .timed import OPERATION

__all__ = ["Program"]

_LONGEST_BLOCK = 512  # instructions that the emulator translates as one
_NOWHERE = 0xFFFF_FFFF_F000
_NO_ACCESS = (1 << 56) - 1
_EXCP_SWI = 2
_EXCEPTIONS = {1: "undefined instruction", 7: "breakpoint"}
_ARGUMENTS = [getattr(regs, f"UC_ARM64_REG_X{index}") for index in range(6)]
_HOLDS = [[int(condition_holds(condition, flags << 28)) for flags in range(16)] for condition in range(16)]
_ACCESSES = {
    unicorn.UC_MEM_READ_UNMAPPED: "read from",
    unicorn.UC_MEM_READ_PROT: "read from",
    unicorn.UC_MEM_WRITE_UNMAPPED: "write to",
    unicorn.UC_MEM_WRITE_PROT: "write to",
    unicorn.UC_MEM_FETCH_UNMAPPED: "jump to",
    unicorn.UC_MEM_FETCH_PROT: "jump to",
}


@contextmanager
def _interruptible(uc: Uc) -> Generator[None, None, None]:
    """Have SIGINT stop the emulator first: Python cannot raise through it, and what a hook was noting would be lost."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    interrupts: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        interrupts.append(number)
        uc.emu_stop()

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if interrupts:
        raise KeyboardInterrupt


class Program:
    """A loaded program. `run` executes it, once.

    Parameters
    ----------
    path : str or Path
        A static AArch64 Linux executable; position independent or not.
    arguments : sequence of str
        argv[1:]. The environment is empty.
    seed : int
        Of AT_RANDOM and getrandom: two runs with the same seed, arguments, files and input are the same.

    Attributes
    ----------
    path : Path
        Absolute.
    argv : tuple of str
    image : loader.Image
        Entry, executable mappings and functions.
    instructions : dict of int to Instruction
        By PC, of each instruction that was met so far: it has every operation that `run` has given.

    Raises
    ------
    UserError
        If the file cannot be run here.
    """

    def __init__(self, path: str | Path, arguments: Sequence[str] = (), *, seed: int = 0) -> None:
        self.path = Path(path).absolute()
        self.argv = (str(path), *arguments)
        self.image = read_image(path)
        self.instructions: dict[int, Instruction] = {}
        self._uc = uc = Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        uc.ctl_set_cpu_model(regs.UC_CPU_ARM64_MAX)
        uc.reg_write(regs.UC_ARM64_REG_CPACR_EL1, 0b11 << 20)  # FPEN: no trap of Advanced SIMD and floating point
        self.image.load(uc)
        build_stack(uc, self.image, self.argv, seed)
        end = max(segment.end for segment in self.image.segments)
        self._kernel = Kernel(uc, path=self.path, end=end, now=self._now, seed=seed)

        # By instruction word of the executable segments.
        self._code_start = min(mapping.start for mapping in self.image.mappings)
        words = max(mapping.start + mapping.length for mapping in self.image.mappings) - self._code_start >> 2
        self._facts = np.zeros(words, np.uint32)
        self._traffic = np.zeros(words, np.uint32)

        # Why the emulator stopped: a block that it has never run, enough operations, a fault.
        self._fresh = 0
        self._full = False
        self._fault = ""

        # What the hooks saw, until `_collect` makes operations of it.
        self._retired = 0
        self._pending = 0
        self._threshold = 0
        self._blocks = array("Q")  # start << 16 | bytes
        self._accesses = array("Q")  # address << 8 | bytes
        self._conditions = array("B")
        self._held: int | None = None  # length of `_accesses` before an irregular access that has not ended
        self._prepared: set[int] = set()
        self._watched: set[tuple[int, Callable[..., None]]] = set()
        uc.hook_add(unicorn.UC_HOOK_BLOCK, self._on_block)
        uc.hook_add(unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE, self._on_access)
        uc.hook_add(unicorn.UC_HOOK_INTR, self._on_exception)
        uc.hook_add(unicorn.UC_HOOK_MEM_INVALID, self._on_fault)

    @property
    def exit_status(self) -> int | None:
        """Of the program, 128 + signal if it killed itself; None while it has not ended."""
        return self._kernel.exit_status

    def symbol(self, address: int) -> str:
        """Where `address` is, as `function+0xoffset`; the bare address in a stripped program."""
        functions = self.image.functions
        index = bisect_right(functions, address, key=lambda function: function[0]) - 1
        if index < 0:
            return f"0x{address:x}"
        start, name = functions[index]
        return f"{name}+0x{address - start:x}"

    def run(self, limit: int = 65536) -> Iterator[np.ndarray]:
        """Run the program and give what retires, in program order.

        Parameters
        ----------
        limit : int
            Most operations in one array; at least 1024.

        Yields
        ------
        numpy.ndarray
            Of OPERATION. Every operation of the program is in exactly one of them; they share no memory.

        Raises
        ------
        UserError
            If the program crashes, or meets an instruction that the models do not know.
        """
        self._threshold = limit - _LONGEST_BLOCK
        pc = self.image.entry
        try:
            while self.exit_status is None:
                pc = self._emulate(pc)
                if self._fresh:
                    self._prepare(self._fresh)
                elif self._pending:
                    yield self._collect(pc)
        finally:
            self._kernel.close()

    def _now(self) -> int:
        """Nanoseconds since the start: one for each instruction."""
        return self._retired + self._pending

    def _emulate(self, pc: int) -> int:
        """Run from `pc` until something has to be done outside of the hooks; the PC of the next instruction."""
        self._fresh, self._full = 0, False
        try:
            with _interruptible(self._uc):
                self._uc.emu_start(pc, _NOWHERE)
        except UcError as error:
            self._fault = self._fault or str(error)
        pc = self._uc.reg_read(regs.UC_ARM64_REG_PC)
        if not (self._fresh or self._full or self._fault or self.exit_status is not None):
            self._fault = "it waits for an interrupt"
        if self._fault:
            raise UserError(f"{self.path.name} crashed at PC 0x{pc:x} ({self.symbol(pc)}): {self._fault}")
        return pc

    def _prepare(self, block: int) -> None:
        """Classify the instructions of a block before it runs for the first time, and watch those that need it."""
        start, size = block >> 16, block & 0xFFFF
        watched = len(self._watched)
        words = np.frombuffer(self._uc.mem_read(start, size), "<u4").tolist()
        for pc, word in zip(range(start, start + size, 4), words, strict=True):
            if pc in self.instructions:
                continue
            try:
                instruction = classify(word)
            except UnsupportedError as error:
                raise UserError(
                    f"{self.path.name} has an unsupported instruction at {self.symbol(pc)}: {error}"
                ) from None
            self.instructions[pc] = instruction
            index = pc - self._code_start >> 2
            always = FACT["retired"] | (0 if instruction.facts & FACT["conditional"] else FACT["taken"])
            self._facts[index] = instruction.facts | always
            self._traffic[index] = instruction.traffic
            if instruction.condition is not None:
                self._watch(pc, self._on_condition)
            if instruction.irregular:
                self._watch(pc, self._on_irregular)
                self._watch(pc + 4, self._on_irregular)
        if len(self._watched) != watched:
            self._uc.ctl_remove_cache(start, start + size + 4)
        self._prepared.add(block)

    def _watch(self, pc: int, hook: Callable[[Uc, int, int, Any], None]) -> None:
        if (pc, hook) not in self._watched:
            self._watched.add((pc, hook))
            self._uc.hook_add(unicorn.UC_HOOK_CODE, hook, begin=pc, end=pc)

    # Hooks: called a million times a second, so they only note what they see.

    def _on_block(self, uc: Uc, address: int, size: int, _: Any) -> None:
        block = address << 16 | size
        if block not in self._prepared:
            self._fresh = block
            uc.emu_stop()
        elif self._pending > self._threshold and self._held is None:
            self._full = True
            uc.emu_stop()
        else:
            self._pending += size >> 2
            self._blocks.append(block)

    def _on_access(self, _uc: Uc, _kind: int, address: int, size: int, _value: int, _: Any) -> None:
        self._accesses.append(address << 8 | size)

    def _on_condition(self, uc: Uc, address: int, _size: int, _: Any) -> None:
        condition = self.instructions[address].condition or 0
        self._conditions.append(_HOLDS[condition][uc.reg_read(regs.UC_ARM64_REG_NZCV) >> 28])

    def _on_irregular(self, _uc: Uc, address: int, _size: int, _: Any) -> None:
        """At an irregular access, and after it: what was seen in between becomes one access, or none."""
        if self._held is not None:
            seen = self._accesses[self._held :]
            del self._accesses[self._held :]
            lowest = min(seen) >> 8 if seen else _NO_ACCESS
            self._accesses.append(lowest << 8 | self.instructions[address - 4].traffic)
            self._held = None
        if address in self.instructions and self.instructions[address].irregular:
            self._held = len(self._accesses)

    def _on_exception(self, uc: Uc, number: int, _: Any) -> None:
        if number == _EXCP_SWI:
            result = self._kernel.call(uc.reg_read(regs.UC_ARM64_REG_X8), tuple(map(uc.reg_read, _ARGUMENTS)))
            uc.reg_write(regs.UC_ARM64_REG_X0, result % 2**64)
            if self.exit_status is not None:
                uc.emu_stop()
        else:
            self._fault = _EXCEPTIONS.get(number, f"exception {number}")
            uc.emu_stop()

    def _on_fault(self, _uc: Uc, kind: int, address: int, size: int, _value: int, _: Any) -> bool:
        self._fault = f"{_ACCESSES.get(kind, 'access to')} 0x{address:x} ({size} bytes), where that is not allowed"
        return False

    def _collect(self, next_pc: int) -> np.ndarray:
        """Operations from what the hooks saw; `next_pc` follows the last one."""
        blocks = np.frombuffer(self._blocks, np.uint64).astype(np.int64)
        start, length = blocks >> 16, (blocks & 0xFFFF) >> 2
        end = np.cumsum(length)
        pc = np.repeat(start - 4 * (end - length), length) + np.arange(0, 4 * end[-1], 4)
        index = pc - self._code_start >> 2
        facts = self._facts[index]
        operations = np.zeros(len(pc), OPERATION)
        operations["pc"] = pc

        # A branch ends its block.
        last = end - 1
        following = np.append(start[1:], next_pc)
        branch = facts[last] & FACT["branch"] != 0
        operations["target"][last] = np.where(branch, following, 0)
        taken = branch & (following != pc[last] + 4)
        facts[last] |= taken * np.uint32(FACT["taken"])

        selects = np.flatnonzero(facts & (FACT["conditional"] | FACT["branch"]) == FACT["conditional"])
        facts[selects] |= np.frombuffer(self._conditions, np.uint8) * np.uint32(FACT["taken"])

        # The emulator sees a wide access in pieces, lowest first: `traffic` says which of them belong together.
        accesses = np.frombuffer(self._accesses, np.uint64)
        sizes = (accesses & np.uint64(0xFF)).astype(np.int64)
        pieces = np.cumsum(sizes) - sizes
        traffic = self._traffic[index].astype(np.int64)
        memory = np.flatnonzero(traffic)
        wanted = np.cumsum(traffic[memory]) - traffic[memory]
        first = np.searchsorted(pieces, wanted)
        if sizes.sum() != traffic.sum() or not np.array_equal(pieces[first], wanted):
            raise RuntimeError("the emulator's accesses do not match the instructions'")
        address = accesses[first] >> np.uint64(8)
        accessed = address != _NO_ACCESS
        operations["va"][memory] = address * accessed
        facts[memory] |= accessed * np.uint32(FACT["va_valid"])
        operations["facts"] = facts

        self._retired += len(operations)
        self._pending = 0
        self._blocks, self._accesses, self._conditions = array("Q"), array("Q"), array("B")
        return operations
