"""The site of `make docs` in Debian's Chromium: links, tables, figures, search, and a screen of 360 pixels."""

import json
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.full

CHROMIUM = shutil.which("chromium")
PICTURE = "_images/datapath.svg"
DRIVER = (
    """<!doctype html><title>site</title><iframe width="360" height="740"></iframe><script src="site.js"></script>"""
)


class _Handler(SimpleHTTPRequestHandler):
    """The built site, and the report of the browser in `reports`."""

    reports: Queue[dict[str, Any]]

    def do_POST(self) -> None:
        self.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", ROOT / "docs", folder]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module")
def report(site: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what site.js finds in the pages."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    pages = [str(path.relative_to(site)) for path in site.rglob("*.html") if "_static" not in path.parts]
    (site / "site.html").write_text(DRIVER)
    shutil.copy(Path(__file__).with_name("site.js"), site)
    known = {"genindex.html", "py-modindex.html", "search.html"}
    content = {"pages": sorted({*pages} - known), "words": "PMSIDR_EL1", "picture": PICTURE}
    (site / "site.json").write_text(json.dumps(content))

    handler = type("Handler", (_Handler,), {"reports": Queue()})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run"]
        profile = tmp_path_factory.mktemp("chromium")
        url = f"http://127.0.0.1:{server.server_port}/site.html"
        browser = subprocess.Popen(
            [CHROMIUM, *options, f"--user-data-dir={profile}", url],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            found = handler.reports.get(timeout=240)
        finally:
            browser.terminate()
            browser.wait(30)
            server.shutdown()
    assert "error" not in found, found
    return found


def test_nothing_is_cut_off_at_360_pixels(report: dict[str, Any]) -> None:
    assert {name: page["wide"] for name, page in report["pages"].items() if page["wide"]} == {}
    assert {name: page["font"] for name, page in report["pages"].items() if page["font"] < 14} == {}


def test_no_internal_link_is_dead(report: dict[str, Any]) -> None:
    pages = {name: {*page["ids"], ""} for name, page in report["pages"].items()}
    dead: list[str] = []
    for name, page in report["pages"].items():
        for link in page["links"]:
            url, fragment = urldefrag(link)
            parts = urlsplit(url)
            if parts.hostname != "127.0.0.1":
                continue
            target = parts.path.lstrip("/")
            if target in pages and unquote(fragment) not in pages[target]:
                dead.append(f"{name}: {link}")
    assert dead == []


def test_no_link_to_a_missing_file(report: dict[str, Any], site: Path) -> None:
    paths = {
        urlsplit(link).path.lstrip("/")
        for page in report["pages"].values()
        for link in page["links"]
        if urlsplit(link).hostname == "127.0.0.1"
    }
    assert [path for path in sorted(paths) if not (site / path).exists()] == []


def test_no_table_is_empty(report: dict[str, Any]) -> None:
    assert [name for name, page in report["pages"].items() if page["empty"]] == []


def test_figures_are_drawn_and_large_enough(report: dict[str, Any]) -> None:
    figures = {image: (width, scale) for page in report["pages"].values() for image, width, scale in page["images"]}
    assert len(figures) > 10
    assert [image for image, (width, scale) in figures.items() if width == 0 or scale < 0.5] == []


def test_the_search_finds_a_register(report: dict[str, Any]) -> None:
    assert any("reference/registers/PMSIDR_EL1.html" in link for link in report["found"])


def test_the_navigation_has_every_page(report: dict[str, Any]) -> None:
    counts = {page["links_in_navigation"] for page in report["pages"].values()}
    assert min(counts) >= 4


def test_texts_of_the_data_path_are_inside_their_boxes(report: dict[str, Any]) -> None:
    assert report["misplaced"] == []
