"""System calls on time. Time advances by one nanosecond per instruction.

Ref: Linux kernel/time/posix-timers.c, include/uapi/linux/time.h.
"""

import errno
from collections.abc import Callable

from .guest import Call, Guest, Int, NotEmulatedError

__all__ = ["Clock"]

_SECOND = 10**9
_LATEST = 1 << 62  # maximum total of all sleeps, in nanoseconds
_TICK = _SECOND // 100  # USER_HZ
_CPU_CLOCKS = (2, 3)  # CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID
_WALL_CLOCKS = (0, 1, 4, 5, 6, 7, 8, 9, 11)  # the others of CLOCK_*; 10 is unused
_SLEEP_CLOCKS = (0, 1, 7, 8, 9, 11)
_TIMER_ABSTIME = 1


class Clock:
    """Clock of the program. A sleep returns immediately, and the clock advances by its duration.

    Parameters
    ----------
    guest : Guest
    cpu_time : callable
        Returns the CPU time in nanoseconds: one nanosecond per instruction.
    """

    def __init__(self, guest: Guest, cpu_time: Callable[[], int]) -> None:
        self._guest = guest
        self._cpu_time = cpu_time
        self._slept = 0
        self.calls: tuple[Call, ...] = (
            self.nanosleep,
            self.clock_gettime,
            self.clock_getres,
            self.clock_nanosleep,
            self.gettimeofday,
            self.times,
        )

    @property
    def now(self) -> int:
        """Nanoseconds since the program started."""
        return self._cpu_time() + self._slept

    def sleep(self, nanoseconds: int) -> None:
        """Advance the clock by `nanoseconds`. A negative duration has no effect.

        The total of all sleeps saturates, so that the time fits in the signed 64-bit nanoseconds of Linux.
        """
        self._slept = min(self._slept + max(nanoseconds, 0), _LATEST)

    def read_timespec(self, address: int) -> int:
        """Return the nanoseconds of the timespec at `address`. Raise OSError if it is not valid."""
        seconds, nanoseconds = self._guest.unpack("2q", address)
        if seconds < 0 or not 0 <= nanoseconds < _SECOND:
            raise OSError(errno.EINVAL, "")
        return seconds * _SECOND + nanoseconds

    def nanosleep(self, request: int) -> int:
        self.sleep(self.read_timespec(request))
        return 0

    def clock_gettime(self, clock: Int, result: int) -> int:
        self._check(clock)
        now = self._cpu_time() if clock in _CPU_CLOCKS else self.now
        self._guest.pack("2q", result, *divmod(now, _SECOND))
        return 0

    def clock_getres(self, clock: Int, result: int) -> int:
        self._check(clock)
        if result:
            self._guest.pack("2q", result, 0, 1)
        return 0

    def clock_nanosleep(self, clock: Int, flags: Int, request: int) -> int:
        self._check(clock)
        if clock not in _SLEEP_CLOCKS:
            raise NotEmulatedError(errno.ENOTSUP, f"on clock {clock}")
        duration = self.read_timespec(request)
        self.sleep(duration - self.now if flags & _TIMER_ABSTIME else duration)
        return 0

    def gettimeofday(self, result: int, zone: int) -> int:
        seconds, nanoseconds = divmod(self.now, _SECOND)
        if result:
            self._guest.pack("2q", result, seconds, nanoseconds // 1000)
        if zone:
            self._guest.pack("2i", zone, 0, 0)
        return 0

    def times(self, result: int) -> int:
        if result:
            self._guest.pack("4q", result, self._cpu_time() // _TICK, 0, 0, 0)
        return self.now // _TICK

    def _check(self, clock: int) -> None:
        if clock < 0:
            raise NotEmulatedError(errno.EINVAL, "on the clock of a process or device")
        if clock not in (*_CPU_CLOCKS, *_WALL_CLOCKS):
            raise OSError(errno.EINVAL, "")
