"""Test that the configurations of tests, proofs and benches have unique names and contents."""

from collections.abc import Iterator, Mapping

import configurations
from spurtle.config import CONFIGS, SPUConfig


def all_configurations() -> Iterator[SPUConfig]:
    """Yield the configurations of all public names of the module. Some occur more than once."""
    for name in configurations.__all__:
        value = getattr(configurations, name)
        yield from value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        if isinstance(value, SPUConfig):
            yield value


def test_a_name_means_one_configuration() -> None:
    named: dict[str, SPUConfig] = dict(CONFIGS)
    for config in all_configurations():
        assert named.setdefault(config.name, config) == config, config.name
    assert {*configurations.FAST} <= named.keys()


def test_each_configuration_differs_from_the_others_in_more_than_its_name() -> None:
    named = {config.name: config for config in (*CONFIGS.values(), *all_configurations())}
    choices = [{**vars(config), "name": ""} for config in named.values()]
    equal = [name for name, choice in zip(named, choices, strict=True) if choices.count(choice) > 1]
    assert equal == []
