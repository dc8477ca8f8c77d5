"""The SPE driver of Linux 6.18."""

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
    """The driver does not take this SPU."""


class Linux:
    """One event, which has all of memory for its buffer; and a reader that takes at once what it is told of.

    Unlike those of Linux 6.1 and 6.12 it writes PMBPTR_EL1 and PMBSR_EL1 while the Profiling Buffer is disabled, and
    has an ISB between pointer and limit.

    Attributes
    ----------
    event_filter : int
        Events that can be filtered by.
    discard : bool
        Whether there are events that only count.
    data : bytearray
        What has been read.
    truncated, collision : bool
        What the reader has been told of.
    messages : list of str
    """

    def __init__(self, cpu: CPU):
        self._cpu = cpu
        self._probe()
        self.data = bytearray()
        self.truncated = self.collision = False
        self.messages: list[str] = []
        self._filters = Filters()
        self._pmsirr = 0
        self._left = 0
        # Where the buffer's next byte goes: it runs on. Whether the SPU has the buffer.
        self._head = 0
        self._given = False

    def _probe(self) -> None:
        cpu = self._cpu
        identification = PMBIDR_EL1.unpack(cpu.mrs(PMBIDR_EL1))
        if identification.P:
            raise UnsupportedSPU("the Profiling Buffer is that of a higher Exception level")
        self._align = 1 << identification.Align
        if self._align > _ALIGN_MOST:
            raise UnsupportedSPU(f"alignment {self._align}")
        self._has = PMSIDR_EL1.unpack(cpu.mrs(PMSIDR_EL1))
        self._largest = 1 << self._has.MaxSize
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
        """A new event. Its first interval is the user's own period, whatever it is; the others can be programmed."""
        least, most = _PERIODS
        self._filters = filters
        self._left = period
        self._pmsirr = min(max(period, least), most) & PMSIRR_EL1.fields["INTERVAL"].mask | PMSIRR_EL1.pack(RND=jitter)

    def start(self) -> None:
        cpu, filters = self._cpu, self._filters
        if filters.discard:
            cpu.msr(PMBLIMITR_EL1, PMBLIMITR_EL1.pack(FM=FM.DISCARD, E=1))
        else:
            self._begin()
        cpu.msr(PMSFCR_EL1, filters.pmsfcr)
        cpu.msr(PMSEVFR_EL1, filters.pmsevfr)
        if self._has.FnE:
            cpu.msr(PMSNEVFR_EL1, filters.pmsnevfr)
        if self._has.FDS:
            cpu.msr(PMSDSFR_EL1, filters.pmsdsfr)
        cpu.msr(PMSLATFR_EL1, filters.pmslatfr)
        cpu.msr(PMSIRR_EL1, self._pmsirr)
        cpu.isb()
        cpu.msr(PMSICR_EL1, self._left)
        cpu.isb()
        cpu.msr(PMSCR_EL1, PMSCR_EL1.pack(E0SPE=1, PA=1, TS=1))

    def stop(self) -> None:
        """What is left of the interval is for the next start."""
        cpu = self._cpu
        disable_and_drain(self._cpu)
        if self._given:
            status = self._fault()
            self._end()
            if status.S:
                cpu.msr(PMBSR_EL1, 0)
        self._left = cpu.mrs(PMSICR_EL1)

    def interrupt(self) -> bool:
        """The handler: False if the SPU does not want to be served."""
        cpu = self._cpu
        status = self._fault()
        if not status.S:
            return False
        self._end()
        cpu.msr(PMBLIMITR_EL1, 0)
        cpu.isb()
        cpu.msr(PMBSR_EL1, 0)
        if status.EC != EC.OTHER or status.MSS != BSC.BUFFER_FILLED:
            self.messages.append(f"EC {status.EC:#x}, MSS {status.MSS:#x}")
            cpu.msr(PMSCR_EL1, 0)
        elif not status.DL:
            self._begin()
        return True

    def _fault(self) -> Any:
        """PMBSR_EL1, after all that has been sampled is in memory."""
        cpu = self._cpu
        cpu.psb_csync()
        cpu.dsb()
        cpu.isb()
        status = PMBSR_EL1.unpack(cpu.mrs(PMBSR_EL1))
        if status.S:
            self.truncated |= bool(status.DL)
            self.collision |= bool(status.COLL)
        return status

    def _begin(self) -> None:
        """The SPU may fill the rest of a half of the buffer, or the other if no record fits. Zeros fill the gap."""
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
        self._given = True

    def _end(self) -> None:
        """The reader gets what the SPU has written."""
        cpu = self._cpu
        first = cpu.memory.start + self._head % len(cpu.memory)
        data = cpu.load(first, cpu.mrs(PMBPTR_EL1))
        self.data += data
        self._head += len(data)
        self._given = False
