"""System registers as Amaranth layouts."""

from amaranth.lib import data

from ..arch import REGISTER_BITS, Register

__all__ = ["register_layout"]


def register_layout(register: Register) -> data.FlexibleLayout:
    """Return the fields of a System register as a layout of 64 bits."""
    return data.FlexibleLayout(
        REGISTER_BITS, {name: data.Field(field.width, field.lsb) for name, field in register.fields.items()}
    )
