"""All generated documents: `python -m docs` writes those that are out of date, and names them."""

from bench import records
from docs import intervals, layouts, record_rates, tables, timing
from spurtle.support.files import write_file


def main() -> None:
    """Write every generated page and figure that is out of date."""
    figures = {
        layouts.FILE: layouts.picture(),
        intervals.FILE: intervals.current(),
        record_rates.FILE: record_rates.picture(records.read()),
        **timing.current(),
    }
    for path, text in (figures | tables.stale()).items():
        if not path.exists() or path.read_text() != text:
            write_file(path, text.encode())
            print(path.relative_to(tables.DOCS.parent))


if __name__ == "__main__":
    main()
