"""A model of the SPE driver of Linux 6.18."""

from typing import Any

from spurtle.arch import (
    BSC,
    EC,
    FM,
    PMBIDR_EL1,
    PMBLIMITR_EL1,
    PMBPTR_EL1,
    PMBSR_EL1,
    PMSCR_EL1,
    PMSDSFR_EL1,
    PMSEVFR_EL1,
    PMSFCR_EL1,
    PMSICR_EL1,
    PMSIDR_EL1,
    PMSIRR_EL1,
    PMSLATFR_EL1,
    PMSNEVFR_EL1,
    PMSVer,
)
from spurtle_sim.profile.options import Filters
from tests.support.cpu import CPU
from tests.support.drivers import disable_and_drain

__all__ = ["Linux", "UnsupportedSPU"]

_ALL = (1 << 64) - 1
_ALIGN_MOST = 2048
_SIZES = (16, 2048)
_PERIODS = (256, 0xFFFF_FF00)


class UnsupportedSPU(Exception):
    """The driver does not support this SPU."""


class Linux:
    """The driver with one event, whose buffer is all of memory, and a reader that reads new data at once.

    Unlike the drivers of Linux 6.1 and 6.12, it writes PMBPTR_EL1 and PMBSR_EL1 while the Profiling Buffer is disabled,
    and executes an ISB between the writes of the pointer and of the limit.

    Attributes
    ----------
    event_filter : int
        The implemented bits of PMSEVFR_EL1.
    discard : bool
        Whether the driver offers Discard mode.
    data : bytearray
        Data that has been read.
    truncated, collision : bool
        Flags that the reader has received.
    messages : list of str
        Errors in the kernel log.
    """

    def __init__(self, cpu: CPU):
        self._cpu = cpu
        self._probe()
        self.data = bytearray()
        self.truncated = self.collision = False
        self.messages: list[str] = []
        self._filters = Filters()
        self._pmsirr = 0
        self._remaining = 0
        # Offset of the next byte, which does not wrap with the buffer; whether the Profiling Buffer is enabled.
        self._head = 0
        self._running = False

    def _probe(self) -> None:
        cpu = self._cpu
        identification = PMBIDR_EL1.unpack(cpu.mrs(PMBIDR_EL1))
        if identification.P:
            raise UnsupportedSPU("a higher Exception level owns the Profiling Buffer")
        self._align = 1 << identification.Align
        if self._align > _ALIGN_MOST:
            raise UnsupportedSPU(f"alignment of {self._align} bytes")
        self._features = PMSIDR_EL1.unpack(cpu.mrs(PMSIDR_EL1))
        self._largest = 1 << self._features.MaxSize
        if not _SIZES[0] <= self._largest <= _SIZES[1]:
            raise UnsupportedSPU(f"records of {self._largest} bytes")
        self.discard = cpu.config.version >= PMSVer.SPE_V1P2
        cpu.msr(PMSEVFR_EL1, _ALL)
        self.event_filter = cpu.mrs(PMSEVFR_EL1)
        disable_and_drain(self._cpu)
        cpu.msr(PMBPTR_EL1, 0)
        cpu.isb()
        cpu.msr(PMBSR_EL1, 0)
        cpu.isb()

    def open(self, period: int, filters: Filters, *, jitter: bool = False) -> None:
        """Open an event. Its first interval is `period`; the next ones are limited to what PMSIRR_EL1 can hold."""
        least, most = _PERIODS
        self._filters = filters
        self._remaining = period
        self._pmsirr = min(max(period, least), most) & PMSIRR_EL1.fields["INTERVAL"].mask | PMSIRR_EL1.pack(RND=jitter)

    def start(self) -> None:
        """Start the event."""
        cpu, filters = self._cpu, self._filters
        if filters.discard:
            cpu.msr(PMBLIMITR_EL1, PMBLIMITR_EL1.pack(FM=FM.DISCARD, E=1))
        else:
            self._start_buffer()
        cpu.msr(PMSFCR_EL1, filters.pmsfcr)
        cpu.msr(PMSEVFR_EL1, filters.pmsevfr)
        if self._features.FnE:
            cpu.msr(PMSNEVFR_EL1, filters.pmsnevfr)
        if self._features.FDS:
            cpu.msr(PMSDSFR_EL1, filters.pmsdsfr)
        cpu.msr(PMSLATFR_EL1, filters.pmslatfr)
        cpu.msr(PMSIRR_EL1, self._pmsirr)
        cpu.isb()
        cpu.msr(PMSICR_EL1, self._remaining)
        cpu.isb()
        cpu.msr(PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1, PA=1, TS=1))

    def stop(self) -> None:
        """Stop the event. The remaining interval is used for the next start."""
        cpu = self._cpu
        disable_and_drain(self._cpu)
        if self._running:
            status = self._drain_and_read_status()
            self._read_buffer()
            if status.S:
                cpu.msr(PMBSR_EL1, 0)
        self._remaining = cpu.mrs(PMSICR_EL1)

    def interrupt(self) -> bool:
        """Serve the interrupt. Return whether the SPU had raised it."""
        cpu = self._cpu
        status = self._drain_and_read_status()
        if not status.S:
            return False
        self._read_buffer()
        cpu.msr(PMBLIMITR_EL1, 0)
        cpu.isb()
        cpu.msr(PMBSR_EL1, 0)
        if status.EC != EC.OTHER or status.MSS != BSC.BUFFER_FILLED:
            self.messages.append(f"EC {status.EC:#x}, MSS {status.MSS:#x}")
            cpu.msr(PMSCR_EL1, 0)
        elif not status.DL:
            self._start_buffer()
        return True

    def _drain_and_read_status(self) -> Any:
        """Drain the SPU and return PMBSR_EL1."""
        cpu = self._cpu
        cpu.psb_csync()
        cpu.dsb()
        cpu.isb()
        status = PMBSR_EL1.unpack(cpu.mrs(PMBSR_EL1))
        if status.S:
            self.truncated |= bool(status.DL)
            self.collision |= bool(status.COLL)
        return status

    def _start_buffer(self) -> None:
        """Enable the rest of a half of the buffer, or the next half if no record fits. Fill the gap with zeros."""
        cpu, size = self._cpu, len(self._cpu.memory)
        start = -(-self._head // self._align) * self._align
        half = size // 2
        limit = (start // half + 1) * half
        if limit - start < self._largest:
            start, limit = limit, limit + half
        gap = cpu.memory.start + self._head % size
        cpu.clear(gap, gap + start - self._head)
        self._head = start
        first = cpu.memory.start + start % size
        cpu.msr(PMBPTR_EL1, first)
        cpu.isb()
        cpu.msr(PMBLIMITR_EL1, first + limit - start | PMBLIMITR_EL1.pack(E=1))
        self._running = True

    def _read_buffer(self) -> None:
        """Pass the data that the SPU has written to the reader."""
        cpu = self._cpu
        first = cpu.memory.start + self._head % len(cpu.memory)
        data = cpu.load(first, cpu.mrs(PMBPTR_EL1))
        self.data += data
        self._head += len(data)
        self._running = False
