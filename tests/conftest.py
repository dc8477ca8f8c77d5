"""Order, tiers and seed of the tests, and a check that each test elaborates the components that it builds."""

import gc
import signal
import warnings
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import pytest
from amaranth.hdl import UnusedElaboratable
from hypothesis import settings

from tests.support.perf_versions import VERSIONS, Perf, require_perf
from tests.support.seeds import SEED
from tests.support.tiers import TIERS, not_run, tier_of, tiers

# The examples depend only on the seed, so that a run can be repeated on another machine.
settings.register_profile("spurtle", deadline=None, print_blob=True, database=None)
settings.load_profile("spurtle")


FIRST = (
    "cosim/test_spu.py",
    "proofs/test_registers.py",
    "gateware/test_buffer.py",
    "gateware/test_buffer_cycles.py",
    "system/test_cocotb.py",
    "export/test_verilog.py",
    "boards/test_complete_board.py",
    "system/test_linux_driver.py",
    "profile/test_filters.py",
    "gateware/test_spu.py",
)
"""Files that run first because they take longest: otherwise one core would still run them when the others are idle.

The first file compiles the SPUs that other tests use. The second does not need them.
"""


MANY_OBJECTS = 500_000
"""Objects that may remain after the modules to which they belong. They take some tens of megabytes."""

# Designs have many objects, and few become garbage before the test ends. It is then collected by a fixture, so that to
# look for it in between takes longer than it is worth.
gc.set_threshold(200_000)


def pytest_configure(config: pytest.Config) -> None:
    # A worker of xdist inherits the option.
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(SEED)
    config.pluginmanager.register(OtherTiers())


@pytest.fixture(scope="session", params=tiers(fast=["6.1", "newest"], full=VERSIONS))
def perf(request: pytest.FixtureRequest) -> Perf:
    """Return each installed version of Linux perf; in the fast tier only the oldest and the newest."""
    return require_perf(request.param)


@pytest.fixture(autouse=True, scope="session")
def no_qemu() -> Iterator[None]:
    """Let Unicorn execute programs on each machine. Tests with QEMU name it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPURTLE_QEMU", "")
        yield


def pytest_report_header() -> str:
    return f"seed: {SEED} (SPURTLE_SEED in the environment sets another)"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections.append(("seed", f"SPURTLE_SEED={SEED}"))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, Any, Any]:
    made = yield
    for item in made if isinstance(made, list) else ():
        tier = tier_of(item)
        item.own_markers = [marker for marker in item.own_markers if marker.name not in TIERS]
        item.add_marker(tier)
    return made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    positions = {name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: positions.get("/".join(item.path.parts[-2:]), len(FIRST)))


class OtherTiers:
    """A plugin that prints which tiers were not run, in the last line of output."""

    def __init__(self) -> None:
        self._deselected: list[str] = []
        self._line = ""

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._deselected += map(tier_of, items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._line = not_run(self._deselected, {tier_of(item) for item in session.items})
        # A worker of xdist sends it to the process that prints.
        getattr(session.config, "workeroutput", {})["other_tiers"] = self._line

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        # With xdist only the workers collect, and each of them collects everything.
        self._line = getattr(node, "workeroutput", {}).get("other_tiers", self._line)

    def pytest_unconfigure(self) -> None:
        # pytest has printed its summary by then.
        if self._line:
            print(self._line)


class FrozenObjects:
    """Objects that the garbage collector does not scan: those from before the test that runs."""

    def __init__(self) -> None:
        self._most = 0

    def free_unused(self) -> None:
        """Free the objects of previous tests if there are many. To scan all objects takes longer than most modules."""
        if gc.get_freeze_count() > self._most:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            self._most = gc.get_freeze_count() + MANY_OBJECTS


@pytest.fixture(autouse=True, scope="session")
def frozen_objects() -> FrozenObjects:
    """Return the frozen objects of this process."""
    return FrozenObjects()


@pytest.fixture(autouse=True, scope="module")
def free_unused(frozen_objects: FrozenObjects) -> Iterator[None]:
    """Let the garbage collector free the objects of a module after its tests."""
    yield
    frozen_objects.free_unused()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Use Python's own handler of SIGINT. Tests that run in the background of a shell ignore the signal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def no_forgotten_submodules() -> Iterator[None]:
    """Fail if a component was built and never elaborated.

    Amaranth warns only when the garbage collector frees the component.
    """
    # Objects from before the test are frozen: to scan them takes longer than most tests.
    gc.collect()
    gc.freeze()
    yield
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    unused = [str(warning.message) for warning in caught if issubclass(warning.category, UnusedElaboratable)]
    assert not unused, unused
