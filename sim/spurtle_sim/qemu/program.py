"""Execution of an AArch64 Linux program by QEMU user mode. Each retired instruction is recorded as an operation."""

import os
import time
from collections.abc import Generator, Iterator, Sequence
from functools import cache
from pathlib import Path
from signal import Signals

import numpy as np

from spurtle.support.errors import SIGNAL_STATUS, UserError

from ..emulator.a64 import classify_every
from ..emulator.elf import read_headers, segment_mapping
from ..emulator.front_end import Batch
from ..emulator.functions import function_at, read_functions
from ..emulator.words import WORD, word_row
from ..native.library import Library
from ..perf.events import Comm, Mmap, TimedEvent
from ..perf.process import PID, Mapping, Process
from ..trace.instruction import Instruction, InstructionKind
from . import reader
from .cpus import CPU_WITH_SVE, CPU_WITHOUT_SVE, DEFAULT_VECTOR_LENGTH
from .find import Qemu
from .processes import Processes
from .reader import STACK_BYTES, Reader, Step, StepResult

__all__ = ["QemuProgram"]

# Bytes of the address space of the program. If it is reserved, the addresses that QEMU selects for mappings and stacks
# do not depend on what the threads of QEMU have mapped before.
_ADDRESS_SPACE = 1 << 46
_LIMIT = 65536  # operations in a batch
_WAIT = 0.0002  # seconds, if there is nothing to read
_CRASHES = {Signals.SIGSEGV, Signals.SIGBUS, Signals.SIGILL, Signals.SIGTRAP, Signals.SIGFPE}
_UNKNOWN = Instruction(InstructionKind.INTEGER)
"""Instruction that QEMU executes and that cannot be classified."""


class QemuProgram:
    """Program that QEMU executes once, by `batches`. Members are those of `emulator.front_end.FrontEnd`.

    Parameters
    ----------
    qemu : Qemu
    path : str or Path
        AArch64 Linux executable.
    arguments : sequence of str
        argv[1:]. The environment is that of this process.
    sysroot : str
        Folder in which QEMU looks for the files of the program first, such as its dynamic linker. Can be empty.
    follow : bool
        Whether the processes that the program starts are recorded.
    vector_length : int or None
        Maximum length of SVE vectors in bits: a key of `cpus.CPU_WITH_SVE`. None for the default. Only with registers.
    seed : int
        Seed of AT_RANDOM.

    Raises
    ------
    UserError
        If the file is not an AArch64 executable, its dynamic linker does not exist, or QEMU has no SVE.
    """

    def __init__(
        self,
        qemu: Qemu,
        path: str | Path,
        arguments: Sequence[str] = (),
        *,
        sysroot: str = "",
        follow: bool = False,
        vector_length: int | None = None,
        seed: int = 0,
    ) -> None:
        self.path = Path(path).absolute()
        self.argv = (str(path), *arguments)
        self.instructions: dict[int, Instruction] = {}
        self.failure = ""
        self.exit_status: int | None = None
        self._qemu = qemu
        self._sysroot = os.path.abspath(sysroot) if sysroot else ""  # noqa: PTH100, the text is a prefix
        self._follow = follow
        self._seed = seed
        self._child = 0
        self._signaled = False
        self._refused = False  # QEMU has ended, and executed no instruction
        self._changed: dict[int, Instruction] = {}
        self._code: list[Mapping] = []
        self._cpu = CPU_WITH_SVE[vector_length or DEFAULT_VECTOR_LENGTH] if qemu.exact else CPU_WITHOUT_SVE
        if vector_length is not None and not qemu.exact:
            raise UserError(f"{qemu.name} has no SVE and so no vector length: make qemu builds a version with SVE")
        if sysroot and not Path(sysroot).is_dir():
            raise UserError(f"the sysroot must be a folder, not {sysroot}")
        headers = read_headers(path)
        self._build_id = headers.build_id
        interpreter = headers.interpreter
        if not os.access(path, os.X_OK):
            raise UserError(f"{path} must be executable: chmod +x {path}")
        if interpreter and not any(os.access(name, os.R_OK) for name in (self._sysroot + interpreter, interpreter)):
            raise UserError(
                f"{path} needs the dynamic linker {interpreter}, which is not in {self._sysroot or '/'}: "
                "name a folder with the libraries of the program by --sysroot"
            )

    @property
    def hint(self) -> str:
        """Empty: no other front end supports more."""
        return ""

    @property
    def grade(self) -> str:
        """Sentence that names the front end, and what it does not record."""
        if self._qemu.exact:
            return f"emulator: {self._qemu.name}; outcomes are exact"
        return (
            f"emulator: {self._qemu.name}, without registers: conditional selects and compares are recorded as passed, "
            "DC ZVA without an address; make qemu builds a version with registers"
        )

    @property
    def process(self) -> Process:
        """The process. Its mappings are known when it runs."""
        return Process(self.path, self.argv, PID, (), self._build_id)

    def libraries(self) -> list[Library]:
        """Return the libraries that `batches` loads, and the plugin."""
        return [reader.library(), reader.plugin()]

    def kill(self, number: Signals) -> None:
        """Send a signal to the program, unless a terminal has sent it. A signal handler can call this method."""
        if self._child and self.exit_status is None and not reader.sent_by_terminal(number):
            os.kill(self._child, number)

    def batches(self) -> Generator[Batch]:
        """Run the program until it ends. Yield the operations of its threads as QEMU has executed them.

        Raises
        ------
        UserError
            If there is no C++ compiler, or QEMU cannot execute the program.
        """
        records = Reader(_LIMIT)
        command = self._command(records)
        records.configure(command, self._sysroot, follow=self._follow)
        processes = Processes(self.path, self._sysroot)
        self._child = reader.start([*command, "-0", self.argv[0], str(self.path), *self.argv[1:]])
        try:
            yield from self._read(records, processes)
        finally:
            if self.exit_status is None:
                os.kill(self._child, Signals.SIGKILL)
                os.waitpid(self._child, 0)
            self._child = 0
        number = (self.exit_status or 0) - SIGNAL_STATUS
        if number in _CRASHES:
            place = f" at PC 0x{records.crash:x} ({self._symbol(records.crash)})" if records.crash else ""
            self.failure = f"{self.path.name} crashed{place}: {Signals(number).name}"
        if not records.started or self._refused:
            raise UserError(f"{self._qemu.path} cannot execute {self.path}")
        if records.exhausted:
            raise UserError(f"{self.path.name} has more threads than can be recorded")

    def _command(self, records: Reader) -> list[str]:
        """Return the arguments of QEMU before the program."""
        plugin = str(reader.plugin().make()).replace(",", ",,")  # a comma separates the arguments of the option
        ring = f"/proc/{os.getpid()}/fd/{records.descriptor}"
        options = ["-cpu", self._cpu, "-seed", str(self._seed), "-s", str(STACK_BYTES), "-R", hex(_ADDRESS_SPACE)]
        sysroot = ["-L", self._sysroot] if self._sysroot else []
        return [self._qemu.path, *options, "-plugin", f"{plugin},ring={ring}", *sysroot]

    def _read(self, records: Reader, processes: Processes) -> Iterator[Batch]:
        ended = executed = False
        while True:
            report = records.step()
            executed = executed or len(report.operations) > 0
            thread = processes.number(report.thread)
            events: list[TimedEvent] = []
            if report.result is StepResult.EVENT:
                events = list(processes.events(report))
            elif report.result is StepResult.ENDED:
                events = list(processes.end(report))
            self._follow_code(events)
            if len(report.operations) or events:
                changed, self._changed = self._changed, {}
                yield Batch(operations=report.operations, thread=thread, changed=changed, events=events)
            if report.result is StepResult.UNCLASSIFIED:
                records.classify(self._classify(report))
            elif report.result is StepResult.IDLE:
                if ended:
                    self._refused = not executed and not self._signaled
                    return
                ended = self._wait(records)

    def _follow_code(self, events: Sequence[TimedEvent]) -> None:
        """Store the mappings with code of the first process, for the name of the function that crashes."""
        for event in events:
            if isinstance(event, Mmap) and event.pid == PID and event.mapping.executable:
                self._code.append(event.mapping)
            elif isinstance(event, Comm) and event.pid == PID and event.executed:
                self._code.clear()

    def _symbol(self, address: int) -> str:
        """Return an address in code as `function+0xoffset`, or `[file]+0xoffset` if the file is stripped."""
        mapping = next((each for each in reversed(self._code) if each.start <= address < each.end), None)
        if mapping is None or not Path(mapping.path).is_file():
            return function_at([], address)
        headers = read_headers(mapping.path)
        own = (segment_mapping(each, 0, mapping.path) for each in headers.loaded)
        base = next((mapping.start - each.start for each in own if each.executable), 0)
        functions = read_functions(headers.content, base) or [(base, f"[{Path(mapping.path).name}]")]
        return function_at(functions, address)

    def _wait(self, records: Reader) -> bool:
        """Wait for a moment. Return whether the program has ended."""
        process, status = os.waitpid(self._child, os.WNOHANG)
        if not process:
            time.sleep(_WAIT)
            return False
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        records.end(number)
        self._signaled = number != 0
        self.exit_status = SIGNAL_STATUS + number if number else os.WEXITSTATUS(status)
        return True

    def _classify(self, report: Step) -> np.ndarray:
        """Classify the instructions of a block. Return rows of WORD."""
        rows = []
        for index, word in enumerate(report.instructions()):
            pc = report.address + 4 * index
            instruction, row = _classified(word)
            if self.instructions.setdefault(pc, instruction) != instruction:
                self._changed[pc] = self.instructions[pc] = instruction
            rows.append(row)
        return np.array(rows, WORD)


@cache
def _classified(word: int) -> tuple[Instruction, tuple[int, int, int, int, bool]]:
    """Return the classification of an instruction, and its row of WORD."""
    instruction = classify_every(word) or _UNKNOWN
    return instruction, word_row(instruction)
