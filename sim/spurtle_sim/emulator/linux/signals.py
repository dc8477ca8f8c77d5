"""System calls on signals: dispositions, the mask, and signals that the program sends to itself."""

# Ref: Linux kernel/signal.c, include/uapi/asm-generic/signal.h.

import errno
from collections.abc import Callable

from ...perf.process import PID
from .guest import Call, Guest, Int, NotEmulatedError

__all__ = ["SIGPIPE", "Signals"]

SIGPIPE = 13
_SIGKILL, _SIGSTOP, _LAST = 9, 19, 64
_UNBLOCKABLE = 1 << _SIGKILL - 1 | 1 << _SIGSTOP - 1
_IGNORED_BY_DEFAULT = {17, 18, 23, 28}  # SIGCHLD, SIGCONT, SIGURG, SIGWINCH
_STOP_BY_DEFAULT = {_SIGSTOP, 20, 21, 22}  # SIGTSTP, SIGTTIN, SIGTTOU
_SIG_DFL, _SIG_IGN = 0, 1
_SIG_BLOCK, _SIG_UNBLOCK, _SIG_SETMASK = 0, 1, 2
_SET_BYTES = 8
_STATUS = 128  # + signal: exit status as a shell shows it
_SS_DISABLE, _SS_AUTODISARM = 2, 1 << 31
_MINSIGSTKSZ = 5120
_INIT = 1


class Signals:
    """Signals of the program. No other process sends one, and no handler runs.

    Parameters
    ----------
    guest : Guest
    end : callable
        Ends the program with an exit status.

    Attributes
    ----------
    pending : set of int
        Signals that are blocked and have been sent.
    """

    def __init__(self, guest: Guest, end: Callable[[int], None]) -> None:
        self._guest = guest
        self._end = end
        self._actions: dict[int, tuple[int, int, int, int]] = {}  # handler, flags, restorer, mask
        self._mask = 0
        self.pending: set[int] = set()
        self._stack = (0, _SS_DISABLE, 0)  # address, flags, size
        self.calls: tuple[Call, ...] = (
            self.kill,
            self.tkill,
            self.tgkill,
            self.sigaltstack,
            self.rt_sigaction,
            self.rt_sigprocmask,
        )

    def send(self, number: int) -> None:
        """Send a signal to the program. Raises NotEmulatedError if its handler would run."""
        self._refuse_handler(number)
        self.pending.add(number)
        self._deliver_unblocked()

    def kill(self, pid: Int, number: Int) -> int:
        if pid == _INIT:
            return -errno.EPERM
        return self._send_to_itself(pid in (PID, 0, -PID), number)

    def tkill(self, tid: Int, number: Int) -> int:
        return -errno.EINVAL if tid <= 0 else self._send_to_itself(tid == PID, number)

    def tgkill(self, group: Int, tid: Int, number: Int) -> int:
        return -errno.EINVAL if min(group, tid) <= 0 else self._send_to_itself(group == tid == PID, number)

    def sigaltstack(self, new: int, old: int) -> int:
        before = self._stack
        if new:
            address, flags, size = self._guest.unpack("QI4xQ", new)
            if flags & ~_SS_AUTODISARM not in (0, _SS_DISABLE):
                return -errno.EINVAL
            if not flags & _SS_DISABLE and size < _MINSIGSTKSZ:
                return -errno.ENOMEM
            self._stack = (0, flags, 0) if flags & _SS_DISABLE else (address, flags, size)
        if old:
            self._guest.pack("QI4xQ", old, *before)
        return 0

    def rt_sigaction(self, number: Int, new: int, old: int, size: int) -> int:
        if size != _SET_BYTES or not 0 < number <= _LAST or (new and _UNBLOCKABLE >> number - 1 & 1):
            return -errno.EINVAL
        before = self._actions.get(number, (0, 0, 0, 0))
        if new:
            handler, flags, restorer, mask = self._guest.unpack("4Q", new)
            self._actions[number] = (handler, flags, restorer, mask)
        if old:
            self._guest.pack("4Q", old, *before)
        return 0

    def rt_sigprocmask(self, how: Int, new: int, old: int, size: int) -> int:
        if size != _SET_BYTES:
            return -errno.EINVAL
        before = self._mask
        if new:
            (chosen,) = self._guest.unpack("Q", new)
            if how not in (_SIG_BLOCK, _SIG_UNBLOCK, _SIG_SETMASK):
                return -errno.EINVAL
            mask = (before | chosen, before & ~chosen, chosen)[how]
            self._mask = mask & ~_UNBLOCKABLE
        if old:
            self._guest.pack("Q", old, before)
        self._deliver_unblocked()
        return 0

    def _send_to_itself(self, itself: bool, number: int) -> int:
        if not 0 <= number <= _LAST:
            return -errno.EINVAL
        if not itself:
            return -errno.ESRCH
        if number:
            self.send(number)
        return 0

    def _handler(self, number: int) -> int:
        return self._actions[number][0] if number in self._actions else _SIG_DFL

    def _refuse_handler(self, number: int) -> None:
        if self._handler(number) not in (_SIG_DFL, _SIG_IGN):
            raise NotEmulatedError(errno.ENOSYS, f"with a handler of signal {number}")

    def _deliver_unblocked(self) -> None:
        for number in sorted(self.pending):
            if not self._mask >> number - 1 & 1:
                self.pending.remove(number)
                self._deliver(number)

    def _deliver(self, number: int) -> None:
        """Take the action of an unblocked signal."""
        self._refuse_handler(number)
        if self._handler(number) == _SIG_IGN or number in _IGNORED_BY_DEFAULT:
            return
        if number in _STOP_BY_DEFAULT:
            raise NotEmulatedError(errno.ENOSYS, "to stop the program")
        self._end(_STATUS + number)
