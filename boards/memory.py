"""Memory of the Profiling Buffer: block RAM that the SPU writes and the host reads.

Ref: DDI0487 M.a, D17.7.2.
"""

from amaranth import *
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from spurtle.arch import PAGE_BYTES
from spurtle.config import SPUConfig, check_config
from spurtle.gateware.component import ConfiguredComponent
from spurtle.interface.memory import WriteSignature
from spurtle.support.arguments import check_type

__all__ = ["BufferMemory"]


class BufferMemory(ConfiguredComponent):
    """Memory of two halves: the host reads one while the SPU fills the other.

    PMBLIMITR_EL1.LIMIT is the address of a page, so each half is the end of its own page: the first half the end of
    even pages, the second half the end of odd pages. The address in the memory consists of the half and the low bits of
    the virtual address; all other bits are ignored. Writes never fault.

    Timing: one beat is accepted in each cycle. `done` is asserted one cycle after the last beat of a record. `octet` is
    the byte at `address` of the previous cycle.

    Parameters
    ----------
    config : SPUConfig
    half_bytes : int
        Size of each half: a power of two from `config.bus_bytes` to a page.

    Members
    -------
    write : In(WriteSignature)
    address : In(range(2 * half_bytes))
    octet : Out(8)
    """

    def __init__(self, config: SPUConfig, half_bytes: int):
        check_config(config)
        check_type("half_bytes", half_bytes, int)
        if half_bytes > PAGE_BYTES:
            raise ValueError(f"half_bytes must be at most {PAGE_BYTES}, not {half_bytes}")
        if half_bytes < config.bus_bytes or half_bytes & half_bytes - 1:
            raise ValueError(f"half_bytes must be a power of two of at least {config.bus_bytes}, not {half_bytes}")
        self._half_bytes = half_bytes
        super().__init__(
            config,
            {"write": In(WriteSignature(config)), "address": In(range(2 * half_bytes)), "octet": Out(8)},
        )

    @property
    def half_bytes(self) -> int:
        """Size of each half, in bytes."""
        return self._half_bytes

    def elaborate(self, platform):
        m = Module()

        word_bits = exact_log2(self._config.bus_bytes)
        half_bits = exact_log2(self._half_bytes)
        m.submodules.memory = memory = Memory(
            shape=8 * self._config.bus_bytes, depth=2 * self._half_bytes // self._config.bus_bytes, init=()
        )
        store = memory.write_port(granularity=8)
        load = memory.read_port()

        beat = self.write.beat
        m.d.comb += [
            beat.ready.eq(1),
            self.write.fault.eq(0),
            *([self.write.abort.eq(0)] if self._config.external_aborts else []),
            store.addr.eq(Cat(beat.p.address[word_bits:half_bits], beat.p.address[exact_log2(PAGE_BYTES)])),
            store.data.eq(beat.p.data),
            store.en.eq(beat.p.strobe & beat.valid.replicate(self._config.bus_bytes)),
            load.addr.eq(self.address[word_bits:]),
        ]
        m.d.sync += self.write.done.eq(beat.valid & beat.p.last)

        byte = Signal(word_bits)
        m.d.sync += byte.eq(self.address)
        m.d.comb += self.octet.eq(load.data.word_select(byte, 8))

        return m
