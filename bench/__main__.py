"""Command `python -m bench`: measures area and clock frequency, prints tables and writes `build/bench/bench.json`."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from docs import tables
from spurtle.support.errors import UserError

from .blocks import BLOCKS, Block, select
from .devices import DEVICES, Device
from .flow import Circuit, FlowError, Measurement, measure
from .harness import Harness, elaborate
from .publish import publish
from .report import FigureRow, pair_table, path_table, rows, table, write

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "build" / "bench"
WORKERS = min(2, os.cpu_count() or 1)
"""Circuits measured in parallel. A nextpnr process has one thread and needs a gigabyte, so two fit any machine."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        Exit status: 0 after success, 1 if a tool failed, 2 if an argument is invalid or a file cannot be written.
    """
    # A pipe has no width; the tables need 120 columns.
    console = Console(width=None if sys.stdout.isatty() else 120)
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        options = _parse(arguments)
        blocks = select(options.names)
        devices = [DEVICES[options.device]] if options.device else list(DEVICES.values())
        published: list[FigureRow] = []
        for device in devices:
            measured = _measure_all(console, blocks, device, options)
            figures = rows(device, measured)
            console.print(table(device, figures, measured), path_table(device, measured))
            if options.pairs:
                console.print(pair_table(device, measured, options.pairs))
            published += figures
        write(OUTPUT / "bench.json", published)
        if options.publish:
            publish(published)
            tables.main()  # docs/reference/configurations.md shows these figures
    except (UserError, FlowError) as error:
        errors.print(f"bench: {error}", markup=False)
        return 2 if isinstance(error, UserError) else 1
    console.print(f"The figures are in {(OUTPUT / 'bench.json').relative_to(ROOT)}", highlight=False)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure area and clock frequency of each block next to the plain circuits that bound it.",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"blocks to measure, of {', '.join(dict.fromkeys(b.name for b in BLOCKS))}; default: all",
    )
    parser.add_argument("--device", choices=list(DEVICES), help="FPGA; default: both")
    parser.add_argument(
        "--seeds", type=int, default=3, metavar="N", help="placements of each circuit, for the median; default: 3"
    )
    parser.add_argument(
        "--publish",
        action="store_true",
        help="write the figures into docs/bench.md and for `spurtle configs`",
    )
    parser.add_argument(
        "--pairs",
        type=int,
        default=0,
        metavar="N",
        help="list the N slowest pairs of registers of each circuit; repeats its slowest placement",
    )
    parser.add_argument("--fresh", action="store_true", help="measure unchanged circuits again")
    options = parser.parse_args(arguments)
    if options.seeds < 1:
        raise UserError(f"--seeds must be at least 1, not {options.seeds}")
    if options.pairs < 0:
        raise UserError(f"--pairs must be at least 0, not {options.pairs}")
    return options


def _measure_all(
    console: Console, blocks: list[Block], device: Device, options: argparse.Namespace
) -> dict[Block, Measurement]:
    """Measure all blocks on one device; return the measurements in the order of `blocks`.

    Raises
    ------
    FlowError
        If a tool failed, after all other blocks have been measured.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"{device.name}: elaborating", total=len(blocks))

        def note(circuit: Circuit) -> Callable[[str], None]:
            return lambda step: progress.update(
                task, description=f"{device.name}: {circuit.name} ({circuit.config}), {step}"
            )

        def run(circuit: Circuit) -> Measurement:
            folder = OUTPUT / f"{circuit.name}-{circuit.config}-{device.name}"
            try:
                wanted = {"fresh": options.fresh, "pairs": options.pairs > 0}
                return measure(circuit, device, folder, options.seeds, note=note(circuit), **wanted)
            finally:
                progress.advance(task)

        # Amaranth is not thread-safe: elaborate in this thread, and run the tools in the pool.
        with ThreadPoolExecutor(WORKERS) as pool:
            futures = {block: pool.submit(run, _elaborate(block)) for block in blocks}
    failures: list[str] = []
    measured: dict[Block, Measurement] = {}
    for block, future in futures.items():
        try:
            measured[block] = future.result()
        except FlowError as failure:
            failures.append(str(failure))
    if failures:
        raise FlowError("; ".join(failures))
    return measured


def _elaborate(block: Block) -> Circuit:
    return Circuit(block.name, block.config, elaborate(block.build()), elaborate(Harness(block.build())))


if __name__ == "__main__":
    sys.exit(main())
