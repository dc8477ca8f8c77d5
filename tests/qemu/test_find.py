"""Search for a QEMU that accepts plugins."""

from pathlib import Path

import pytest

from spurtle.support.errors import UserError
from spurtle_sim.qemu.find import find_qemu

HELP = "-plugin             plugin    QEMU_PLUGIN"


def fake(folder: Path, version: str = "qemu-aarch64 version 7.2.22 (Debian 1:7.2)", options: str = HELP) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "qemu-aarch64"
    path.write_text(f"#!/bin/sh\ncase $1 in --version) echo '{version}';; *) echo '{options}';; esac\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("version", "exact"), [("7.2.22", False), ("9.0.4", False), ("9.1.0", True), ("10.0.13", True)]
)
def test_versions(version: str, exact: bool, tmp_path: Path) -> None:
    found = find_qemu(str(fake(tmp_path, f"qemu-aarch64 version {version}")))
    assert found and (found.name, found.exact) == (f"QEMU {version}", exact)


def test_programs_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot run .*/absent: No such file or directory"):
        find_qemu(str(tmp_path / "absent"))
    with pytest.raises(UserError, match="must be qemu-aarch64 of QEMU"):
        find_qemu(str(fake(tmp_path / "other", "cat (GNU coreutils) 9.1")))
    with pytest.raises(UserError, match=r"must accept plugins .* or make qemu"):
        find_qemu(str(fake(tmp_path / "static", options="-h")))


def test_the_order_of_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPURTLE_QEMU")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/bin:/usr/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fake(tmp_path / "path", "qemu-aarch64 version 1.0.0")
    found = find_qemu()
    assert found and found.version == (1, 0, 0)
    built = fake(tmp_path / "cache" / "spurtle" / "tools", "qemu-aarch64 version 2.0.0")
    found = find_qemu()
    assert found and found.path == str(built)
    named = fake(tmp_path / "named", "qemu-aarch64 version 3.0.0")
    monkeypatch.setenv("SPURTLE_QEMU", str(named))
    found = find_qemu()
    assert found and found.version == (3, 0, 0)
    found = find_qemu(str(built))
    assert found and found.version == (2, 0, 0)
    monkeypatch.setenv("SPURTLE_QEMU", "")
    assert find_qemu() is None


def test_static_programs_are_skipped_in_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPURTLE_QEMU")
    monkeypatch.setenv("PATH", str(fake(tmp_path / "path", options="-h").parent) + ":/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_qemu() is None
