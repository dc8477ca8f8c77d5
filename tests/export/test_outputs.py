# amaranth: UnusedElaboratable=no

"""Each component drives its outputs. No Verilog is generated from a component with an undriven output."""

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from amaranth import *
from amaranth.hdl import Fragment
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

import bench
import boards
import spurtle
from bench.blocks import ANY, BLOCKS
from bench.harness import Harness
from boards.board import BOARDS
from boards.demonstration import Demonstration
from boards.riscv import load
from boards.softcore import SoftCore
from configurations import FOR_BLOCKS
from spurtle.config import CONFIGS, SHELLS
from spurtle.export import verilog
from spurtle.gateware.component import ConfiguredComponent
from spurtle.gateware.spu import SPU
from spurtle.shell.shell import Shell
from spurtle_sim.cli import main
from tests.support.tiers import tiers

PACKAGES = (spurtle, boards, bench)

TOPS: dict[str, Callable[[], wiring.Component]] = {
    **{f"SPU {name}": partial(SPU, config) for name, config in FOR_BLOCKS.items()},
    **{
        f"{shell} {name} {outstanding}": partial(Shell, replace(CONFIGS[name], outstanding=outstanding), shell)
        for shell, name in zip(SHELLS, ("arm_model", "minimal"), strict=True)
        for outstanding in (1, 4)
    },
    **{name: partial(Demonstration, board) for name, board in BOARDS.items()},
    "soft core": lambda: SoftCore(CONFIGS["minimal"], load()),
    **{f"plain {block.name}": block.build for block in BLOCKS if block.config == ANY},
}
"""Tops that contain all components of this project."""

LARGE = (
    "SPU kunpeng_920", "SPU hisilicon_mobile", "SPU arm_model", "SPU unnamed", "SPU unnamed_v1p1",
    "axi4 arm_model 1", "axi4 arm_model 4", "axi4-apb minimal 4", "icebreaker", "ulx3s", "orangecrab", "arty_a7",
)  # fmt: skip
"""Tops of the long tier alone. Each of their components is also part of another top."""


def own_components() -> set[type]:
    """Return the classes of the components of this project."""
    modules = [
        import_module(module.name)
        for package in PACKAGES
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not module.name.endswith("__main__")
    ]
    classes = [kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass)]
    names = {package.__name__ for package in PACKAGES}
    return {
        kind for kind in classes if issubclass(kind, wiring.Component) and kind.__module__.partition(".")[0] in names
    }


def parts(component: wiring.Component) -> Iterator[wiring.Component]:
    """Yield `component` and the components in it."""
    fragments = [Fragment.get(component, None)]
    while fragments:
        fragment = fragments.pop()
        fragments += [inner for inner, *_ in fragment.subfragments]
        yield from (origin for origin in fragment.origins or () if isinstance(origin, wiring.Component))


def has_constants(component: wiring.Component) -> bool:
    """Return whether a port is a constant, as in a stream that is always ready. Amaranth cannot convert it."""
    ports = (Value.cast(port) for _, _, port in component.signature.flatten(component))
    return not all(isinstance(port, Signal) for port in ports)


@pytest.mark.parametrize(
    "name", tiers(fast=["SPU minimal", "soft core"], full=[top for top in TOPS if top not in LARGE], long=TOPS)
)
def test_each_output_is_driven(name: str) -> None:
    checked = [part for part in parts(TOPS[name]()) if type(part) in own_components() and not has_constants(part)]
    for part in checked:
        verilog.to_rtlil(part, "part")
    assert checked


@pytest.mark.full
def test_each_component_is_checked() -> None:
    seen = {type(part) for top in TOPS.values() for part in parts(top())}
    # The harness has its own clock, and no Verilog is generated from it. The other is a base class.
    assert own_components() - seen == {Harness, ConfiguredComponent}


class PartlyDriven(wiring.Component):
    """Component that drives only some of its outputs, and only one bit of another one."""

    def __init__(self) -> None:
        channel = wiring.Signature({"valid": Out(1), "ready": In(1), "nothing": Out(0)})
        port = wiring.Signature({"o": Out(channel)})
        super().__init__({"bits": Out(4), "lanes": Out(channel).array(2), "port": Out(port)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.comb += [self.bits[2].eq(1), self.lanes[0].valid.eq(self.lanes[1].ready)]
        return m


class Undriven(wiring.Component):
    """Component that drives no output."""

    o: Out(signed(2))

    def elaborate(self, platform: object) -> Module:
        return Module()


def test_an_output_without_a_driver_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"^nothing drives lanes__1__valid, port__o__valid of PartlyDriven$"):
        verilog.generate(PartlyDriven(), "partly_driven")
    with pytest.raises(ValueError, match=r"^nothing drives o of Undriven$"):
        verilog.generate(Undriven(), "undriven")


def test_the_command_reports_an_output_without_a_driver(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verilog, "SPU", lambda config: PartlyDriven())
    assert main(["verilog", "--config", "minimal", "-o", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "spurtle: nothing drives lanes__1__valid, port__o__valid of PartlyDriven\n"
    assert not any(tmp_path.iterdir())
