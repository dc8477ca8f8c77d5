"""Reports and samples in formats of other programs: JSON, CSV, Parquet, folded stacks, speedscope."""

import csv
import io
import json
from typing import Any

import numpy as np

from .columns import ABSENT, Array
from .levels import LEVELS
from .reading import KINDS, Profile
from .statistics import Percentiles
from .summary import ReportContents
from .tables import printable, utf8

__all__ = ["FORMAT", "folded", "report_csv", "report_json", "sample_table", "samples_parquet", "speedscope"]

FORMAT = 1
"""Version of the JSON object. It changes if the meaning of a key changes or a key is removed."""


def report_json(contents: ReportContents) -> bytes:
    """Return a report as a JSON object."""
    tables = {table.key: table.objects() for table in contents.tables}
    content = {
        "format": FORMAT,
        "title": contents.title,
        "recording": contents.recording,
        "findings": [finding.object() for finding in contents.findings],
        **tables,
    }
    return _json(content, indent=1) + b"\n"


def report_csv(contents: ReportContents) -> bytes:
    """Return the table of lines as comma-separated values. A latency has three columns."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    lines, latencies = contents.table("lines"), contents.table("lines_latencies")
    keys = [column.key for column in lines.columns]
    parts = [(column.key, name) for column in latencies.columns[:-1] for name in Percentiles._fields]
    writer.writerow([*keys[:-1], *(f"{key}_{name}" for key, name in parts), keys[-1]])
    for counted, split in zip(lines.rows, latencies.objects(), strict=True):
        found = [split[key][name] if split[key] else None for key, name in parts]
        writer.writerow([*counted[:-1], *found, counted[-1]])
    return utf8(output.getvalue()).encode()


def sample_table(profile: Profile) -> dict[str, Array]:
    """Return the samples as columns. Values that a record does not contain are masked."""
    columns = profile.columns
    load = profile.kind == KINDS.index("load")
    function, functions = profile.functions
    line, lines = profile.lines
    variable, variables = profile.variables
    return {
        "buffer": columns.buffer,
        "timestamp": columns.timestamp,
        "context": columns.context,
        "pc": np.array([place.address for place in profile.places], np.uint64)[profile.place],
        "function": _texts(functions)[function],
        "line": _texts(lines)[line],
        "kind": np.array(KINDS, object)[profile.kind],
        "events": columns.events,
        "total": columns.total,
        "issue": columns.issue,
        "translation": columns.translation,
        "va": np.ma.masked_where(variable < 0, columns.va),
        "variable": np.ma.masked_where(variable < 0, _texts([*variables, ""])[variable]),
        "level": np.ma.masked_where(~load, np.array(LEVELS, object)[profile.level]),
        "source": np.ma.masked_where(columns.source == ABSENT, columns.source),
    }


def _texts(names: list[str]) -> Array:
    """Return names of a table."""
    return np.array([utf8(name) for name in names], object)


def samples_parquet(profile: Profile) -> bytes:
    """Return all samples as a Parquet file, for pandas, Polars and DuckDB."""
    import pyarrow
    from pyarrow import parquet

    arrow: Any = pyarrow
    arrays = {
        name: arrow.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values) if np.ma.isMA(values) else None)
        for name, values in sample_table(profile).items()
    }
    output = io.BytesIO()
    parquet.write_table(arrow.table(arrays), output)
    return output.getvalue()


def folded(profile: Profile) -> bytes:
    """Return a line `function;line samples` for each source line, for flamegraph.pl and its relatives."""
    index, names = profile.lines
    counts = np.bincount(index, minlength=len(names)).tolist()
    functions = _function_of_lines(profile)
    rows = sorted(printable(f"{functions[n]};{name.replace(';', ',')} {counts[n]}") for n, name in enumerate(names))
    return "".join(f"{row}\n" for row in rows).encode()


def speedscope(profile: Profile) -> bytes:
    """Return the samples as stacks of function and line for https://speedscope.app, weighted by count and by cycles."""
    index, names = profile.lines
    functions = _function_of_lines(profile)
    frames = [*dict.fromkeys(functions), *names]
    number = {name: position for position, name in enumerate(frames[: len(frames) - len(names)])}
    first = len(number)
    stacks = [[number[functions[n]], first + n] for n in range(len(names))]
    profiles = [
        {"type": "sampled", "name": name, "unit": "none", "startValue": 0, "endValue": int(sum(weights)),
         "samples": stacks, "weights": weights}
        for name, weights in (
            ("samples", np.bincount(index, minlength=len(names)).tolist()),
            ("cycles", np.bincount(index, profile.columns.total, minlength=len(names)).tolist()),
        )
    ]  # fmt: skip
    content = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": profile.path,
        "shared": {"frames": [{"name": name} for name in frames]},
        "profiles": profiles,
    }
    return _json(content)


def _json(content: Any, indent: int | None = None) -> bytes:
    """Return an object as JSON."""
    return utf8(json.dumps(content, indent=indent, ensure_ascii=False)).encode()


def _function_of_lines(profile: Profile) -> list[str]:
    """Return the function of each line of `Profile.lines`."""
    functions: dict[str, str] = {}
    for place in profile.places:
        functions.setdefault(place.line, place.function.replace(";", ","))
    return [functions[name] for name in profile.lines[1]]
