"""The `spurtle` command: one function for each verb, and what only that verb needs is imported inside it."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from spurtle.config import CONFIGS, SPUConfig

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
    parser.add_argument("file", metavar="FILE", help="bytes of a Profiling Buffer; - for standard input")
    parser.add_argument("--json", action="store_true", help="one JSON object a record, instead of one line a packet")


def _decode(options: argparse.Namespace) -> int:
    from . import decode, packet_text, records_json

    data = _read(options.file)
    if not options.json:
        for packet in decode.packets(data):
            print(packet_text.line(data, packet))
    count, problems = 0, 0
    for record in decode.records(data):
        count += 1
        if options.json:
            print(json.dumps(records_json.to_json(record)))
        for problem in record.problems:
            problems += 1
            print(f"spurtle: offset {problem.offset:#x}: {problem.message}", file=sys.stderr)
    if problems == 0:
        return 0
    sys.stdout.flush()
    print(f"spurtle: {problems} problems in {count} records", file=sys.stderr)
    return _NOT_ALL_GOOD


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
        from .engine import RecordEngine

        encoded = RecordEngine(config).encode(samples)
    else:
        encoded = [records.encode(config, sample) for sample in samples]
    write_whole(options.output, b"".join(encoded))
    return 0


_FEATURES = {
    **{f"FEAT_SPE_{name}": name.lower() for name in ("ERnd", "EFT", "FnE", "FDS", "PBT", "CRR", "FPF", "SME")},
    **{f"FEAT_{name}": name.lower() for name in ("MOPS", "GCS", "NV2", "SVE", "RME")},
    "FEAT_MTE2": "mte",
}
"""Names of fields of `SPUConfig`, by the architecture's."""


def _configs_arguments(_: argparse.ArgumentParser) -> None:
    pass


def _configs(_: argparse.Namespace) -> int:
    for config in CONFIGS.values():
        print(f"{config.name}")
        for line in _about(config):
            print(f"    {line}")
    return 0


def _about(config: SPUConfig) -> Iterator[str]:
    layout = config.layout
    size = (
        f"at most {layout.max_size} bytes, multiples of {layout.align}" if layout.packed else f"{layout.max_size} bytes"
    )
    yield f"FEAT_SPE version (PMSVer) {config.version:d}, records of {size}"
    yield " ".join(name for name, field in _FEATURES.items() if getattr(config, field)) or "no optional feature"
    yield f"lanes {config.ops_per_cycle}, slots {config.slots}"
    alternate = f", alternate clock {config.altclk.name}" if config.altclk else ""
    yield f"{config.bus_bytes * 8}-bit bus, {config.counter_bits}-bit counters{alternate}"
    source = f"{8 * config.data_source_bytes}-bit data source" if config.data_source_bytes else "no data source"
    yield f"events {' '.join(str(event) for event in sorted(config.events))}; {source}"


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
    parser.add_argument("-o", "--output", metavar="DIR", default="build/verilog", help="default: build/verilog")


def _verilog(options: argparse.Namespace) -> int:
    from spurtle import regmap, verilog

    from .files import write_whole

    for name in options.config or CONFIGS:
        config = CONFIGS[name]
        design = verilog.spu(config)
        folder = Path(options.output, name)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {folder}: {error.strerror}") from error
        path = folder / f"{design.module}.v"
        for suffix, text in ((".svd", regmap.svd(config)), (".h", regmap.header(config)), (".v", design.text)):
            write_whole(path.with_suffix(suffix), text.encode())
        print(f"{design.module}: {len(design.ports)} ports, {design.cells} cells: {path}")
    return 0


def _profile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", choices=CONFIGS, default="neoverse_n1", help="default: neoverse_n1")
    parser.add_argument(
        "--interval",
        metavar="N",
        default="768",
        help="operations between samples, a multiple of 256; one more passes at each. Default: 768, as 769 is a prime, "
        "which few loops have for their length",
    )
    parser.add_argument(
        "--jitter", action="store_true", help="put each sample off by a random number of operations below 256"
    )
    parser.add_argument("--seed", metavar="N", help="for other random numbers, from 1 to 2**32 - 1; with --jitter")
    parser.add_argument(
        "--filter",
        metavar="TERMS",
        action="append",
        default=[],
        help="which samples become records: terms of perf's arm_spe event, with commas in between, such as "
        "load_filter,min_latency=20. branch_filter, load_filter, store_filter, event_filter=BITS, min_latency=CYCLES "
        "and, where the configuration has them, simd_filter, float_filter, a _mask of each type, "
        "inv_event_filter=BITS, inv_data_src_filter=BITS, discard; may be repeated",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="perf.data",
        help="data for Linux perf, with the raw buffer beside it in FILE.spe; default: perf.data",
    )
    parser.add_argument("--check", action="store_true", help="compare every record with the Python reference")
    parser.add_argument("program", metavar="PROGRAM", help="a static AArch64 Linux executable")
    parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="its arguments")


def _profile(options: argparse.Namespace) -> int:
    if not options.interval.isdecimal() or not 256 <= int(options.interval) < 1 << 32 or int(options.interval) % 256:
        raise UserError(f"--interval must be a multiple of 256 from 256 to 2**32 - 256, not {options.interval}")
    if options.seed is not None and not options.jitter:
        raise UserError("--seed must come with --jitter: without it no random number is used")
    if options.seed is not None and (not options.seed.isdecimal() or not 1 <= int(options.seed) < 1 << 32):
        raise UserError(f"--seed must be a number from 1 to 2**32 - 1, not {options.seed}")

    from .profile import Options, profile

    return profile(
        Options(
            config=CONFIGS[options.config],
            program=options.program,
            arguments=options.arguments,
            interval=int(options.interval) // 256,
            jitter=options.jitter,
            seed=None if options.seed is None else int(options.seed),
            filters=options.filter,
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
    ("verilog", "write Verilog, CMSIS-SVD and C header of configurations", _verilog_arguments, _verilog),
    ("profile", "run a program and profile it on the SPU", _profile_arguments, _profile),
    ("decode", "show the records of a Profiling Buffer", _decode_arguments, _decode),
    ("encode", "write records from the facts that `decode --json` shows", _encode_arguments, _encode),
)
"""Name, help, what defines its arguments and what runs it."""
