"""The HTML page of a report: in Debian's Chromium, without a network, and without what a screen reader cannot read."""

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lxml import etree, html

from spurtle_sim.cli import main

CHROMIUM = shutil.which("chromium")
MOST_BYTES = 3_000_000
PICTURES = 4


@pytest.fixture(scope="module")
def page(profiled: Path) -> Path:
    path = profiled.with_name("report.html")
    assert main(["report", "-o", str(path), str(profiled)]) == 0
    return path


def test_the_page_is_self_contained_and_readable_aloud(page: Path) -> None:
    text = page.read_text()
    assert len(text) < MOST_BYTES
    tree = html.fromstring(text)
    assert tree.get("lang") == "en"
    assert tree.xpath("//script | //iframe | //*[@onclick]") == []
    assert {url.partition(":")[0] for url in tree.xpath("//@src | //link/@href")} == {"data"}
    images = tree.xpath("//img")
    assert len(images) == PICTURES
    for image in images:
        assert len(image.get("alt")) > 40
        svg = etree.fromstring(base64.b64decode(image.get("src").partition(",")[2]))
        references = svg.xpath("//@*[local-name() = 'href']")
        assert all(each.startswith(("#", "data:")) for each in references)
    assert tree.xpath("//table[not(thead//th[@scope='col'])]") == []
    assert tree.xpath("//tbody/tr[td][not(th[@scope='row'])][not(td[@colspan])]") == []
    hot = ["".join(row.itertext()) for row in tree.xpath("//tr[@class='hot']")]
    assert any("sum += particles[i].mass;" in row for row in hot)
    assert any("volatile unsigned char" in row for row in hot)


def test_the_findings_are_first_and_have_their_source(page: Path) -> None:
    tree = html.fromstring(page.read_text())
    assert tree.xpath("(//h2)[1]/text()") == ["Findings"]
    found = [(item.findtext("p/strong"), item.findtext("pre")) for item in tree.xpath("//ol[@class='findings']/li")]
    assert found == [
        ("Wasted cache lines", "sum += particles[i].mass;"),
        ("Stride that thrashes a cache set", "sum += *(volatile unsigned char *)&grid[row][0];"),
        ("Unpredictable branch", "if ((numbers[i] ^ seed) & 1)"),
    ]
    rows = [tree.get_element_by_id(link[1:]) for link in tree.xpath("//ol[@class='findings']//a/@href")]
    assert [row.xpath("string(td[last()])").strip() for row in rows] == [source for _, source in found]


def test_links_lead_to_sections_and_columns_are_explained(page: Path) -> None:
    tree = html.fromstring(page.read_text())
    identifiers = tree.xpath("//@id")
    assert len(identifiers) == len({*identifiers})
    assert {link[1:] for link in tree.xpath("//a/@href")} <= {*identifiers}
    assert len(tree.xpath("//nav//a")) == len(tree.xpath("//h2")) - 1
    # All columns but the first one, which has the names of the rows.
    plain = tree.xpath("//table[not(@class)]//th[@scope='col'][position() > 1][not(a)]")
    assert [each.text_content() for each in plain] == []


@pytest.mark.full
def test_names_are_escaped(profiled: Path, tmp_path: Path) -> None:
    path = tmp_path / "<b>&\udce9.data"  # the last byte of the name is not UTF-8
    path.write_bytes(profiled.read_bytes())
    assert main(["report", "-o", str(tmp_path / "x.html"), str(path)]) == 0
    assert "&lt;b&gt;&amp;\ufffd.data" in (tmp_path / "x.html").read_text()
    assert "<b>" not in (tmp_path / "x.html").read_text()


@pytest.mark.full
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium")
@pytest.mark.parametrize("width", [1000, 360])
def test_chromium_shows_the_page(width: int, page: Path, tmp_path: Path) -> None:
    """All findings are on the first screen, all pictures are loaded, and no line is wider than a phone.

    There is no message on the console, and no request to the network.
    """
    script = (
        "<script>onload = () => { document.title = JSON.stringify([[...document.images].map(i => i.naturalWidth),"
        " [...document.querySelectorAll('ol.findings > li')].map(each => each.getBoundingClientRect().top),"
        " document.documentElement.scrollWidth, innerWidth, performance.getEntriesByType('resource').map(r => r.name)])"
        " }</script></main>"
    )
    policy = "default-src 'none'; "
    text = page.read_text()
    assert text.count(policy) == 1
    text = text.replace("</main>", script).replace(policy, f"{policy}script-src 'unsafe-inline'; ")
    (tmp_path / "page.html").write_text(text)
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom",
            f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},800",
            "--disable-background-networking", "--disable-component-update", f"file://{tmp_path / 'page.html'}",
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    widths, tops, content, window, resources = json.loads(re.findall(r"<title>(\[.*\])</title>", done.stdout)[0])
    assert len(widths) == PICTURES and all(widths)
    assert content <= window
    assert len(tops) == 3 and max(tops) < 800  # on the first screen
    assert [name for name in resources if not name.startswith("data:")] == []
