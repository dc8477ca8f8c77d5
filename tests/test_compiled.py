"""Verilator's runtime is compiled once, and nothing is kept of what fails. Designs are compiled in test_engine."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from spurtle_sim import compiled, native
from spurtle_sim.errors import UserError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "spurtle"


def test_the_runtime_is_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Sequence[object]] = []

    def run(command: Sequence[object], folder: Path) -> str:
        ran.append(command)
        (folder / "out.a").write_text(f"archive {len(ran)}")
        return ""

    native.cached("", None)  # the release of the compiler is known from now on
    monkeypatch.setattr(native, "run", run)
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
    with pytest.raises(UserError, match=r"^g\+\+ failed: .*no_such_part"):
        compiled.runtime(["no_such_part"])
    assert not list(cache.iterdir())
