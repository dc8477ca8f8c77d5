"""Choice of the front end that executes a program: Unicorn or QEMU."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spurtle.support.arguments import check_type
from spurtle.support.errors import UserError

from ..qemu.cpus import CPU_WITH_SVE, DEFAULT_VECTOR_LENGTH
from .names import file_name

if TYPE_CHECKING:
    from ..emulator.front_end import FrontEnd

__all__ = ["EMULATORS", "Emulation", "add_emulation_arguments", "parse_emulation"]

EMULATORS = ("auto", "qemu", "unicorn")
_LENGTHS = ", ".join(map(str, [*CPU_WITH_SVE][:-1])) + f" or {max(CPU_WITH_SVE)}"


@dataclass(frozen=True, kw_only=True)
class Emulation:
    """Front end that executes a program.

    Parameters
    ----------
    emulator : str
        `qemu`, `unicorn`, or `auto`: QEMU 10 or later if it is found, otherwise Unicorn for a static program and an
        older QEMU for a dynamically linked one.
    qemu : str or None
        Path of `qemu-aarch64`. None for the one that is found. Not with `unicorn`.
    sysroot : str or None
        Folder with the libraries of a dynamically linked program. Not with `unicorn`.
    follow : bool
        Profile the processes that the program starts, too. Not with `unicorn`.
    vector_length : int or None
        Maximum length of SVE vectors in bits: 128, 256 or 512. None for 128. Not with `unicorn`, and not with a QEMU
        before 9.1.

    Raises
    ------
    TypeError
        If an argument is of another type.
    ValueError
        If `emulator` is unknown, or an option is given that it does not have.
    """

    emulator: str = "auto"
    qemu: str | None = None
    sysroot: str | None = None
    follow: bool = False
    vector_length: int | None = None

    def __post_init__(self) -> None:
        check_type("follow", self.follow, bool)
        if self.emulator not in EMULATORS:
            raise ValueError(f"emulator must be {', '.join(EMULATORS[:-1])} or {EMULATORS[-1]}, not {self.emulator!r}")
        if self.emulator == "unicorn" and self.needs_qemu:
            raise ValueError("qemu, sysroot, follow and vector_length must not be set with the emulator unicorn")
        if self.vector_length not in (None, *CPU_WITH_SVE):
            raise ValueError(f"vector_length must be {_LENGTHS}, not {self.vector_length!r}")

    @property
    def needs_qemu(self) -> bool:
        """Whether an option requires QEMU."""
        values = self.qemu, self.sysroot, self.vector_length
        return self.emulator == "qemu" or self.follow or any(value is not None for value in values)

    @property
    def inputs(self) -> list[str]:
        """Files that the user has named."""
        from ..qemu.find import named_qemu

        named = None if self.emulator == "unicorn" else named_qemu(self.qemu)
        return [named] if named else []

    def program(self, path: str | Path, arguments: Sequence[str]) -> "FrontEnd":
        """Return the front end with the program.

        Raises
        ------
        UserError
            If the program cannot be executed, or the emulator is not installed.
        """
        # Imported here because the command line needs only the options, and the emulator takes long to load.
        from ..emulator.elf import read_headers
        from ..qemu.find import INSTALL, find_qemu

        qemu = None if self.emulator == "unicorn" else find_qemu(self.qemu)
        if self.needs_qemu and qemu is None:
            raise UserError(f"no QEMU was found that accepts plugins: {INSTALL}")
        # Unicorn executes files without the permission to execute them, too.
        preferred = qemu is not None and qemu.exact and os.access(path, os.X_OK)
        if qemu is not None and (self.needs_qemu or preferred or read_headers(path).interpreter is not None):
            from ..qemu.program import QemuProgram

            return QemuProgram(
                qemu, path, arguments,
                sysroot=self.sysroot or "", follow=self.follow, vector_length=self.vector_length,
            )  # fmt: skip
        from ..emulator.program import Program

        return Program(path, arguments)


def add_emulation_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options for `parse_emulation`."""
    parser.add_argument(
        "--emulator",
        choices=EMULATORS,
        default=EMULATORS[0],
        help="emulator that runs the program; default: QEMU 10 or later if it is found, else Unicorn for a static "
        "program and an older QEMU for a dynamically linked one",
    )
    parser.add_argument(
        "--qemu",
        metavar="PATH",
        type=file_name,
        help="qemu-aarch64 that accepts plugins; default: SPURTLE_QEMU, that of make qemu, or the one in PATH",
    )
    parser.add_argument(
        "--sysroot",
        metavar="DIR",
        type=file_name,
        help="folder with the libraries of a dynamically linked program; with QEMU",
    )
    parser.add_argument(
        "--follow", action="store_true", help="profile the processes that the program starts, too; with QEMU"
    )
    parser.add_argument(
        "--vector-length",
        metavar="BITS",
        help=f"maximum length of SVE vectors: {_LENGTHS}; with QEMU 9.1 or later; default: {DEFAULT_VECTOR_LENGTH}",
    )


def parse_emulation(options: argparse.Namespace) -> Emulation:
    """Return the front end that the options of `add_emulation_arguments` select.

    Raises
    ------
    UserError
        If they exclude each other.
    """
    if options.emulator == "unicorn":
        for name in ("qemu", "sysroot", "follow", "vector_length"):
            if getattr(options, name):
                raise UserError(
                    f"--{name.replace('_', '-')} must not come with --emulator unicorn: it is an option of QEMU"
                )
    length = options.vector_length
    if length is not None and length not in map(str, CPU_WITH_SVE):
        raise UserError(f"--vector-length must be {_LENGTHS}, not {length}")
    return Emulation(
        emulator=options.emulator, qemu=options.qemu, sysroot=options.sysroot, follow=options.follow,
        vector_length=length and int(length),
    )  # fmt: skip
