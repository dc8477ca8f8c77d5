"""The verbs `profile` and `operations` of the command."""

import argparse
from typing import Any

from spurtle.config import CONFIGS
from spurtle.support.errors import PROFILE_FAILED, UserError
from spurtle.support.numerals import counted
from spurtle.support.streams import print_stderr

from ..profile.emulation import EMULATORS, add_emulation_arguments, parse_emulation
from ..profile.extra import add_extra_arguments, parse_extra
from ..profile.names import file_name
from ..profile.options import add_sampling_arguments, parse_sampling
from ..profile.window import add_window_arguments, parse_window
from ..timing.core import DEFAULT_CORE, NAMED_CORES

__all__ = ["add_operations_arguments", "add_profile_arguments", "run_operations", "run_profile_verb"]


def add_profile_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `spurtle profile`."""
    parser.add_argument("--config", choices=CONFIGS, default="neoverse_n1", help="configuration; default: neoverse_n1")
    parser.add_argument(
        "--core",
        metavar="CORE",
        type=file_name,
        help=f"core whose operations are sampled: {', '.join(NAMED_CORES)}, or a core file; default: {DEFAULT_CORE}",
    )
    add_sampling_arguments(parser)
    add_window_arguments(parser)
    add_emulation_arguments(parser)
    parser.add_argument("--check", action="store_true", help="compare every record with the Python reference model")
    parser.add_argument(
        "--fast-forward",
        action="store_true",
        help="simulate only the cycles around each sample; the files are the same",
    )
    add_extra_arguments(parser)
    ops = parser.add_argument(
        "--ops",
        metavar="FILE",
        type=file_name,
        action=_Ops,
        help="profile the operations of a file instead of a program",
    )
    program = parser.add_argument("program", metavar="PROGRAM", help="AArch64 Linux executable; static without QEMU")
    setattr(ops, "program", program)
    arguments = parser.add_argument(
        "arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="arguments of the program"
    )
    arguments.required = False  # else the message about a missing PROGRAM names ARGS as well
    parser.epilog = (
        "The exit status is the program's, or 128 + signal if a signal ended it. The records until then are "
        f"written. The exit status is {PROFILE_FAILED} if spurtle itself failed."
    )


def run_profile_verb(options: argparse.Namespace) -> int:
    """Profile a program, or the operations of a file. Return the exit status."""
    config = CONFIGS[options.config]
    sampling = parse_sampling(config, options)

    if options.fast_forward and options.waves:
        raise UserError("--fast-forward must not come with --waves, which shows the complete simulation")
    if options.ops:
        for name in ("program", "core", "save_ops", "qemu", "sysroot", "follow", "vector_length", "emulator"):
            if getattr(options, name) not in (None, False, EMULATORS[0]):
                shown = "PROGRAM" if name == "program" else f"--{name.replace('_', '-')}"
                raise UserError(f"{shown} must not come with --ops, whose operations have been timed")
        from ..profile.replay import replay

        return replay(
            config, options.ops,
            sampling=sampling, window=parse_window(options), output=options.output, extra=parse_extra(options),
            check=options.check, fast_forward=options.fast_forward,
        )  # fmt: skip
    from .. import run_profile

    return run_profile(
        config, options.program, options.arguments,
        sampling=sampling, core=options.core or DEFAULT_CORE, window=parse_window(options),
        output=options.output, extra=parse_extra(options), check=options.check, fast_forward=options.fast_forward,
        emulation=parse_emulation(options),
    )  # fmt: skip


class _Ops(argparse.Action):
    """Option without which PROGRAM is required."""

    program: argparse.Action

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, values)
        self.program.required = False


def add_operations_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `spurtle operations`."""
    parser.add_argument("file", metavar="IN.csv", type=file_name, help="operations with their times, one in each line")
    parser.add_argument(
        "--program", metavar="PROGRAM", type=file_name, help="executable of the operations, in which perf finds names"
    )
    parser.add_argument("-o", "--output", metavar="OUT.parquet", required=True, help="file for `profile --ops`")


def run_operations(options: argparse.Namespace) -> int:
    """Convert operations in CSV. Return the exit status."""
    from ..profile.saved import convert

    count = convert(options.file, options.output, options.program)
    print_stderr(f"{counted(count, 'operation')}: {options.output}")
    return 0
