"""Emulation of a static AArch64 Linux program. Each retired instruction is recorded as an operation.

Ref: DDI0487 M.a, D17.6.3 to D17.6.5 (information recorded for branches, accesses and conditional operations).
"""

import errno
import struct
from collections.abc import Generator, Sequence
from pathlib import Path
from signal import Signals
from typing import Any

import numpy as np
import unicorn
from numpy.typing import NDArray
from unicorn import arm64_const as regs
from unicorn.unicorn import Uc, UcError

from spurtle.support.errors import SIGNAL_STATUS
from spurtle.support.numerals import counted

from ..native.library import Library
from ..perf.events import mmap_event
from ..perf.process import PAGE_BYTES, PID, Mapping, Process
from ..trace.dtypes import OPERATION
from ..trace.instruction import FACT, Instruction
from .a64 import UnsupportedInstructionError, classify
from .front_end import QEMU_HINT, Batch
from .functions import function_at
from .hooks import Hooks, StopReason, library
from .loader import build_stack, read_image
from .syscalls import Kernel
from .words import WORD, word_row

__all__ = ["Program"]

_NEVER_REACHED = 0xFFFF_FFFF_F000  # address at which Unicorn would stop
_CHUNK = 256  # bytes of code that are read at once. Most basic blocks are shorter
_EXCP_SWI = 2  # exception number of SVC in QEMU
# Other exception numbers of QEMU.
_EXCEPTIONS = {1: ("undefined instruction", Signals.SIGILL), 7: ("breakpoint", Signals.SIGTRAP)}
_ARGUMENTS = [getattr(regs, f"UC_ARM64_REG_X{index}") for index in range(6)]

_ACCESSES = {
    unicorn.UC_MEM_READ_UNMAPPED: "read from",
    unicorn.UC_MEM_READ_PROT: "read from",
    unicorn.UC_MEM_WRITE_UNMAPPED: "write to",
    unicorn.UC_MEM_WRITE_PROT: "write to",
    unicorn.UC_MEM_FETCH_UNMAPPED: "jump to",
    unicorn.UC_MEM_FETCH_PROT: "jump to",
}


class Program:
    """Loaded program. `run` executes it once.

    Parameters
    ----------
    path : str or Path
        Static AArch64 Linux executable. It can be position independent.
    arguments : sequence of str
        argv[1:]. The environment is empty.
    seed : int
        Seed of AT_RANDOM and getrandom. Runs with the same seed, path, arguments, files and input are identical.

    Attributes
    ----------
    path : Path
        Absolute path.
    argv : tuple of str
    image : loader.Image
        Entry point, mappings and functions.
    instructions : dict of int to Instruction
        Instructions by PC. They include every operation that `run` has yielded, and can include instructions that have
        not been executed.
    failure : str
        Sentence that describes the crash of the program. Empty without a crash.
    runtime_mappings : list of (int, Mapping)
        Mappings that the program has created, in order. Each has the number of operations that retired before it. The
        complete heap is listed again when it grows.

    Raises
    ------
    UserError
        If the file cannot be emulated.
    """

    def __init__(self, path: str | Path, arguments: Sequence[str] = (), *, seed: int = 0) -> None:
        self.path = Path(path).absolute()
        self.argv = (str(path), *arguments)
        self.image = read_image(path)
        self.instructions: dict[int, Instruction] = {}
        self._uc = uc = Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
        uc.ctl_set_cpu_model(regs.UC_CPU_ARM64_MAX)
        uc.reg_write(regs.UC_ARM64_REG_CPACR_EL1, 0b11 << 20)  # FPEN: Advanced SIMD and floating point are not trapped
        self.image.load(uc)
        build_stack(uc, self.image, self.argv, seed)
        end = max(segment.end for segment in self.image.segments)
        self.runtime_mappings: list[tuple[int, Mapping]] = []
        self._kernel = Kernel(uc, path=self.path, end=end, now=self._now, seed=seed, on_map=self._on_map)

        code = [mapping for mapping in self.image.mappings if mapping.executable]
        self._code_start = min(mapping.start for mapping in code)
        code_end = max(mapping.end for mapping in code)
        self._words = np.zeros((code_end - self._code_start) // 4, WORD)
        self._retired = 0  # operations that `run` has yielded
        self.failure = ""
        self._fatal_signal: Signals | None = None  # signal of a crash or of `kill`
        self._fault: tuple[str, Signals] | None = None  # reason and signal, for the instruction at PC
        self._in_kernel = False
        self._unsupported = False  # the program has reached an unsupported instruction
        uc.hook_add(unicorn.UC_HOOK_INTR, self._on_exception)
        uc.hook_add(unicorn.UC_HOOK_MEM_INVALID, self._on_fault)

    @property
    def hint(self) -> str:
        """Sentence about QEMU, if the program has used what is not supported. Otherwise empty."""
        return QEMU_HINT if self._unsupported or self._kernel.reported else ""

    @property
    def grade(self) -> str:
        """Sentence that names the front end, and what it does not record."""
        return "emulator: Unicorn, for static programs with one thread; outcomes are exact"

    @property
    def process(self) -> Process:
        """The process, with its mappings at the start."""
        return Process(self.path, self.argv, PID, self.image.mappings, self.image.build_id)

    @property
    def exit_status(self) -> int | None:
        """Exit status as in a shell: 128 + signal after a fatal signal. None while the program runs."""
        return SIGNAL_STATUS + self._fatal_signal if self._fatal_signal else self._kernel.exit_status

    def libraries(self) -> list[Library]:
        """Return the library that `batches` loads."""
        return [library()]

    def kill(self, number: Signals) -> None:
        """End the program by a signal, after the current instruction. A signal handler can call this method.

        Raises
        ------
        InterruptedError
            If a system call is being emulated, because it could wait. `run` catches it.
        """
        if self.exit_status is None:
            self._fatal_signal = number
        self._uc.emu_stop()
        if self._in_kernel:
            raise InterruptedError(errno.EINTR, "")

    def symbol(self, address: int) -> str:
        """Return `address` as `function+0xoffset`, or as a number if the program is stripped."""
        return function_at(self.image.functions, address)

    def batches(self) -> Generator[Batch]:
        """Run the program as `run` does. A batch ends where the program makes a mapping."""
        passed, reported = 0, 0
        for operations in self.run():
            remaining = operations
            for retired, mapping in self.runtime_mappings[reported:]:
                reported += 1
                event = mmap_event(self.process, 0, mapping)
                yield Batch(operations=remaining[: retired - passed], events=[event])
                remaining = remaining[retired - passed :]
                passed = retired
            yield Batch(operations=remaining)
            passed += len(remaining)

    def run(self, limit: int = 65536) -> Generator[NDArray[np.void]]:
        """Run the program until it exits, crashes or is ended by a signal. Yield its operations in program order.

        Parameters
        ----------
        limit : int
            Maximum number of operations in an array; at least 1.

        Yields
        ------
        numpy.ndarray
            Rows of OPERATION. Every operation is in exactly one array. The arrays share no memory.

        Raises
        ------
        UserError
            If there is no C++ compiler.
        """
        # The hooks are created here and not in the constructor because they may have to be compiled.
        self._hooks = Hooks(self._uc, self._words, self._code_start)
        pc = self.image.entry
        try:
            while self.exit_status is None:
                operations = np.empty(limit, OPERATION)
                pc = self._record(pc, operations)
                count = self._hooks.count
                self._retired += count
                yield operations[:count]
        finally:
            self._kernel.close()

    def _on_map(self, start: int, length: int, protection: int, name: str) -> None:
        self.runtime_mappings.append((self._now(), Mapping(start, length, 0, protection, name)))

    def _now(self) -> int:
        """Return the nanoseconds since the start: one per instruction."""
        return self._retired + self._hooks.count

    def _record(self, pc: int, operations: NDArray[np.void]) -> int:
        """Run from `pc` until `operations` is full or the program ends. Return the PC of the next instruction."""
        self._hooks.record_to(operations)
        reason = StopReason.NONE
        while self.exit_status is None and reason is not StopReason.FULL:
            pc = self._emulate(pc)
            reason = self._hooks.take_stop_reason()
            if self._fault:
                self._crash(pc, *self._fault)
            elif reason is StopReason.UNCLASSIFIED:
                self._classify_from(pc)
            elif reason is StopReason.NONE and self.exit_status is None:  # Unicorn stops at WFI
                self._crash(pc, "the program waits for an interrupt", Signals.SIGILL)
        if self.exit_status is not None:
            self._hooks.finish(pc)
        self._hooks.check_traffic()
        return pc

    def _emulate(self, pc: int) -> int:
        """Run from `pc` until the emulator stops. Return the PC of the next instruction."""
        try:
            self._uc.emu_start(pc, _NEVER_REACHED)
        except UcError as error:
            self._fault = self._fault or (str(error), Signals.SIGILL)
        except InterruptedError:
            pass  # `kill` interrupted a system call
        return self._uc.reg_read(regs.UC_ARM64_REG_PC)

    def _crash(self, pc: int, reason: str, number: Signals) -> None:
        """End the program by signal `number`, which the instruction at `pc` causes."""
        self.failure = f"{self.path.name} crashed at PC 0x{pc:x} ({self.symbol(pc)}): {reason} ({number.name})"
        self._fatal_signal = number

    def _classify_from(self, pc: int) -> None:
        """Classify the instructions from `pc` to the next branch, before their first execution.

        Classification stops earlier after `_CHUNK` bytes, at the end of the page, and at an unsupported instruction.
        """
        if pc % 4:
            self._crash(pc, "PC is not a multiple of 4", Signals.SIGBUS)
            return
        rows: list[tuple[int, int, int, int, bool]] = []
        for (word,) in struct.iter_unpack("<I", self._uc.mem_read(pc, min(_CHUNK, PAGE_BYTES - pc % PAGE_BYTES))):
            address = pc + 4 * len(rows)
            try:
                instruction = classify(word)
            except UnsupportedInstructionError as error:
                if rows:
                    break  # the instruction may never be executed
                self._unsupported = True
                self._crash(pc, f"unsupported instruction: {error}", Signals.SIGILL)
                return
            self.instructions[address] = instruction
            rows.append(word_row(instruction))
            if instruction.facts & FACT["branch"]:
                break
        index = (pc - self._code_start) // 4
        self._words[index : index + len(rows)] = rows

    def _on_exception(self, uc: Uc, number: int, _: Any) -> None:
        if number == _EXCP_SWI:
            self._in_kernel = True
            try:
                result = self._kernel.call(uc.reg_read(regs.UC_ARM64_REG_X8), tuple(map(uc.reg_read, _ARGUMENTS)))
            finally:
                self._in_kernel = False
            uc.reg_write(regs.UC_ARM64_REG_X0, result % 2**64)
            if self.exit_status is not None:
                uc.emu_stop()
        else:
            self._fault = _EXCEPTIONS.get(number, (f"exception {number}", Signals.SIGILL))
            uc.emu_stop()

    def _on_fault(self, _uc: Uc, kind: int, address: int, size: int, _value: int, _: Any) -> bool:
        access = f"{_ACCESSES.get(kind, 'access to')} 0x{address:x} ({counted(size, 'byte')})"
        self._fault = f"{access} is not permitted", Signals.SIGSEGV
        return False
