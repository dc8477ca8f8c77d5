"""Pytest plugin for a run on a mutant: runs test files in the order of the command line, with a time limit per test."""

import os
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

__all__ = ["CURRENT_TEST", "TIMED_OUT"]

CURRENT_TEST = "current-test"
"""File in the root folder that names the running test, or the module that could not be collected."""

TIMED_OUT = 99
"""Exit status if a test did not end."""

_SECONDS = 900.0
"""Time limit of a test: on an idle machine, each test takes less than a tenth of it."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    order = {config.invocation_params.dir / name: index for index, name in enumerate(config.args)}
    items.sort(key=lambda item: order[item.path])


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        Path(CURRENT_TEST).write_text(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    current = item.config.rootpath / CURRENT_TEST
    current.write_text(item.nodeid)
    # The process exits: a test could catch an exception.
    timer = threading.Timer(_SECONDS, os._exit, (TIMED_OUT,))
    timer.start()
    try:
        return (yield)
    finally:
        timer.cancel()
