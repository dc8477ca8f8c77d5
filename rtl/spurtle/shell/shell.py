"""SPU with AMBA ports: AXI4 for its records, APB4 for its registers."""

from amaranth import *
from amaranth.lib.wiring import Out, connect, flipped

from ..config import SHELLS, SPUConfig, check_config
from ..gateware.component import ConfiguredComponent
from ..gateware.spu import SPU
from ..interface.members import when
from ..interface.pe_state import owner_state
from .apb4 import APB4, APB4Completer
from .axi4 import AXI4Writer
from .owner import RecordOwner

__all__ = ["Shell"]


class Shell(ConfiguredComponent):
    """SPU that writes its records by AXI4.

    In the shell `axi4-apb`, its registers are accessed by APB4.

    Parameters
    ----------
    config : SPUConfig
    shell : str
        `axi4` or `axi4-apb`.

    Members
    -------
    m_axi_* : as in `AXI4Write`
        They replace `SPU.write`.
    s_apb_* : as in `APB4`
        They replace `SPU.sysreg`. Only in `axi4-apb`.
    others : as in `SPU`
    """

    def __init__(self, config: SPUConfig, shell: str):
        check_config(config)
        if shell not in SHELLS:
            raise ValueError(f"shell must be {' or '.join(SHELLS)}, not {shell!r}")
        self._shell = shell
        self._writer = AXI4Writer(config)
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

    def elaborate(self, platform):
        m = Module()

        m.submodules.spu = spu = self._spu
        m.submodules.writer = writer = self._writer
        connect(m, spu.write, writer.write)
        self._expose(m, "m_axi", writer.axi)
        if self._completer:
            m.submodules.completer = self._completer
            connect(m, self._completer.sysreg, spu.sysreg)
            self._expose(m, "s_apb", self._completer.apb)
        for name, member in spu.signature.members.items():
            if name in self.signature.members and member.is_signature:
                connect(m, flipped(getattr(self, name)), getattr(spu, name))
        m.d.comb += self.pmbirq.eq(spu.pmbirq)
        self._connect_owner(m)

        return m

    def _expose(self, m, prefix, bus):
        for name, member in bus.signature.members.items():
            inner, outer = getattr(bus, name), getattr(self, f"{prefix}_{name}")
            m.d.comb += outer.eq(inner) if member.flow is Out else inner.eq(outer)

    def _connect_owner(self, m):
        """Connect the Security state of each record to the writer."""
        m.submodules.owner = owner = RecordOwner(self._config)
        beat = self._spu.write.beat
        m.d.comb += [owner.valid.eq(beat.valid), owner.ready.eq(beat.ready)]
        for name, value in owner_state(self._config, self.pe).items():
            m.d.comb += [
                getattr(owner, name).eq(value),
                getattr(self._writer, name).eq(getattr(owner, f"record_{name}")),
            ]


def _prefixed(prefix, signature):
    return {f"{prefix}_{name}": member for name, member in signature.members.items()}
