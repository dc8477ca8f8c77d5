"""Command `python -m campaign.mutants`: inserts faults into the code, one at a time, and runs the fast tier on each."""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

from spurtle.support.errors import UserError
from spurtle.support.numerals import counted
from tests.support.seeds import SEED

from .draw import draw
from .fault_list import listed_mutants
from .faults import Mutant
from .report import Difference, Effect, MutantResult, MutantState, Report, publish, table
from .trial import Trial, commit_of

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "build" / "mutants"
PAGE = ROOT / "docs" / "verification.md"

_T = TypeVar("_T", Difference, MutantResult)

MIN_CAUGHT_SHARE = 0.9
"""Minimum share of the mutants that the fast tier must catch. Equivalent mutants do not count."""


class Campaign:
    """A run over mutants, on all cores. Each result is written to the report immediately.

    Parameters
    ----------
    trial : Trial
    report : Report
        Results of an earlier run. Mutants with a result are not tried again.
    output : Path
        Path of the report.
    """

    def __init__(self, trial: Trial, report: Report, output: Path):
        self._trial = trial
        self._report = report
        self._output = output

    def compare(self, mutants: Sequence[Mutant]) -> list[Mutant]:
        """Compare the mutants with the code; return those that are not illegal."""
        differences = self._report.differences
        unknown = [mutant for mutant in mutants if mutant not in differences]
        if unknown:
            self._trial.prepare()
        self._run_all("compared", unknown, self._trial.compare, differences)
        return [mutant for mutant in mutants if differences[mutant].effect is not Effect.ILLEGAL]

    def test(self, mutants: Sequence[Mutant]) -> None:
        """Run the fast tier on the mutants, and the full tier on those that it does not catch."""
        results, tests = self._report.results, self._report.tests
        for tier, before in (("fast", None), ("full", MutantState.OPEN)):
            ready = [mutant for mutant in mutants if (results[mutant].state if mutant in results else None) is before]
            if ready and tier not in self._report.passed:
                print(f"running the {tier} tier without a fault", file=sys.stderr, flush=True)
                self._trial.check(mutants, tier)
                self._report.passed.append(tier)
            self._run_all(
                f"{tier} tier",
                ready,
                lambda mutant, tier=tier: self._trial.test(mutant, tier, tests.get(mutant, "")),
                results,
            )

    def _run_all(
        self, done: str, mutants: Sequence[Mutant], work: Callable[[Mutant], _T], found: dict[Mutant, _T]
    ) -> None:
        """Call `work` on each mutant, and print and save its results."""
        started = time.monotonic()
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            futures = {pool.submit(work, mutant): mutant for mutant in mutants}
            try:
                for count, future in enumerate(as_completed(futures), 1):
                    mutant = futures[future]
                    found[mutant] = future.result()
                    self._report.save(self._output)
                    minutes = (time.monotonic() - started) / 60
                    line = f"[{done} {count}/{len(mutants)}, {minutes:.0f} min] {mutant}: {found[mutant]}"
                    print(line, file=sys.stderr, flush=True)
            except BaseException:
                # The pool waits for its threads, and the threads for their programs.
                self._trial.end()
                pool.shutdown(cancel_futures=True)
                raise


def run(options: argparse.Namespace) -> int:
    """Run the campaign with the options of the command; return the exit status."""
    trial = Trial(ROOT, OUTPUT)
    report = Report(options.seed, commit_of(ROOT, clean=options.publish), trial.code, trial.tree)
    output = OUTPUT / "report.json"
    report.resume(output)
    for mutant, reason in listed_mutants(ROOT, "equivalent").items():
        report.differences[mutant] = Difference(Effect.EQUIVALENT, reason)
    print(f"{counted(options.count, 'mutant')} drawn with seed {options.seed}", file=sys.stderr, flush=True)
    campaign = Campaign(trial, report, output)
    named = list(listed_mutants(ROOT, "named"))
    if illegal := set(named) - set(campaign.compare(named)):
        raise UserError(f"campaign/faults.toml has a mutant that cannot be elaborated: {illegal.pop()}")
    chosen = list(dict.fromkeys([*named, *draw(ROOT, options.count, options.seed, campaign.compare)]))
    mutants = [mutant for mutant in chosen if report.differences[mutant].effect is Effect.DIFFERENT]
    campaign.test(mutants)

    caught = [mutant for mutant in mutants if report.results[mutant].state is MutantState.CAUGHT]
    for mutant in mutants:
        if mutant not in caught:
            print(f"{report.results[mutant].state}: {mutant}")
    print(table(chosen, report))
    print(
        f"the fast tier catches {len(caught)} of {counted(len(mutants), 'mutant')}; report: {output.relative_to(ROOT)}"
    )
    if options.publish:
        publish(PAGE, chosen, report)
    return 0 if len(caught) >= MIN_CAUGHT_SHARE * len(mutants) else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        Exit status: 0 if the fast tier catches enough mutants, 1 if it does not, 2 if no mutant could be tried, 130
        after an interrupt.
    """
    parser = argparse.ArgumentParser(
        prog="python -m campaign.mutants", description="Insert faults into the code and run the fast tier on each."
    )
    parser.add_argument("--count", type=_number, default=60, metavar="N", help="mutants to draw; default: 60")
    parser.add_argument(
        "--seed", type=_number, default=SEED, metavar="N", help="seed of the draw; default: the seed of the release"
    )
    parser.add_argument("--publish", action="store_true", help=f"write the tables of docs/{PAGE.name}")
    options = parser.parse_args(arguments)
    try:
        return run(options)
    except UserError as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("mutants: interrupted; the next run continues from here", file=sys.stderr)
        return 130


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, not {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
