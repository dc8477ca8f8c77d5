"""Waveforms of the compiled SPU."""

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from spurtle.config import SPUConfig
from spurtle.support.arguments import check_range
from spurtle.support.errors import UserError

from ..native.compiler import compiler
from .compiled import GeneratedModel

__all__ = ["WaveFile", "can_compress", "waves_library"]

_FORMATS = {".fst": "fst", ".vcd": "vcd"}
_MAX = (1 << 63) - 1


@dataclass(frozen=True, kw_only=True)
class WaveFile:
    """File for the waveforms of some samples.

    Parameters
    ----------
    path : Path
        Its suffix is the format: `.fst` or `.vcd`.
    first, last : int
        Numbers of the first and the last sample, from 1.

    Raises
    ------
    UserError
        If the suffix is another one.
    ValueError
        If there is no such sample.
    """

    path: Path
    first: int
    last: int

    def __post_init__(self) -> None:
        if self.path.suffix not in _FORMATS:
            raise UserError(f"the name of a file of waveforms must end in .fst or .vcd, unlike {self.path}")
        check_range("first", self.first, 1, _MAX)
        check_range("last", self.last, self.first, _MAX)

    @property
    def format(self) -> str:
        """Format of the file: `fst` or `vcd`."""
        return _FORMATS[self.path.suffix]


def waves_library(config: SPUConfig, waves: WaveFile) -> GeneratedModel:
    """Return the library of the compiled SPU of a configuration that writes waveforms.

    Raises
    ------
    UserError
        If zlib and LZ4, with which FST files are compressed, are not installed.
    """
    found = waves.format
    if found == "fst" and not can_compress():
        raise UserError(
            "a file .fst needs the headers of zlib and LZ4, which are not installed: write .vcd, or install them "
            "(zlib1g-dev, liblz4-dev)"
        )
    return GeneratedModel(
        f"{config.module}_{found}", "spu.cpp", f"spu_with_{found}", config,
        options=(f"--trace-{found}",),
        runtime=(f"verilated_{found}_c",),
        libraries=("-lz", "-llz4") if found == "fst" else (),
    )  # fmt: skip


def can_compress() -> bool:
    """Return whether the compiler finds the libraries that the FST writer of Verilator needs."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "headers.cpp")
        source.write_text("#include <zlib.h>\n#include <lz4.h>\n")
        done = subprocess.run([*compiler(), "-fsyntax-only", source], capture_output=True, check=False)
    return done.returncode == 0
