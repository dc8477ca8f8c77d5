"""System calls on signals: dispositions, the signal mask, and signals that the program sends to itself.

Ref: Linux kernel/signal.c, include/uapi/asm-generic/signal.h.
"""

import errno
from collections.abc import Callable

from ...perf.process import PID
from .guest import Call, Guest, Int, NotEmulatedError

__all__ = ["SIGPIPE", "SignalCalls"]

SIGPIPE = 13
_SIGKILL, _SIGSTOP, _LAST = 9, 19, 64
_UNBLOCKABLE = 1 << _SIGKILL - 1 | 1 << _SIGSTOP - 1
_IGNORED_BY_DEFAULT = {17, 18, 23, 28}  # SIGCHLD, SIGCONT, SIGURG, SIGWINCH
_STOP_BY_DEFAULT = {_SIGSTOP, 20, 21, 22}  # SIGTSTP, SIGTTIN, SIGTTOU
_SIG_DFL, _SIG_IGN = 0, 1
_SIG_BLOCK, _SIG_UNBLOCK, _SIG_SETMASK = 0, 1, 2
_SET_BYTES = 8  # size of sigset_t: one bit for each of the 64 signals
_STATUS = 128  # added to the signal: exit status, as in a shell
_SS_DISABLE, _SS_AUTODISARM = 2, 1 << 31
_MINSIGSTKSZ = 5120  # minimum size of an alternate signal stack on AArch64
_INIT = 1  # PID to which a program without privileges cannot send signals


class SignalCalls:
    """System calls on signals. No other process sends signals to the program. Handlers are not emulated.

    Parameters
    ----------
    guest : Guest
    exit_ : callable
        Ends the program with an exit status.

    Attributes
    ----------
    pending : set of int
        Pending signals: signals that were sent and are blocked.
    """

    def __init__(self, guest: Guest, exit_: Callable[[int], None]) -> None:
        self._guest = guest
        self._exit = exit_
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
        """Send a signal to the program. Raise NotEmulatedError if the signal has a handler."""
        self._check_no_handler(number)
        self.pending.add(number)
        self._deliver_unblocked()

    def kill(self, pid: Int, number: Int) -> int:
        if pid == _INIT:
            return -errno.EPERM
        return self._send_checked(pid in (PID, 0, -PID), number)

    def tkill(self, tid: Int, number: Int) -> int:
        return -errno.EINVAL if tid <= 0 else self._send_checked(tid == PID, number)

    def tgkill(self, group: Int, tid: Int, number: Int) -> int:
        return -errno.EINVAL if min(group, tid) <= 0 else self._send_checked(group == tid == PID, number)

    def sigaltstack(self, new: int, old: int) -> int:
        previous = self._stack
        if new:
            address, flags, size = self._guest.unpack("QI4xQ", new)
            if flags & ~_SS_AUTODISARM not in (0, _SS_DISABLE):
                return -errno.EINVAL
            if not flags & _SS_DISABLE and size < _MINSIGSTKSZ:
                return -errno.ENOMEM
            self._stack = (0, flags, 0) if flags & _SS_DISABLE else (address, flags, size)
        if old:
            self._guest.pack("QI4xQ", old, *previous)
        return 0

    def rt_sigaction(self, number: Int, new: int, old: int, size: int) -> int:
        if size != _SET_BYTES or not 0 < number <= _LAST or (new and _UNBLOCKABLE >> number - 1 & 1):
            return -errno.EINVAL
        previous = self._actions.get(number, (0, 0, 0, 0))
        if new:
            handler, flags, restorer, mask = self._guest.unpack("4Q", new)
            self._actions[number] = (handler, flags, restorer, mask)
        if old:
            self._guest.pack("4Q", old, *previous)
        return 0

    def rt_sigprocmask(self, how: Int, new: int, old: int, size: int) -> int:
        if size != _SET_BYTES:
            return -errno.EINVAL
        previous = self._mask
        if new:
            (selected,) = self._guest.unpack("Q", new)
            if how not in (_SIG_BLOCK, _SIG_UNBLOCK, _SIG_SETMASK):
                return -errno.EINVAL
            mask = (previous | selected, previous & ~selected, selected)[how]
            self._mask = mask & ~_UNBLOCKABLE
        if old:
            self._guest.pack("Q", old, previous)
        self._deliver_unblocked()
        return 0

    def _send_checked(self, exists: bool, number: int) -> int:
        """Send a signal if it is valid and its target `exists`. Return the result of the system call."""
        if not 0 <= number <= _LAST:
            return -errno.EINVAL
        if not exists:
            return -errno.ESRCH
        if number:
            self.send(number)
        return 0

    def _handler(self, number: int) -> int:
        return self._actions[number][0] if number in self._actions else _SIG_DFL

    def _check_no_handler(self, number: int) -> None:
        if self._handler(number) not in (_SIG_DFL, _SIG_IGN):
            raise NotEmulatedError(errno.ENOSYS, f"with a handler of signal {number}")

    def _deliver_unblocked(self) -> None:
        for number in sorted(self.pending):
            if not self._mask >> number - 1 & 1:
                self.pending.remove(number)
                self._deliver(number)

    def _deliver(self, number: int) -> None:
        """Execute the action of an unblocked signal."""
        self._check_no_handler(number)
        if self._handler(number) == _SIG_IGN or number in _IGNORED_BY_DEFAULT:
            return
        if number in _STOP_BY_DEFAULT:
            raise NotEmulatedError(errno.ENOSYS, "to stop the program")
        self._exit(_STATUS + number)
