"""Fixtures of the tests of the proof engine."""

from pathlib import Path

import pytest

from formal import __main__ as command
from formal.engine import sby
from formal.engine.transition import Transition, transition
from tests.support.countdown import Countdown


@pytest.fixture(scope="session")
def subject() -> Transition:
    return transition(Countdown())


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (sby, command):
        monkeypatch.setattr(module, "BUILD", tmp_path)
    monkeypatch.setattr(command, "warm_up", lambda: None)
    return tmp_path
