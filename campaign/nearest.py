"""Pytest plugin for a run on a mutant: tests in the order in which their files are given, and a time limit for each."""

import os
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

__all__ = ["CURRENT", "LATE"]

CURRENT = "current-test"
"""File in the root of the tests that names the test that runs, or the module that could not be collected."""

LATE = 99
"""Exit status where a test did not end."""

_SECONDS = 900.0
"""Bound of one test. On a machine that is not busy each takes less than a tenth of it."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    places = {config.invocation_params.dir / name: place for place, name in enumerate(config.args)}
    items.sort(key=lambda item: places[item.path])


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        Path(CURRENT).write_text(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    current = item.config.rootpath / CURRENT
    current.write_text(item.nodeid)
    # Not an exception: a test may catch it.
    timer = threading.Timer(_SECONDS, os._exit, (LATE,))
    timer.start()
    try:
        return (yield)
    finally:
        timer.cancel()
