"""The `spurtle` command: one function for each verb, and what only that verb needs is imported inside it."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from spurtle.config import CONFIGS, NO_SHELL, SHELLS, SPUConfig

from . import sampling
from .errors import UserError

__all__ = ["main"]

_NOT_ALL_GOOD = 1
_USER_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Exit status 0: all was good; 1: not all of the input was; 2: the input cannot be used."""
    parser = _Parser(prog="spurtle", description="An Arm Statistical Profiling Unit, and the tools around it.")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name, help_, arguments_of, run in _VERBS:
        verb = verbs.add_parser(name, help=help_, description=help_.capitalize() + ".")
        arguments_of(verb)
        verb.set_defaults(run=run)
    try:
        options = parser.parse_args(arguments)
        status = options.run(options)
        sys.stdout.flush()
    except UserError as error:
        print(f"spurtle: {error}", file=sys.stderr)
        return _USER_ERROR
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python would complain once more when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _NOT_ALL_GOOD
    return status


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the arguments in one sentence, as everything else here does."""

    def error(self, message: str) -> NoReturn:
        raise UserError(message)


def _decode_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="bytes of a Profiling Buffer, or a perf.data file; - for standard input"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a record, instead of one line a packet")


def _decode(options: argparse.Namespace) -> int:
    from .show import show

    return 0 if show(_read(options.file), as_json=options.json) else _NOT_ALL_GOOD


def _encode_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="IN.jsonl", nargs="?", default="-", help="one JSON object a line; default: standard input"
    )
    parser.add_argument("--config", choices=CONFIGS, required=True, help="the configuration whose records to write")
    parser.add_argument(
        "--engine", choices=("reference", "rtl"), required=True, help="who writes: the Python reference or the RTL"
    )
    parser.add_argument("-o", "--output", metavar="OUT.bin", required=True, help="where the records go")


def _encode(options: argparse.Namespace) -> int:
    from . import records_json
    from .files import write_whole
    from .reference import records

    config = CONFIGS[options.config]
    samples: list[records.Sample] = []
    for number, value in _json_lines(_read(options.file)):
        try:
            samples.append(records_json.from_json(config, value))
        except UserError as error:
            raise UserError(f"line {number}: {error}") from error
    if options.engine == "rtl":
        from .record_engine import RecordEngine

        encoded = RecordEngine(config).encode(samples)
    else:
        encoded = [records.encode(config, sample) for sample in samples]
    write_whole(options.output, b"".join(encoded))
    return 0


def _configs_arguments(_: argparse.ArgumentParser) -> None:
    pass


def _configs(_: argparse.Namespace) -> int:
    from .about import side_by_side

    table = side_by_side()
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print("LUT4 and MHz as last measured: docs/bench.md.")
    return 0


def _registers_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", choices=CONFIGS, required=True, help="the configuration whose registers to list")


def _registers(options: argparse.Namespace) -> int:
    from spurtle import regmap

    config = CONFIGS[options.config]
    for register in config.accessors:
        print(f"{register.name} ({register.assembler_name}): {register.purpose}")
        there = regmap.implemented(config, register)
        value = register.unpack(regmap.reset(config, register))
        for name, field in regmap.fields(config, register).items():
            title = f"{name} = {getattr(value, name)}" if register.read_only else name
            values = ", ".join(f"{value:#x} {value.name}" for value in regmap.values(config, register, field))
            meaning = f"{field.doc} {values}." if values else field.doc
            print(f"    {regmap.bit_ranges(there & field.mask):<12} {title:<15} {meaning}")
    return 0


def _verilog_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", choices=CONFIGS, action="append", help="a configuration to write; may be repeated; default: all"
    )
    parser.add_argument(
        "--set",
        metavar="FIELD=VALUE",
        action="append",
        default=[],
        help="another value of a field of the one --config, such as slots=2, events=0-7,11 or version=SPE_V1P2; may be "
        "repeated. Nobody has tested what comes of it",
    )
    parser.add_argument(
        "--shell",
        choices=(NO_SHELL, *SHELLS),
        default=NO_SHELL,
        help="around the SPU: its own ports; AXI4 for the Profiling Buffer; and APB4 for the registers. Default: none",
    )
    parser.add_argument(
        "--outstanding",
        metavar="N",
        type=int,
        default=1,
        help="bursts that AXI4 may have open: 1 (the default) tells of errors as faults of the record; more, as "
        "asynchronous External aborts",
    )
    parser.add_argument("--reset", choices=("sync", "async"), default="sync", help="default: sync")
    parser.add_argument("--reset-level", choices=("high", "low"), default="high", help="default: high")
    parser.add_argument("-o", "--output", metavar="DIR", default="build/verilog", help="default: build/verilog")


def _verilog(options: argparse.Namespace) -> int:
    from spurtle import collateral, verilog
    from spurtle.ports import Reset

    from .files import check_folder, write_folder

    if options.outstanding != 1 and options.shell == NO_SHELL:
        raise UserError("--outstanding must come with --shell: the SPU itself has no bus")
    reset = Reset(asynchronous=options.reset == "async", active_low=options.reset_level == "low")
    check_folder(options.output)
    for config in _chosen(options.config or [*CONFIGS], options.set):
        try:
            design = verilog.spu(config, shell=options.shell, outstanding=options.outstanding, reset=reset)
        except ValueError as error:
            raise UserError(str(error)) from error
        folder = Path(options.output, config.name)
        write_folder(folder, collateral.files(config, design))
        print(f"{design.module}: {len(design.ports)} ports, {design.cells} cells: {folder / f'{design.module}.v'}")
    return 0


def _chosen(names: Sequence[str], settings: Sequence[str]) -> list[SPUConfig]:
    """The named configurations, or the variation of one."""
    if not settings:
        return [CONFIGS[name] for name in names]
    if len(names) != 1:
        raise UserError("--set must come with one --config, which it is a variation of")
    from spurtle.variation import vary

    try:
        config = vary(CONFIGS[names[0]], settings)
    except ValueError as error:
        raise UserError(f"--set: {error}") from error
    print(
        f"spurtle: warning: {config.name} is not a named configuration: nothing of it has been tested", file=sys.stderr
    )
    return [config]


def _profile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", choices=CONFIGS, default="neoverse_n1", help="default: neoverse_n1")
    sampling.add_arguments(parser)
    parser.add_argument("--check", action="store_true", help="compare every record with the Python reference")
    parser.add_argument("program", metavar="PROGRAM", help="a static AArch64 Linux executable")
    parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="its arguments")


def _profile(options: argparse.Namespace) -> int:
    config = CONFIGS[options.config]
    wanted = sampling.parse(config, options)

    from .profile import Options, profile

    return profile(
        Options(
            config=config,
            sampling=wanted,
            program=options.program,
            arguments=options.arguments,
            output=options.output,
            check=options.check,
        )
    )


def _json_lines(data: bytes) -> Iterator[tuple[int, object]]:
    """Number and value of each line that is not blank."""
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise UserError(f"line {number}: must be a JSON object: {error}") from error


def _read(name: str) -> bytes:
    """A whole file, or standard input for `-`."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror}") from error


_VERBS = (
    ("configs", "list the named configurations", _configs_arguments, _configs),
    ("registers", "list the System registers of a configuration", _registers_arguments, _registers),
    ("verilog", "write Verilog of configurations, and what goes with it", _verilog_arguments, _verilog),
    ("profile", "run a program and profile it on the SPU", _profile_arguments, _profile),
    ("decode", "show the records of a Profiling Buffer or a perf.data file", _decode_arguments, _decode),
    ("encode", "write records from the facts that `decode --json` shows", _encode_arguments, _encode),
)
"""Name, help, what defines its arguments and what runs it."""
