"""A ring of flip-flops around a component: every path is register to register, and three pins are enough."""

import re

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spurtle.support.arguments import check_type

__all__ = ["Harness", "elaborate", "flip_flops", "port_bits"]

XOR_INPUTS = 4
"""One LUT4 a stage: the harness must never be what limits Fmax."""


def port_bits(component: wiring.Component, flow: wiring.Flow) -> list[Value]:
    """Every bit of `component`'s ports of that direction, in the order of the signature."""
    ports = (Value.cast(value) for _, member, value in component.signature.flatten(component) if member.flow is flow)
    return [bit for port in ports for bit in port]


class Harness(wiring.Component):
    """Drives each input bit from a flip-flop and captures each output bit in one.

    The inputs are the stages of one shift register, fed from `serial_in`; its last stage is the component's reset. The
    captured outputs are reduced by a tree of registered 4-input XORs. `serial_out` depends on every stage and every
    capture, so synthesis can delete none of them, nor anything of the component that reaches an output.

    Parameters
    ----------
    component : Component
        Uses the `sync` domain or none.

    Members
    -------
    clk : In(1)
    serial_in : In(1)
    serial_out : Out(1)
    """

    def __init__(self, component: wiring.Component):
        check_type("component", component, wiring.Component)
        self._component = component
        super().__init__({"clk": In(1), "serial_in": In(1), "serial_out": Out(1)})

    @property
    def component(self) -> wiring.Component:
        """The component inside the ring."""
        return self._component

    def elaborate(self, platform: object) -> Elaboratable:
        """Builds the ring."""
        m = Module()
        m.domains.ring = ring = ClockDomain(reset_less=True, local=True)
        m.domains.sync = sync = ClockDomain(local=True)
        m.d.comb += [ring.clk.eq(self.clk), sync.clk.eq(self.clk)]
        m.submodules.component = self._component

        inputs = [*port_bits(self._component, In), ResetSignal()]
        shift = Signal(len(inputs))
        m.d.ring += shift.eq(Cat(self.serial_in, shift[:-1]))
        m.d.comb += [bit.eq(stage) for bit, stage in zip(inputs, shift, strict=True)]

        outputs = port_bits(self._component, Out)
        captured = Signal(len(outputs))
        m.d.ring += captured.eq(Cat(outputs))
        level = Cat(captured, shift[-1])
        while len(level) > 1:
            parity = Signal((len(level) + XOR_INPUTS - 1) // XOR_INPUTS, name=f"parity_{len(level)}")
            m.d.ring += parity.eq(Cat(level[i : i + XOR_INPUTS].xor() for i in range(0, len(level), XOR_INPUTS)))
            level = parity
        m.d.comb += self.serial_out.eq(level)
        return m


def elaborate(component: wiring.Component) -> str:
    """RTLIL of `component` with the module name `top`, free of source locations: the same circuit is the same text."""
    return rtlil.convert(component, name="top", emit_src=False)


def flip_flops(text: str) -> int:
    """Flip-flops of an elaborated design, before anything was optimised. Memories are not counted.

    Amaranth writes one module per instance, so the cells of the text are the cells of the design.
    """
    return sum(int(width) for width in re.findall(r"cell \$a?dff \S+\n\s+parameter \\WIDTH (\d+)\n", text))
