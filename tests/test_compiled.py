"""What is compiled once is kept, and nothing is kept of what fails. Designs are compiled in test_engine and others."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from spurtle_sim import compiled


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "spurtle"


def test_the_runtime_is_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Sequence[object]] = []

    def run(command: Sequence[object], folder: Path) -> None:
        ran.append(command)
        (folder / "out.a").write_text(f"archive {len(ran)}")

    monkeypatch.setattr(compiled, "_run", run)
    first = compiled.runtime(["verilated"], "-fPIC")
    assert compiled.runtime(["verilated"], "-fPIC") == first
    assert len(ran) == 2, "the compiler, and what makes an archive"
    assert first.read_text() == "archive 2"
    others = [compiled.runtime(["verilated"]), compiled.runtime(["verilated", "verilated_threads"], "-fPIC")]
    monkeypatch.setattr(compiled, "version", lambda _: "another")
    others.append(compiled.runtime(["verilated"], "-fPIC"))
    assert len({first, *others}) == 4
    assert {*cache.iterdir()} == {first, *others}


def test_what_fails_leaves_nothing(cache: Path) -> None:
    with pytest.raises(RuntimeError, match="no_such_part"):
        compiled.runtime(["no_such_part"])
    assert not list(cache.iterdir())
