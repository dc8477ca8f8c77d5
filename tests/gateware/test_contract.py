# amaranth: UnusedElaboratable=no
"""Tests of the rules for all components and signatures.

Arguments are checked, and each has a property. Signatures compare by their members. FSMs have enumerations of states.
The configuration, not `hasattr`, determines which members are present.
"""

import ast
import gc
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import getmembers, getsource, isclass
from inspect import signature as signature_of
from itertools import combinations
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Fragment, UnusedElaboratable
from amaranth.lib import data, wiring

import bench
import boards
from bench.plain import Pointer, ShiftRegister
from boards.board import BOARDS
from boards.demonstration import PulseStretcher
from boards.memory import BufferMemory
from boards.replay import Replay
from boards.riscv import load
from boards.server import BoardRegisters
from boards.uart import UARTTransmitter
from configurations import FOR_BLOCKS
from spurtle import gateware, interface, shell
from spurtle.gateware.component import ConfiguredComponent
from spurtle.gateware.fsm import FSMState
from spurtle.interface.signature import StructuralSignature
from spurtle_sim.trace.dtypes import TIMED_OPERATION

pytestmark = pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")


@pytest.fixture(autouse=True)
def unused() -> Iterator[None]:
    """Collect components that were built, at least in part, and never elaborated. Ignore the warnings."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        gc.collect()


def modules() -> list[ModuleType]:
    """Return all modules that may have components or signatures."""
    return [
        import_module(f"{package.__name__}.{module.name}")
        for package in (interface, gateware, shell, boards, bench)
        for module in iter_modules(package.__path__)
        if module.name != "__main__"
    ]


def classes(base: type, *but: type) -> list[type]:
    """Return all classes derived from `base`, except `but`."""
    return [
        member
        for module in modules()
        for _, member in getmembers(module, isclass)
        if issubclass(member, base) and member.__module__ == module.__name__ and member not in but
    ]


COMPONENTS = classes(Elaboratable, ConfiguredComponent)
SIGNATURES = classes(wiring.Signature, StructuralSignature)
LAYOUTS = classes(data.StructLayout)

ROWS = np.zeros(2, TIMED_OPERATION)
ROWS["dispatch"] = 1, 2
ROWS["finish"] = 4

ARGUMENTS: dict[str, Any] = {
    "bits": 8,
    "board": BOARDS["hx8k"],
    "bus_bytes": 8,
    "component": UARTTransmitter(2),
    "cycles": 3,
    "divisor": 4,
    "draws": 2,
    "half_bytes": 2048,
    "identity": 1,
    "late_draw": False,
    "memory_bytes": 4096,
    "outstanding": 1,
    "program": load(),
    "record_bytes": 64,
    "reset": 1,
    "rows": ROWS,
    "second": False,
    "shape": 8,
    "shell": "axi4-apb",
    "step": 64,
    "ways": 4,
    "width": 4,
    "write": True,
}
"""An argument for each parameter except the configuration. A new parameter requires an entry."""


def parameters(of: type) -> list[str]:
    """Return the names of the parameters of a class."""
    # Parameters of a constructor of Amaranth are not tested here.
    return [] if of.__init__.__module__.startswith("amaranth.") else [*signature_of(of).parameters]


@cache
def cases(of: type) -> list[dict[str, Any]]:
    """Return valid arguments of a class, for each configuration that it accepts."""
    fixed = {name: ARGUMENTS[name] for name in parameters(of) if name != "config"}
    if "config" not in parameters(of):
        return [fixed]
    accepted: list[dict[str, Any]] = []
    for config in FOR_BLOCKS.values():
        try:
            of(config=config, **fixed)
        except ValueError:
            continue
        accepted.append({"config": config, **fixed})
    return accepted


def named(of: type) -> str:
    """Return the name of a class."""
    return of.__name__


def test_components_signatures_and_layouts_are_found() -> None:
    assert {"SPU", "Shell", "RVFIAdapter", "Server", "Top", "Harness"} < {*map(named, COMPONENTS)}
    assert {"PEStateSignature", "AXI4Write", "RVFI"} < {*map(named, SIGNATURES)}
    assert {"SampleLayout", "OperationLayout"} < {*map(named, LAYOUTS)}


@pytest.mark.parametrize(
    ("of", "parameter"),
    [(of, parameter) for of in (*COMPONENTS, *SIGNATURES, *LAYOUTS) for parameter in parameters(of)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_each_argument_is_checked(of: Any, parameter: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{parameter} must be .*, not <object object"):
        of(**cases(of)[0] | {parameter: object()})


@pytest.mark.parametrize(
    ("of", "wrong", "message"),
    [
        (BufferMemory, {"half_bytes": 3000}, "half_bytes must be a power of two of at least 8, not 3000"),
        (BufferMemory, {"half_bytes": 8192}, "half_bytes must be at most 4096, not 8192"),
        (BoardRegisters, {"identity": 256}, "identity must be from 0 to 255, not 256"),
        (PulseStretcher, {"cycles": 0}, "cycles must be at least 1, not 0"),
        (ShiftRegister, {"record_bytes": 12}, "record_bytes must be a multiple of bus_bytes, 8, not 12"),
        (Pointer, {"step": 3}, "step must be a power of two, not 3"),
    ],
)
def test_an_argument_out_of_range(of: Any, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        of(**cases(of)[0] | wrong)


def test_rows_of_another_type() -> None:
    with pytest.raises(TypeError, match=r"^rows must be of dtype TIMED_OPERATION, not dtype\('int64'\)$"):
        Replay(cases(Replay)[0]["config"], np.zeros(2, np.int64))


@pytest.mark.parametrize("of", COMPONENTS, ids=named)
def test_a_component_has_a_property_for_each_parameter(of: Any) -> None:
    arguments = cases(of)[0]
    component = of(**arguments)
    for name, value in arguments.items():
        assert getattr(component, name) is value
    assert all(isinstance(getattr(of, name), property) for name in arguments)


@pytest.mark.parametrize("of", SIGNATURES, ids=named)
def test_a_signature_is_compared_by_its_members(of: Any) -> None:
    for arguments in cases(of):
        assert of(**arguments) == of(**arguments)
        assert of(**arguments).flip() == of(**arguments).flip()
        assert repr(of(**arguments)).startswith(f"{of.__name__}(")
        assert of(**arguments) != wiring.Signature(of(**arguments).members)


@pytest.mark.parametrize("of", [of for of in (*SIGNATURES, *LAYOUTS) if parameters(of)], ids=named)
def test_signatures_and_layouts_are_equal_if_their_representations_are(of: Any) -> None:
    built = [of(**arguments) for arguments in cases(of)]
    pairs = [(one == other, repr(one) == repr(other)) for one, other in combinations(built, 2)]
    assert all(equal == same for equal, same in pairs)
    assert not all(equal for equal, _ in pairs)


def fsms(of: Any) -> Iterator[tuple[str, dict[object, int]]]:
    """Yield the name and the encoding of each FSM of a component, in each configuration."""
    for arguments in cases(of):
        for name, machine in Fragment.get(of(**arguments), None).generated.items():
            yield name, dict(machine.encoding)


@pytest.mark.parametrize("of", [of for of in COMPONENTS if "m.FSM(" in getsource(of)], ids=named)
def test_the_states_of_an_fsm_are_its_enumeration(of: Any) -> None:
    found = list(fsms(of))
    assert found
    unused: dict[type, set[object]] = {}
    for name, encoding in found:
        module = import_module(of.__module__)
        enumeration = getattr(module, f"{name.capitalize()}State")
        assert issubclass(enumeration, FSMState)
        assert enumeration.__name__ in module.__all__
        assert all(type(state) is enumeration for state in encoding)
        assert encoding == {state: state.value for state in encoding}
        # A configuration may not have all states.
        unused[enumeration] = unused.get(enumeration, {*enumeration}) - encoding.keys()
    assert not any(unused.values())


def test_a_state_is_formatted_by_its_name() -> None:
    class State(FSMState):
        IDLE = 0

    assert f"{State.IDLE}/0" == "IDLE/0"
    assert str(State.IDLE) == "0"


@pytest.mark.parametrize("module", sorted({of.__module__ for of in (*COMPONENTS, *SIGNATURES, *LAYOUTS)}))
def test_no_module_uses_hasattr(module: str) -> None:
    names = {node.id for node in ast.walk(ast.parse(getsource(import_module(module)))) if isinstance(node, ast.Name)}
    assert "hasattr" not in names
