"""Files of the profiled machine, where perf finds them: at their paths, and by their build IDs.

`perf record` copies the files that it profiled into the folder `.debug` of the user, and `perf archive` packs them for
another machine. Distributions install debug information by build ID.

Ref: Linux tools/perf/util/build-id.c, tools/perf/Documentation/perf-archive.txt.
"""

from collections.abc import Iterator
from pathlib import Path

from .symbols import ModuleFile, ProgramFile, read_module, read_program

__all__ = ["cached_files", "find_module", "find_program"]

_DEBUG = Path("/usr/lib/debug/.build-id")


def cached_files(build_id: bytes) -> Path:
    """Return the folder of the files with a build ID in perf's cache, or, as old versions of perf made it, the file."""
    return _numbered(Path.home() / ".debug" / ".build-id", build_id)


def find_program(path: Path, build_id: bytes) -> tuple[ProgramFile | None, str]:
    """Return the symbols of a program, or None and a sentence with the reason.

    Parameters
    ----------
    path : Path
        Path on the profiled machine.
    build_id : bytes
        Build ID of the profiled file. Empty if it is unknown: any file at the path is used.
    """
    found = read_program(path)
    problem = f"{path} cannot be read as an ELF file: its functions have no names"
    if found is not None and build_id and found.build_id and build_id != found.build_id:
        found = None
        problem = f"{path} is not the file that was profiled (other build ID): its symbols are not used"
    if found is None and build_id:
        found = next(filter(None, map(read_program, _copies(build_id))), None)
    if found is None:
        return None, problem
    if found.stripped and (number := build_id or found.build_id):
        separate = next(filter(None, map(read_program, _debug_files(number))), None)
        # The segments of a file with debug information alone have other sizes and offsets.
        found = separate._replace(segments=found.segments) if separate is not None else found
    return found, ""


def find_module(path: Path, build_id: bytes) -> ModuleFile | None:
    """Return the functions of a module of the kernel, or None. The build ID of the module must be known."""
    for each in (path, *_copies(build_id)) if build_id else ():
        found = read_module(each)
        if found is not None and found.build_id == build_id:
            return found
    return None


def _copies(build_id: bytes) -> Iterator[Path]:
    folder = cached_files(build_id)
    yield from (folder / "elf", folder)


def _debug_files(build_id: bytes) -> Iterator[Path]:
    installed = _numbered(_DEBUG, build_id)
    yield from (cached_files(build_id) / "debug", installed.with_name(f"{installed.name}.debug"))


def _numbered(folder: Path, build_id: bytes) -> Path:
    digits = build_id.hex()
    return folder / digits[:2] / digits[2:]
