"""Generated pages and generated parts of pages are up to date, and pages look the same on a forge."""

import re

import pytest

from docs import timing
from docs.commands import command
from docs.markdown import marked_names
from docs.register_pages import REGISTERS
from docs.tables import DOCS, MAKERS, excerpt, stale, up_to_date
from spurtle_sim.cli.command import build_parser
from tests.support.paths import ROOT

PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(ROOT.glob("*.md"))]
API = DOCS / "reference" / "api"


def test_each_page_is_up_to_date():
    assert [path.name for path in stale()] == [], "`python -m docs` writes these pages"


def test_each_register_has_a_page_and_no_other():
    pages = {path.stem for path in (DOCS / "reference" / "registers").iterdir()}
    assert pages == {register.name for register in REGISTERS}


def test_each_verb_has_a_generated_section():
    _, verbs = build_parser()
    page = (DOCS / "reference" / "commands.md").read_text()
    assert [name for name in marked_names(page) if name.startswith("command ")] == [f"command {verb}" for verb in verbs]
    assert [verb for verb in verbs if f"\n## spurtle {verb}\n" not in page] == []


def test_each_option_of_a_verb_is_listed():
    text = command("verilog")
    assert text.startswith("```text\nspurtle verilog [--config CONFIG]")
    assert "| `-o, --output DIR` |" in text
    assert re.search(r"^\| `--reset-level RESET_LEVEL` \| .* One of `high`, `low`\. \|$", text, re.MULTILINE)


def test_a_timing_diagram_without_signals_is_an_error():
    with pytest.raises(ValueError, match="a timing diagram must have the key `signal`"):
        timing.svg("{head: {text: nothing}}")


def test_a_part_that_differs_from_the_source_is_stale():
    page = "# Title\n\n<!-- configurations -->\n| old |\n<!-- end -->\nafter\n"
    assert up_to_date(page) == page.replace("| old |", MAKERS["configurations"]())
    other = page.replace("configurations", "ecp5")  # a table that measurements replace
    assert up_to_date(other) == other


def test_an_excerpt_is_the_lines_between_two_texts():
    text = excerpt("neoverse_n1/testbench.v", "// System registers", "// Memory of")
    assert text.startswith("```verilog\n    // System registers and the system counter.\n")
    assert text.endswith("\n```") and "// Memory" not in text and "\n\n```" not in text
    with pytest.raises(ValueError, match="a line must have '// No such line'"):
        excerpt("neoverse_n1/testbench.v", "// No such line")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_have_at_most_120_columns(page):
    """Table rows and images are exempt: they cannot be wrapped."""
    long = [
        f"{page.name}:{number}: {len(line)} columns"
        for number, line in enumerate(page.read_text().splitlines(), 1)
        if len(line) > 120 and not line.startswith(("| ", "!["))
    ]
    assert long == []


def anchors(page):
    """Return the anchors of the headings of a page as a forge makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_name_headings(page):
    """The site also accepts other anchors: that of a heading with a dot differs from that of a forge."""
    links = re.findall(r"\]\((?!https?://)([^)#]*)#([^)]+)\)", page.read_text())
    wrong = [anchor for path, anchor in links if anchor not in anchors(page.parent / path if path else page)]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_forge_shows_what_the_site_shows(page):
    """The only directive is a hidden list of pages. API pages are exempt: only the site shows them."""
    if page.parent == API:
        return
    for directive, options in re.findall(r"^```\{(\w+)\}\n((?::.*\n)*)", page.read_text(), re.MULTILINE):
        assert directive == "toctree"
        assert ":hidden:" in options
