"""The cache of simulators: one build for the same Verilog, options and tools."""

from pathlib import Path
from typing import Any, ClassVar

import pytest

from spurtle.export import verilog
from spurtle.export.ports import Port
from tests.support import simulator


class Runner:
    """The part of cocotb's runner that `simulator` uses."""

    builds = 0
    folders: ClassVar[list[Path]] = []

    def build(self, *, sources: list[Path], build_dir: Path, hdl_toplevel: str, **_: Any) -> None:
        Runner.builds += 1
        build_dir.mkdir()
        (build_dir / hdl_toplevel).write_text(sources[0].read_text())
        (build_dir / "object.o").touch()

    def test(self, *, build_dir: Path, test_dir: str, hdl_toplevel: str, **_: Any) -> None:
        assert (build_dir / hdl_toplevel).read_text().startswith("module")
        Runner.folders += [build_dir, Path(test_dir)]


def design(text: str) -> verilog.Verilog:
    return verilog.Verilog(module="top", text=text, ports=tuple[Port](), cells=0)


def test_a_build_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(simulator, "get_runner", lambda _: Runner())
    monkeypatch.setattr(simulator, "verilator_runtime", lambda part, _: Path(f"{part}.o"))
    builds: list[Path] = []
    for count, text in (1, "module top; endmodule"), (1, "module top; endmodule"), (2, "module  top; endmodule"):
        simulator.run_verilator(design(text), "cocotb_nothing", {})
        build, test = Runner.folders[-2:]
        builds.append(build)
        assert Runner.builds == count
        assert not test.exists(), "the log of the test must be deleted"
    assert builds[0] == builds[1] != builds[2]
    assert {path.name for path in build.iterdir()} == {"top"}, "the cache must hold nothing but the simulator"
    monkeypatch.setattr(simulator, "version", lambda _: "another")
    simulator.run_verilator(design("module top; endmodule"), "cocotb_nothing", {})
    assert Runner.builds == 3
