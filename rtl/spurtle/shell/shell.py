"""The SPU with ports of AMBA: AXI4 for its records, APB4 for its registers."""

from amaranth import *
from amaranth.lib.wiring import Out, connect, flipped

from ..config import SHELLS, SPUConfig, check_config
from ..gateware.component import ConfiguredComponent
from ..gateware.spu import SPU
from ..interface.members import when
from ..interface.pe_state import owner_state
from .apb4 import APB4, APB4Completer
from .axi4 import AXI4Writer

__all__ = ["Shell"]


class Shell(ConfiguredComponent):
    """An SPU whose records leave by AXI4 and, in the shell `axi4-apb`, whose registers are reached by APB4.

    Parameters
    ----------
    config : SPUConfig
    shell : str
        `axi4` or `axi4-apb`.
    outstanding : int
        As of `AXI4Writer`.

    Members
    -------
    m_axi_* : as in `AXI4Write`
        Instead of `SPU.write`.
    s_apb_* : as in `APB4`
        Instead of `SPU.sysreg`. Only in `axi4-apb`.
    others : as those of `SPU`
        PSB CSYNC waits for every response.
    """

    def __init__(self, config: SPUConfig, shell: str, *, outstanding: int = 1):
        check_config(config)
        if shell not in SHELLS:
            raise ValueError(f"shell must be {' or '.join(SHELLS)}, not {shell!r}")
        self._shell = shell
        self._writer = AXI4Writer(config, outstanding=outstanding)
        self._spu = SPU(config)
        self._completer = APB4Completer() if shell == "axi4-apb" else None
        replaced = ("write", "sysreg") if self._completer else ("write",)
        super().__init__(
            config,
            {
                **{name: member for name, member in self._spu.signature.members.items() if name not in replaced},
                **_prefixed("m_axi", self._writer.axi.signature),
                **when(self._completer, **_prefixed("s_apb", APB4().flip())),
            },
        )

    @property
    def shell(self) -> str:
        """Name of the shell."""
        return self._shell

    @property
    def outstanding(self) -> int:
        """Bursts that may be sent and not answered."""
        return self._writer.outstanding

    def elaborate(self, platform):
        m = Module()

        m.submodules.spu = spu = self._spu
        m.submodules.writer = writer = self._writer
        connect(m, spu.write, writer.write)
        self._lead_out(m, "m_axi", writer.axi)
        if self._completer:
            m.submodules.completer = self._completer
            connect(m, self._completer.sysreg, spu.sysreg)
            self._lead_out(m, "s_apb", self._completer.apb)
        for name, member in spu.signature.members.items():
            if name in self.signature.members and member.is_signature and name != "drain":
                connect(m, flipped(getattr(self, name)), getattr(spu, name))
        m.d.comb += [
            self.pmbirq.eq(spu.pmbirq),
            spu.drain.request.eq(self.drain.request),
            self.drain.done.eq(spu.drain.done & ~writer.busy),
        ]
        self._own(m)

        return m

    def _lead_out(self, m, prefix, bus):
        for name, member in bus.signature.members.items():
            inner, outer = getattr(bus, name), getattr(self, f"{prefix}_{name}")
            m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)

    def _own(self, m):
        """The first beat of a record comes one cycle after it was begun. It was for the owner of the cycle before that:
        nothing is begun in the cycle after another one came, and it is given up if another comes later.
        """
        for name, value in owner_state(self._config, self.pe).items():
            begun = Signal(name=f"begun_{name}")
            before = Signal(name=f"before_{name}")
            m.d.sync += [before.eq(value), begun.eq(before)]
            m.d.comb += getattr(self._writer, name).eq(begun)


def _prefixed(prefix, signature):
    return {f"{prefix}_{name}": member for name, member in signature.members.items()}
