"""`python -m bench`: measure everything, show a table, write `build/bench/bench.json`."""

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
from .report import FigureRow, path_table, rows, table, write

__all__ = ["main"]

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "build" / "bench"
WORKERS = min(2, os.cpu_count() or 1)
"""nextpnr is one process with one thread and a gigabyte: two at a time suit any machine."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the benchmark. Returns the exit status: 0, 1 if a tool failed, 2 if the arguments name what is not there."""
    # A pipe has no width of its own; the tables need this much.
    console = Console(width=None if sys.stdout.isatty() else 120)
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        options = _parse(arguments)
        blocks = select(options.names)
        devices = [DEVICES[options.device]] if options.device else list(DEVICES.values())
        published: list[FigureRow] = []
        for device in devices:
            measured = _measure_all(console, blocks, device, options.seeds, options.fresh)
            figures = rows(device, measured)
            console.print(table(device, figures, measured), path_table(device, measured))
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
        prog="bench", description="Area and speed of each block of the SPU beside the bare circuits that bound it."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"all, or some of {', '.join(dict.fromkeys(b.name for b in BLOCKS))}"
    )
    parser.add_argument("--device", choices=list(DEVICES), help="one FPGA instead of both")
    parser.add_argument(
        "--seeds", type=int, default=3, metavar="N", help="placements of each circuit; the median counts (3)"
    )
    parser.add_argument(
        "--publish",
        action="store_true",
        help="keep the figures in docs/bench.md and for `spurtle configs`",
    )
    parser.add_argument("--fresh", action="store_true", help="measure again what has not changed")
    options = parser.parse_args(arguments)
    if options.seeds < 1:
        raise UserError(f"--seeds must be at least 1, not {options.seeds}")
    return options


def _measure_all(
    console: Console, blocks: list[Block], device: Device, seeds: int, fresh: bool
) -> dict[Block, Measurement]:
    """Every block on one device, in the order of `blocks`. Raises FlowError when all that could run has run."""
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
            return lambda what: progress.update(
                task, description=f"{device.name}: {circuit.name} ({circuit.config}), {what}"
            )

        def run(circuit: Circuit) -> Measurement:
            folder = OUTPUT / f"{circuit.name}-{circuit.config}-{device.name}"
            try:
                return measure(circuit, device, folder, seeds, fresh=fresh, note=note(circuit))
            finally:
                progress.advance(task)

        # Amaranth is not made for threads: elaborate here, run the tools there.
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
