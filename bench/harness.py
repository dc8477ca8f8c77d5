"""Harness of flip-flops around a component: all paths are register to register, and it needs only three pins."""

import re

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Elaboratable, Module, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from spurtle.support.arguments import check_type

__all__ = ["Harness", "elaborate", "flip_flops", "port_bits"]

XOR_INPUTS = 4
"""Inputs of each XOR: one LUT4 in each stage, so that the harness does not limit Fmax."""


def port_bits(component: wiring.Component, flow: wiring.Flow) -> list[Value]:
    """Return the bits of all ports of a component with this direction, in the order of its signature."""
    ports = (Value.cast(value) for _, member, value in component.signature.flatten(component) if member.flow is flow)
    return [bit for port in ports for bit in port]


class Harness(wiring.Component):
    """Harness that drives each input bit from a flip-flop and captures each output bit in a flip-flop.

    A shift register with the input `serial_in` drives the inputs of the component; its last stage drives the reset. A
    tree of registered 4-input XORs reduces the captured outputs and the last stage to `serial_out`. `serial_out`
    depends on each stage and each captured bit, so that synthesis cannot remove them, nor logic of the component that
    reaches an output.

    Reset: none. The flip-flops of the harness are not reset.

    Parameters
    ----------
    component : Component
        Component that uses the `sync` domain or none.

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
        """Component in the harness."""
        return self._component

    def elaborate(self, platform: object) -> Elaboratable:
        """Build the shift register, the component and the XOR tree."""
        m = Module()
        m.domains.harness = harness = ClockDomain(reset_less=True, local=True)
        m.domains.sync = sync = ClockDomain(local=True)
        m.d.comb += [harness.clk.eq(self.clk), sync.clk.eq(self.clk)]
        m.submodules.component = self._component

        inputs = [*port_bits(self._component, In), ResetSignal()]
        shift = Signal(len(inputs))
        m.d.harness += shift.eq(Cat(self.serial_in, shift[:-1]))
        m.d.comb += [bit.eq(stage) for bit, stage in zip(inputs, shift, strict=True)]

        outputs = port_bits(self._component, Out)
        captured = Signal(len(outputs))
        m.d.harness += captured.eq(Cat(outputs))
        level = Cat(captured, shift[-1])
        while len(level) > 1:
            parity = Signal((len(level) + XOR_INPUTS - 1) // XOR_INPUTS, name=f"parity_{len(level)}")
            m.d.harness += parity.eq(Cat(level[i : i + XOR_INPUTS].xor() for i in range(0, len(level), XOR_INPUTS)))
            level = parity
        m.d.comb += self.serial_out.eq(level)
        return m


def elaborate(component: wiring.Component) -> str:
    """Return the RTLIL of a component with the module name `top`.

    Source locations are omitted, so that equal circuits have equal texts.
    """
    return rtlil.convert(component, name="top", emit_src=False)


def flip_flops(text: str) -> int:
    """Return the number of flip-flops of an elaborated design before optimization, without memories.

    Amaranth writes one module per instance, so the cells of the text are the cells of the design.
    """
    return sum(int(width) for width in re.findall(r"cell \$a?dff \S+\n\s+parameter \\WIDTH (\d+)\n", text))
