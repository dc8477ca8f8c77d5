"""The Profiling Buffer's memory: block RAM that the SPU writes and the host reads."""

# Ref: DDI0487 M.a, D17.7.2: PMBLIMITR_EL1.LIMIT is the address of a page.

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
    """Two halves, so that one can be read while the SPU fills the other. Each is the end of a page, as a buffer ends
    with one: the first half of the even pages, the second of the odd ones. The address within the memory is the half,
    then the low bits of the virtual address; nothing else of that matters. No write meets a fault.

    Timing: a beat is taken in each cycle; `done` comes in the next after a record's last one. `octet` is that of
    `address` in the cycle before.

    Parameters
    ----------
    config : SPUConfig
    half_bytes : int
        A power of two, a page at most.

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
            raise ValueError(f"half_bytes must be a power of two from {config.bus_bytes} on, not {half_bytes}")
        self._half_bytes = half_bytes
        super().__init__(
            config,
            {"write": In(WriteSignature(config)), "address": In(range(2 * half_bytes)), "octet": Out(8)},
        )

    @property
    def half_bytes(self) -> int:
        """Bytes of each half."""
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
