"""Contents of a report on one profile: sentences about the recording, findings, and tables."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from spurtle.support.numerals import counted

from ..perf.format import AuxFlag
from . import analysis
from .findings import Finding, findings
from .losses import LostTime, lost_time
from .reading import Profile
from .tables import ReportTable

__all__ = ["ReportContents", "build_highlights", "build_report"]

_LOSSES = {
    AuxFlag.TRUNCATED: "a full buffer lost data",
    AuxFlag.COLLISION: "samples were lost in collisions",
}


@dataclass(frozen=True)
class ReportContents:
    """Report on a profile.

    Parameters
    ----------
    title : str
    recording : list of str
        Sentences about the recording: event, samples, losses, what could not be read.
    findings : list of Finding
        Problems, the most expensive first.
    tables : list of ReportTable
    """

    title: str
    recording: list[str]
    findings: list[Finding]
    tables: list[ReportTable]

    def table(self, key: str) -> ReportTable:
        """Return the table with this key."""
        return next(table for table in self.tables if table.key == key)


def build_report(profile: Profile, *, limit: int | None = 12) -> ReportContents:
    """Return the report on a profile. Tables have at most `limit` rows; None for all of them."""
    functions, lines = analysis.functions(profile, limit), analysis.source_lines(profile, limit)
    tables = [
        functions,
        lines,
        analysis.latencies(profile, functions),
        analysis.latencies(profile, lines),
        analysis.memory_levels(profile),
        analysis.variables(profile, limit),
        analysis.cache_lines(profile),
        analysis.branches(profile, limit),
    ]
    return ReportContents(
        _title(profile), [*_recording(profile)], findings(profile), [each for each in tables if each.rows]
    )


def build_highlights(profile: Profile) -> ReportContents:
    """Return a report with the findings and the table of lines alone."""
    return ReportContents(_title(profile), [], findings(profile), [analysis.source_lines(profile)])


def _title(profile: Profile) -> str:
    command = " ".join(profile.contents.sideband.command)
    return f"{profile.path}: {command}" if command else profile.path


def _recording(profile: Profile) -> Iterator[str]:
    settings = profile.settings
    if settings is not None:
        interval = f"Interval {counted(settings.period, 'operation')}" if settings.period else "Unknown interval"
        jitter = "with jitter" if profile.jitter else "without jitter"
        terms = ",".join(profile.filters)
        yield f"{interval}, {jitter}, {f'filter {terms}' if terms else 'no filter'}: {counted(len(profile), 'sample')}."
        if not profile.jitter:
            yield (
                "Without jitter, shares are wrong for a loop whose length has a common factor with the interval plus "
                "one, whatever the confidence intervals say."
            )
    else:
        yield f"{counted(len(profile), 'sample')}."
    yield from _costs(profile)
    if profile.exact is not None and profile.filters:
        yield "The exact counts are of all operations, and the samples are filtered: no exact shares."
    elif profile.exact is None:
        yield f"{profile.exact_problem[:1].upper()}{profile.exact_problem[1:]}."
    problems = int((profile.columns.problems > 0).sum())
    if profile.skipped or problems:
        yield f"Incomplete records that were skipped: {profile.skipped:,}. Records with problems: {problems:,}."
    yield from (f"{problem[:1].upper()}{problem[1:]}." for problem in (*profile.contents.problems, *profile.notes))


def _costs(profile: Profile) -> Iterator[str]:
    """Yield what filters, collisions and a full buffer cost."""
    if profile.exact is not None:
        totals = profile.exact.totals
        selected = totals["sampled"] + totals["collided"]
        interrupts = counted(totals["interrupts"], "interrupt")
        yield (
            f"Of {counted(selected, 'selected operation')} {totals['collided']:,} collided "
            f"({_percent(totals['collided'], selected)}). {totals['passed']:,} passed the filter "
            f"({_percent(totals['passed'], totals['sampled'])} of the sampled). {interrupts}."
        )
    flags = Counter(flag for record in profile.contents.aux for flag in _LOSSES if record.flags & flag)
    for flag, count in sorted(flags.items()):
        yield f"In {count:,} of {counted(len(profile.contents.aux), 'AUX record')} {_LOSSES[flag]}."
    if AuxFlag.TRUNCATED in flags:
        yield _lost(lost_time(profile))
    if profile.contents.sideband.lost:
        yield f"The kernel lost {counted(profile.contents.sideband.lost, 'record')} of other events."


def _lost(found: LostTime | None) -> str:
    if found is None:
        return "The file does not have the times of samples and losses, so the cost of full buffers is unknown."
    if not found.losses:
        return "No samples follow these losses, so their cost is unknown."
    return (
        f"Full buffers cost at most {found.lost / 1e6:,.3f} ms of {found.total / 1e6:,.3f} ms "
        f"({_percent(found.lost, found.total)}): the time from the last sample before each loss to the first one after "
        "it, on all CPUs."
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "0 %"
