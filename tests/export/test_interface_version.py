# amaranth: UnusedElaboratable=no

"""Interface version: a change of the ports or of their timing has a new one, and all generated files state it."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.lib import wiring

from spurtle.config import CONFIGS
from spurtle.export.collateral import files
from spurtle.export.ports import Port, ports
from spurtle.export.verilog import Verilog
from spurtle.gateware.spu import SPU
from spurtle.support.version import INTERFACE_VERSION
from tests.support import interface_versions
from tests.support.interface_versions import Release, fingerprints, releases, with_release
from tests.support.paths import ROOT

LAST = Release("1.2.0", 7, {"ports of a": "1234", "ports of b": "5678"})
NEXT = replace(LAST, version="1.3.0")


def test_changed_interface_has_a_new_version() -> None:
    with_release(releases(), Release("the next release", INTERFACE_VERSION, fingerprints()))


def test_each_release_has_an_interface_version() -> None:
    """Each release of the changelog is in the file."""
    released = re.findall(r"^## (\d+\.\d+\.\d+) ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    known: list[Release] = []
    for release in releases():
        known = with_release(known, release)
    assert [release.version for release in known] == released[::-1], (
        "`python -m tests.support.interface_versions` adds the current release"
    )


def test_change_without_a_new_version_is_refused() -> None:
    changed = {**LAST.fingerprints, "ports of b": "9999"}
    message = r"^INTERFACE_VERSION must be 8, not 7; changed since 1.2.0: ports of b$"
    with pytest.raises(ValueError, match=message):
        with_release([LAST], replace(NEXT, fingerprints=changed))
    renamed = replace(NEXT, interface=8, fingerprints=changed)
    assert with_release([LAST], renamed) == [LAST, renamed]


def test_removed_part_is_a_change() -> None:
    with pytest.raises(ValueError, match=r"must be 8, not 7; changed since 1.2.0: ports of a$"):
        with_release([LAST], replace(NEXT, fingerprints={"ports of b": "5678"}))


def test_new_configuration_is_no_change() -> None:
    more = replace(NEXT, fingerprints={**LAST.fingerprints, "ports of c": "9999"})
    assert with_release([LAST], more) == [LAST, more]


@pytest.mark.parametrize("number", [6, 9])
def test_version_is_the_same_or_the_next(number: int) -> None:
    with pytest.raises(ValueError, match=rf"^INTERFACE_VERSION must be 7 or 8, not {number}; .*: nothing$"):
        with_release([LAST], replace(NEXT, interface=number))


def test_release_is_added_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(interface_versions, "RELEASES", tmp_path / "releases.json")
    (tmp_path / "releases.json").write_text("[]")
    interface_versions.main()
    assert releases() == [Release(interface_versions.__version__, INTERFACE_VERSION, fingerprints())]
    with pytest.raises(ValueError, match=r"^the release must be another one than "):
        interface_versions.main()


def test_fingerprint_depends_on_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprints()

    def moved(component: wiring.Component) -> tuple[Port, ...]:
        described = ports(component)
        return tuple(
            replace(port, fields=(replace(port.fields[0], width=1), *port.fields[1:]))
            if port.name == "finish__operation"
            else port
            for port in described
        )

    monkeypatch.setattr(interface_versions, "ports", moved)
    changed = {name for name, value in fingerprints().items() if value != before[name]}
    assert changed == {name for name in before if name.startswith("ports of")}


def test_fingerprint_depends_on_a_wave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = fingerprints()
    for path in interface_versions.timing.FOLDER.glob("*.yaml"):
        text = path.read_text()
        # A comment and other spaces are no change.
        text = text.replace('"p..', '"p...', 1) if path.stem == "fault" else f"# drawing\n{text}\n"
        (tmp_path / path.name).write_text(text)
    monkeypatch.setattr(interface_versions.timing, "FOLDER", tmp_path)
    assert {name for name, value in fingerprints().items() if value != before[name]} == {"timing diagram fault"}


def test_generated_files_state_the_version() -> None:
    config = CONFIGS["minimal"]
    design = Verilog("spurtle_minimal", "", ports(SPU(config)), 0)
    texts = files(config, design)
    macro = f"SPURTLE_MINIMAL_INTERFACE_VERSION {INTERFACE_VERSION}"
    assert f"`define {macro}\n" in texts["spurtle_minimal.vh"]
    assert f"#define {macro}\n" in re.sub(" +", " ", texts["spurtle_minimal.h"])
    assert json.loads(texts["spurtle_minimal_ports.json"])["interface"] == INTERFACE_VERSION
    stated = {name for name, text in texts.items() if f" Interface version: {INTERFACE_VERSION}\n" in text}
    suffixes = ".vh", ".vlt", "_stub.v", "_unpacked.v", "_unpacked.vhd", ".sdc", ".xdc", ".lpf", ".core"
    assert stated == {f"spurtle_minimal{suffix}" for suffix in suffixes}


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus Verilog (iverilog) is not installed")
@pytest.mark.parametrize("version", [INTERFACE_VERSION, INTERFACE_VERSION + 1])
def test_documented_check_refuses_another_version(version: int, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "formats.md").read_text()
    [check] = re.findall(r"^```verilog\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    include, _, body = check.partition("\n")
    (tmp_path / "design.v").write_text(f"{include}\nmodule core;\n{body}endmodule\n")
    (tmp_path / "spurtle_minimal.vh").write_text(f"`define SPURTLE_MINIMAL_INTERFACE_VERSION {version}\n")
    run = subprocess.run(["iverilog", "-g2005", "design.v"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ("another_interface_version" in run.stderr) == bool(run.returncode) == (version != INTERFACE_VERSION)
