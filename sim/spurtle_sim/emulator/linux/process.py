"""System calls on the process: identity, limits, its only thread, and exit.

Ref: Linux kernel/sys.c, kernel/futex/syscalls.c, kernel/sched/syscalls.c;
include/uapi/linux/{futex,prctl,resource,sysinfo}.h.
"""

import errno
import os
import random
from collections.abc import Callable

from ...perf.process import PID
from .clock import Clock
from .descriptors import DESCRIPTORS
from .guest import WRITE, Call, Guest, Int, NotEmulatedError, UInt
from .memory import LIMIT, MemoryCalls

__all__ = ["ProcessCalls"]

_PARENT = 1
_UNAME = ("Linux", "spurtle", "6.1.0", "#1", "aarch64", "(none)")
_INFINITY = 2**64 - 1
_RLIMIT_STACK, _RLIMIT_CORE, _RLIMIT_NOFILE, _RLIMITS = 3, 4, 7, 16
_LIMITS = {_RLIMIT_STACK: 8 << 20, _RLIMIT_CORE: 0, _RLIMIT_NOFILE: DESCRIPTORS}
_RANDOM_BYTES = 33_554_431  # maximum of one call of getrandom in Linux
_PR_SET_NAME, _PR_GET_NAME, _NAME_BYTES = 15, 16, 16
_FUTEX_WAIT, _FUTEX_WAKE, _FUTEX_WAIT_BITSET, _FUTEX_WAKE_BITSET = 0, 1, 9, 10
_FUTEX_FLAGS = 0x180  # FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME
_ROBUST_LIST_BYTES = 24  # size of struct robust_list_head
_CPU_SET_BYTES = 8  # size of the affinity mask: the kernel uses 64-bit words, and one is enough for one CPU


class ProcessCalls:
    """System calls on the process, which has one thread and one CPU. It has the user and group of the host process.

    Parameters
    ----------
    guest : Guest
    memory : MemoryCalls
    clock : Clock
    name : str
        Name of the program, for PR_GET_NAME.
    seed : int
        Seed of the random bytes.
    exit_ : callable
        Ends the program with an exit status.
    """

    def __init__(
        self, guest: Guest, memory: MemoryCalls, clock: Clock, *, name: str, seed: int, exit_: Callable[[int], None]
    ) -> None:
        self._guest = guest
        self._memory = memory
        self._clock = clock
        self._name = os.fsencode(name)[: _NAME_BYTES - 1]
        self._random = random.Random(seed)
        self._exit = exit_
        self._umask = 0o022
        self.calls: tuple[Call, ...] = (
            *(self.exit, self.exit_group, self.set_tid_address, self.set_robust_list, self.rseq, self.futex),
            *(self.sched_getaffinity, self.sched_yield, self.getcpu),
            *(self.getpid, self.getppid, self.gettid, self.getpgid, self.getsid),
            *(self.getuid, self.geteuid, self.getgid, self.getegid, self.getgroups, self.setuid, self.setgid),
            *(self.umask, self.prctl),
            *(self.uname, self.sysinfo, self.prlimit64, self.getrandom),
        )

    # The thread.

    def exit(self, status: int) -> int:
        self._exit(status & 0xFF)
        return 0

    def exit_group(self, status: int) -> int:
        return self.exit(status)

    def set_tid_address(self, _address: int) -> int:
        return PID  # Linux writes to the address only if the thread ends before the process

    def set_robust_list(self, _head: int, length: int) -> int:
        return 0 if length == _ROBUST_LIST_BYTES else -errno.EINVAL  # Linux uses the list to wake other threads

    def rseq(self) -> int:
        return -errno.ENOSYS  # as Linux without CONFIG_RSEQ

    def futex(self, address: int, operation: Int, value: UInt, timeout: int) -> int:
        command = operation & ~_FUTEX_FLAGS
        if command not in (_FUTEX_WAIT, _FUTEX_WAKE, _FUTEX_WAIT_BITSET, _FUTEX_WAKE_BITSET):
            raise NotEmulatedError(errno.ENOSYS, f"with operation {command}")
        if address % 4:
            return -errno.EINVAL
        if command in (_FUTEX_WAKE, _FUTEX_WAKE_BITSET):
            return 0  # no other thread can wait
        if self._guest.unpack("I", address) != (value,):
            return -errno.EAGAIN
        if not timeout:
            raise NotEmulatedError(errno.ENOSYS, "to wait for another thread")
        duration = self._clock.read_timespec(timeout)
        self._clock.sleep(duration if command == _FUTEX_WAIT else duration - self._clock.now)
        return -errno.ETIMEDOUT

    def sched_getaffinity(self, pid: Int, length: UInt, mask: int) -> int:
        if length < _CPU_SET_BYTES or length % 8:
            return -errno.EINVAL
        _check_process(pid)
        self._guest.pack("Q", mask, 1)
        return _CPU_SET_BYTES

    def sched_yield(self) -> int:
        return 0

    def getcpu(self, cpu: int, node: int) -> int:
        for address in (cpu, node):
            if address:
                self._guest.pack("I", address, 0)
        return 0

    # Identity.

    def getpid(self) -> int:
        return PID

    def getppid(self) -> int:
        return _PARENT

    def gettid(self) -> int:
        return PID

    def getpgid(self, pid: Int) -> int:
        _check_process(pid)
        return PID

    def getsid(self, pid: Int) -> int:
        _check_process(pid)
        return _PARENT

    def getuid(self) -> int:
        return os.getuid()

    def geteuid(self) -> int:
        return os.geteuid()

    def getgid(self) -> int:
        return os.getgid()

    def getegid(self) -> int:
        return os.getegid()

    def getgroups(self, count: Int, groups: int) -> int:
        host_groups = os.getgroups()
        if count < 0 or (count and count < len(host_groups)):
            return -errno.EINVAL
        if count:
            self._guest.pack(f"{len(host_groups)}I", groups, *host_groups)
        return len(host_groups)

    def setuid(self, user: UInt) -> int:
        if user != os.getuid():
            raise NotEmulatedError(errno.EPERM, "for another user")
        return 0

    def setgid(self, group: UInt) -> int:
        if group != os.getgid():
            raise NotEmulatedError(errno.EPERM, "for another group")
        return 0

    def umask(self, mask: Int) -> int:
        previous, self._umask = self._umask, mask & 0o777
        return previous

    def prctl(self, option: Int, address: int) -> int:
        if option == _PR_GET_NAME:
            self._guest.write(address, self._name.ljust(_NAME_BYTES, b"\0"))
        elif option == _PR_SET_NAME:
            self._name = os.fsencode(self._guest.read_string(address))[: _NAME_BYTES - 1]
        else:
            raise NotEmulatedError(errno.EINVAL, f"with option {option}")
        return 0

    # The machine.

    def uname(self, result: int) -> int:
        self._guest.write(result, b"".join(field.encode().ljust(65, b"\0") for field in _UNAME))
        return 0

    def sysinfo(self, result: int) -> int:
        uptime, free = self._clock.now // 10**9, LIMIT - self._memory.mapped_bytes
        self._guest.pack("q3Q6QH6x2QI4x", result, uptime, 0, 0, 0, LIMIT, free, 0, 0, 0, 0, 1, 0, 0, 1)
        return 0

    def prlimit64(self, pid: Int, resource: UInt, new: int, old: int) -> int:
        if resource >= _RLIMITS:
            return -errno.EINVAL
        _check_process(pid)
        limit = (_LIMITS.get(resource, _INFINITY),) * 2
        if new and self._guest.unpack("2Q", new) != limit:
            raise NotEmulatedError(errno.EPERM, f"to change limit {resource}")
        if old:
            self._guest.pack("2Q", old, *limit)
        return 0

    def getrandom(self, buffer: int, length: int) -> int:
        length = self._guest.transfer_bytes(buffer, min(length, _RANDOM_BYTES), WRITE)
        self._guest.write(buffer, self._random.randbytes(length))
        return length


def _check_process(pid: int) -> None:
    """Raise OSError if `pid` is neither zero nor the PID of the only process."""
    if pid not in (0, PID):
        raise OSError(errno.ESRCH, "")
