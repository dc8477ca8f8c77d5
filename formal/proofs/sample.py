"""A sample as the RTL holds it, as the reference's sample."""

from types import SimpleNamespace
from typing import Any

from amaranth.lib import data
from spurtle.config import SPUConfig
from spurtle.inflight import Sample
from spurtle_sim.reference import records

from ..symbolic import Integer

__all__ = ["sample_of"]


def _unpack(layout: Any, value: Integer) -> Any:
    """The fields of a packed structure, those that are structures themselves included."""
    if isinstance(layout, type) and issubclass(layout, data.Struct):
        layout = layout.as_shape()
    if not isinstance(layout, data.Layout):
        return value
    return SimpleNamespace(
        **{
            str(name): _unpack(field.shape, (value >> field.offset) & ((1 << field.width) - 1))
            for name, field in layout
        }
    )


def sample_of(config: SPUConfig, packed: Integer, module: Any = records) -> Any:
    """What `packed`, a `spurtle.inflight.Sample`, is to the reference."""
    sample = _unpack(Sample(config), packed)
    operation = sample.operation
    return module.Sample(
        start=module.Start(),
        operation=module.Operation(
            **vars(operation)
            | {"facts": module.Facts(**vars(operation.facts)), "target": module.Location(**vars(operation.target))}
        ),
        total=sample.total,
        issue=sample.issue,
        translation=sample.translation,
    )
