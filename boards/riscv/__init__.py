"""Program of the soft core: the committed executable, with the memory image and the mappings for `perf`."""

from dataclasses import dataclass
from mmap import PROT_EXEC, PROT_READ
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from spurtle_sim.perf.process import PAGE_BYTES, Mapping, Process

__all__ = ["BASE", "PROGRAM", "SIZE", "SoftCoreProgram", "load"]

PROGRAM = Path(__file__).with_name("program.elf")
"""Path of the committed executable."""

BASE = 0x10000
"""Address of the block RAM for code, variables and stack, as in `program.ld`.

It is not zero because `perf` does not accept zero as an address.
"""

SIZE = 16 << 10
"""Size of the block RAM in bytes, as in `program.ld`."""


@dataclass(frozen=True)
class SoftCoreProgram:
    """An executable for the soft core.

    Parameters
    ----------
    path : Path
        Absolute path.
    memory : bytes
        Initial content of the SIZE bytes from BASE on. Execution starts at BASE.
    functions : dict of str to range
        Addresses of each function.
    mappings : tuple of Mapping
        Mappings of the executable segments.
    """

    path: Path
    memory: bytes
    functions: dict[str, range]
    mappings: tuple[Mapping, ...]

    def process(self, pid: int) -> Process:
        """Return the process with this PID, which CONTEXTIDR_EL1 contains, for `perf.events.process_events`."""
        return Process(path=self.path, argv=[self.path.name], pid=pid, mappings=self.mappings)


def load(path: Path = PROGRAM) -> SoftCoreProgram:
    """Read an executable that was linked with `program.ld`."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        memory = bytearray(SIZE)
        mappings: list[Mapping] = []
        for segment in elf.iter_segments("PT_LOAD"):
            start = segment["p_vaddr"]
            content = segment.data()
            memory[start - BASE : start - BASE + len(content)] = content
            if segment["p_flags"] & 1:
                skew = start % PAGE_BYTES
                length = -(-(skew + segment["p_memsz"]) // PAGE_BYTES) * PAGE_BYTES
                offset = segment["p_offset"] - skew
                mappings.append(Mapping(start - skew, length, offset, PROT_READ | PROT_EXEC, str(path.resolve())))
        table: Any = elf.get_section_by_name(".symtab")
        functions = {
            symbol.name: range(symbol["st_value"], symbol["st_value"] + symbol["st_size"])
            for symbol in table.iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC"
        }
    return SoftCoreProgram(path.resolve(), bytes(memory), functions, tuple(mappings))
