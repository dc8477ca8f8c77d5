"""The `spurtle` command: one function for each verb.

Modules that only one verb needs are imported inside its function, to keep the start fast.
"""

import argparse
import json
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from signal import SIGINT
from typing import Any, NoReturn

from spurtle.config import CONFIGS, NO_SHELL, SHELLS, SPUConfig
from spurtle.support import streams
from spurtle.support.errors import PROFILE_FAILED, SIGNAL_STATUS, UserError
from spurtle.support.files import STANDARD_INPUT
from spurtle.support.numerals import decimal_argument
from spurtle.support.version import __version__

from .profile import add_operations_arguments, add_profile_arguments, run_operations, run_profile_verb
from .report_options import add_report_arguments
from .signals import Terminated, removing_files

__all__ = ["build_parser", "main"]

_INVALID_INPUT = 1
_USER_ERROR = 2
_OWN_PACKAGES = ("spurtle", "spurtle_sim")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    0: success; 1: a part of the input is invalid; 2: the input cannot be used, or the output cannot be written; 128 +
    signal: ended by SIGINT, SIGTERM or SIGHUP. `profile` returns the exit status of the program, 128 + signal if a
    signal ended it, and 125 if it failed itself.
    """
    streams.open_closed()
    words = sys.argv[1:] if arguments is None else arguments
    failed = PROFILE_FAILED if words[:1] == ["profile"] else _USER_ERROR
    try:
        with removing_files():
            status = _run(words)
        if (failure := streams.flush()) is not None:
            raise failure
    except UserError as error:
        status = _report(str(error), failed)
    except BrokenPipeError:  # the reader of standard output has exited
        status = failed if failed == PROFILE_FAILED else _INVALID_INPUT
    except OSError as error:  # of standard output: errors of files are UserErrors
        status = _report(f"cannot write standard output: {error.strerror}", failed)
    except Terminated as signal:
        status = SIGNAL_STATUS + signal.number
    except KeyboardInterrupt:
        status = SIGNAL_STATUS + SIGINT
    except Exception as error:
        status = _report(_absent_package(words, error) or _own_error(error), failed)
    streams.flush()
    return status


def _absent_package(words: Sequence[str], error: Exception) -> str:
    """Return the sentence for a package of another project that is not installed; empty for other errors."""
    if not isinstance(error, ModuleNotFoundError) or (error.name or "").partition(".")[0] in ("", *_OWN_PACKAGES):
        return ""
    needed = f"{words[0]} needs the package {error.name}, which is not installed"
    extra = "report" if words[0] == "report" else "trace" if error.name == "pyarrow" else "profile"
    return f"{needed}: install the extra `{extra}` (pip install 'spurtle[{extra}]')"


def _own_error(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    source = f"{Path(frame.filename).name}, line {frame.lineno}"
    return f"internal error, please report it: {source}: {error!r}"


def _report(sentence: str, status: int) -> int:
    """Print a sentence and return `status`. Control characters, which a quoted name may have, are escaped."""
    plain = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in sentence)
    streams.print_stderr(f"spurtle: {plain}")
    return status


def build_parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser of the command, and the parser of each verb by its name."""
    parser = _Parser(prog="spurtle", description="An Arm Statistical Profiling Unit (FEAT_SPE) and its tools.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    subparsers = parser.add_subparsers(metavar="VERB", required=True)
    verbs: dict[str, argparse.ArgumentParser] = {}
    for name, help_, add_arguments, run in _VERBS:
        verbs[name] = subparsers.add_parser(name, help=help_, description=f"{help_[:1].upper()}{help_[1:]}.")
        add_arguments(verbs[name])
        verbs[name].set_defaults(run=run)
    return parser, verbs


def _run(arguments: Sequence[str]) -> int:
    parser, _ = build_parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as shown:  # --help, --version
        return int(shown.code or 0)
    return options.run(options)


class _Parser(argparse.ArgumentParser):
    """Parser that reports invalid arguments in one sentence, like all other errors."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)

    def print_help(self, file: Any = None) -> None:
        print(self.format_help(), end="", file=file)  # the method of argparse ignores errors


class _Version(argparse.Action):
    """Action of --version. The action of argparse ignores errors of standard output."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(f"spurtle {__version__}")
        parser.exit()


def _decode_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="contents of a Profiling Buffer, or a perf.data file; - for standard input"
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object for each record instead of one line for each packet"
    )


def _decode(options: argparse.Namespace) -> int:
    from .show import show

    return 0 if show(_read(options.file), as_json=options.json) else _INVALID_INPUT


def _encode_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="IN.jsonl", nargs="?", default="-", help="one JSON object in each line; default: standard input"
    )
    parser.add_argument("--config", choices=CONFIGS, required=True, help="configuration that writes the records")
    parser.add_argument(
        "--engine", choices=("reference", "rtl"), required=True, help="encoder: the Python reference model or the RTL"
    )
    parser.add_argument(
        "-o", "--output", metavar="OUT.bin", required=True, help="output for the records: a file, a FIFO or a device"
    )


def _encode(options: argparse.Namespace) -> int:
    from spurtle.support.files import check_stream, write_stream

    from .. import encode
    from ..model.operation import Sample
    from ..records.json_sample import from_json

    check_stream(options.output, [options.file])
    config = CONFIGS[options.config]
    samples: list[Sample] = []
    for number, value in _json_lines(_read(options.file)):
        try:
            samples.append(from_json(config, value))
        except UserError as error:
            raise UserError(f"line {number}: {error}") from error
    if options.engine == "rtl":
        from ..cosim.record_path import CompiledRecordPath

        encoded = b"".join(CompiledRecordPath(config).encode(samples))
    else:
        encoded = encode(config, samples)
    write_stream(options.output, encoded)
    return 0


def _configs_arguments(_: argparse.ArgumentParser) -> None:
    pass


def _configs(_: argparse.Namespace) -> int:
    from .summary import side_by_side

    table = side_by_side()
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print("LUT4 and MHz are the last measurements: docs/bench.md.")
    return 0


def _registers_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", choices=CONFIGS, required=True, help="configuration of the registers")


def _registers(options: argparse.Namespace) -> int:
    from spurtle.export import regmap

    config = CONFIGS[options.config]
    for register in config.accessors:
        print(f"{register.name} ({register.assembler_name}): {register.purpose}")
        implemented = regmap.implemented(config, register)
        value = register.unpack(regmap.reset(config, register))
        for name, field in regmap.fields(config, register).items():
            title = f"{name} = {getattr(value, name)}" if register.read_only else name
            values = ", ".join(f"{value:#x} {value.name}" for value in regmap.values(config, register, field))
            meaning = f"{field.doc} {values}." if values else field.doc
            print(f"    {regmap.bit_ranges(implemented & field.mask):<12} {title:<15} {meaning}")
    return 0


def _verilog_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", choices=CONFIGS, action="append", help="configuration to write; may be repeated; default: all"
    )
    parser.add_argument(
        "--set",
        metavar="FIELD=VALUE",
        action="append",
        default=[],
        help="change a field of the one --config, such as slots=2, events=0-7,11 or version=SPE_V1P2; may be repeated; "
        "name=NAME is required. The result is not tested",
    )
    parser.add_argument(
        "--shell",
        choices=(NO_SHELL, *SHELLS),
        default=NO_SHELL,
        help="bus shell: AXI4 for the Profiling Buffer, axi4-apb with APB4 for the registers; default: none",
    )
    parser.add_argument(
        "--outstanding",
        metavar="N",
        type=decimal_argument,
        help="number of outstanding records of the shell, 1 to 8; default: the choice of the configuration",
    )
    parser.add_argument("--reset", choices=("sync", "async"), default="sync", help="type of the reset; default: sync")
    parser.add_argument(
        "--reset-level", choices=("high", "low"), default="high", help="active level of the reset; default: high"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", default="build/verilog", help="output folder; default: build/verilog"
    )


def _verilog(options: argparse.Namespace) -> int:
    from spurtle.export import collateral, verilog
    from spurtle.export.ports import Reset
    from spurtle.support.files import check_folder, write_folder

    if options.outstanding is not None and options.shell == NO_SHELL:
        raise UserError("--outstanding must come with --shell; without a shell it is set with --set outstanding=N")
    reset = Reset(asynchronous=options.reset == "async", active_low=options.reset_level == "low")
    check_folder(options.output)
    for config in _chosen(options.config or [*CONFIGS], options.set):
        try:
            design = verilog.spu(config, shell=options.shell, outstanding=options.outstanding, reset=reset)
        except (ValueError, RuntimeError) as error:
            raise UserError(str(error)) from error
        except OSError as error:  # of a temporary folder
            raise UserError(f"cannot run Yosys: {error}") from error
        folder = Path(options.output, config.name)
        write_folder(folder, collateral.files(config, design))
        print(f"{design.module}: {len(design.ports)} ports, {design.cells} cells: {folder / f'{design.module}.v'}")
    return 0


def _chosen(names: Sequence[str], settings: Sequence[str]) -> list[SPUConfig]:
    """Return the named configurations, or the one configuration with the settings."""
    if not settings:
        return [CONFIGS[name] for name in names]
    if len(names) != 1:
        raise UserError("--set must come with one --config, which it changes")
    from spurtle.config.parse import vary

    try:
        config = vary(CONFIGS[names[0]], settings)
    except ValueError as error:
        raise UserError(f"--set: {error}") from error
    streams.print_stderr(f"spurtle: warning: {config.name} is not a named configuration: it has not been tested")
    return [config]


def _report_on(options: argparse.Namespace) -> int:
    from .report import run_report

    return run_report(options)


def _json_lines(data: bytes) -> Iterator[tuple[int, object]]:
    """Yield number and value of each line that is not blank."""
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UserError(f"line {number}: must be a JSON object: {error}") from error


def _read(name: str) -> bytes:
    """Return the content of a file, or of standard input for `-`."""
    try:
        return sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror}") from error


_VERBS = (
    ("configs", "list the named configurations", _configs_arguments, _configs),
    ("registers", "list the System registers of a configuration", _registers_arguments, _registers),
    ("verilog", "write Verilog and accompanying files of configurations", _verilog_arguments, _verilog),
    ("profile", "run a program and profile it on the SPU", add_profile_arguments, run_profile_verb),
    ("operations", "convert operations in CSV for `profile --ops`", add_operations_arguments, run_operations),
    ("report", "report on a profile: lines, latencies, memory and branches", add_report_arguments, _report_on),
    ("decode", "show the records of a Profiling Buffer or a perf.data file", _decode_arguments, _decode),
    ("encode", "write records from the JSON objects that `decode --json` prints", _encode_arguments, _encode),
)
"""Name, help text, function that adds the arguments, function that runs the verb."""
