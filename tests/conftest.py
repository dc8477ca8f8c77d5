"""What every test of this folder gets: an order, reproducible random examples, a look for forgotten submodules."""

import gc
import signal
import warnings
from collections.abc import Iterator

import pytest
from amaranth.hdl import UnusedElaboratable
from hypothesis import settings

# The same examples on every run and machine; a failure prints the blob that repeats it.
settings.register_profile("spurtle", derandomize=True, deadline=None, print_blob=True, database=None)
settings.load_profile("spurtle")


FIRST = tuple(
    f"test_{name}"
    for name in (
        "linux_driver",
        "cocotb",
        "cocotb_filter",
        "filters",
        "bias",
        "profile",
        "boards_whole",
        "spu",
        "verilog",
        "engine",
    )
)
"""Files that take minutes, longest first, so that no core waits for another in the end. The first one compiles the SPUs
that others use; the second does not need them.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: FIRST.index(item.path.stem) if item.path.stem in FIRST else len(FIRST))


@pytest.fixture(autouse=True, scope="module")
def thawed() -> Iterator[None]:
    """What a module has made goes with it."""
    yield
    gc.unfreeze()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT is Python's own, even where the tests run in the background, and were told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def no_forgotten_submodules() -> Iterator[None]:
    """Fail if a component was made and never elaborated: Amaranth says so only when the garbage collector finds it."""
    # It need not look at what was there before: that takes longer than most tests.
    gc.collect()
    gc.freeze()
    yield
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    unused = [str(warning.message) for warning in caught if issubclass(warning.category, UnusedElaboratable)]
    assert not unused, unused
