"""Python binding of the library that `library.py` builds."""

import ctypes
import shutil
import tempfile
from collections.abc import Callable
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["AuxFlag", "AuxRecord", "Exclude", "IRQReturn", "LinuxDriver", "PerfEvent", "Start"]


class AuxFlag(IntFlag):
    """PERF_AUX_FLAG_*."""

    TRUNCATED = 1
    OVERWRITE = 2
    PARTIAL = 4
    COLLISION = 8


class Exclude(IntFlag):
    """Exception levels that an event excludes: exclude_user, exclude_kernel and exclude_hv."""

    USER = 1
    KERNEL = 2
    HV = 4


class Start(IntFlag):
    """PERF_EF_*."""

    RELOAD = 2
    UPDATE = 4


class IRQReturn(IntEnum):
    """Return values of an interrupt handler: irqreturn_t."""

    NONE = 0
    HANDLED = 1


class AuxRecord(NamedTuple):
    """PERF_RECORD_AUX: new data in the AUX buffer.

    Members
    -------
    offset : int
        Offset of the data. It does not wrap with the buffer.
    size : int
        Size in bytes.
    flags : AuxFlag
    """

    offset: int
    size: int
    flags: AuxFlag


class _AuxRecord(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in AuxRecord._fields]


_READ = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint32)
_WRITE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint64)
_TEXT = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


class LinuxDriver:
    """A loaded driver, with its own state, and the perf core that calls it.

    An exception in a callback cannot propagate through C. The call that led to the callback raises it when it returns.

    Parameters
    ----------
    library : Path
    read, write : callable
        Read and write a System register, named by its encoding in MRS and MSR: op0, op1, CRn, CRm and op2 from bit 19
        downward.
    barrier : callable
        Execute "ISB", "PSB CSYNC" or "DSB nsh".
    message : callable
        Receive the text of an error or a warning.
    """

    def __init__(
        self,
        library: Path,
        *,
        read: Callable[[int], int],
        write: Callable[[int, int], None],
        barrier: Callable[[str], None],
        message: Callable[[str], None],
    ):
        with tempfile.NamedTemporaryFile(suffix=".so") as own:
            shutil.copyfile(library, own.name)
            self._library = ctypes.CDLL(own.name)
        self._error: BaseException | None = None
        self._callbacks = (
            _READ(self._guarded(read, 0)),
            _WRITE(self._guarded(write, None)),
            _TEXT(self._guarded(lambda name: barrier(name.decode()), None)),
            _TEXT(self._guarded(lambda line: message(line.decode()), None)),
        )
        self._library.spe_set_callbacks(*self._callbacks)
        for name in ("page_size", "aux_base", "aux_size", "aux_head"):
            getattr(self._library, f"spe_{name}").restype = ctypes.c_uint64

    def _guarded(self, function: Callable[..., Any], default: Any) -> Callable[..., Any]:
        """Return a callback that stores an exception of `function` and returns `default` then."""

        def call(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except BaseException as error:
                self._error = self._error or error
                return default

        return call

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function of the library."""
        result = getattr(self._library, f"spe_{name}")(*arguments)
        error, self._error = self._error, None
        if error is not None:
            raise error
        return result

    def set_options(self, *, pid_in_contextidr: bool = False, act_on_truncate: bool = True) -> None:
        """Set options of the kernel.

        Parameters
        ----------
        pid_in_contextidr : bool
            CONFIG_PID_IN_CONTEXTIDR.
        act_on_truncate : bool
            Whether the perf core stops an event whose buffer has overrun. Linux 6.12 does not, nor does Linux 6.1 on
            CPU 0, although both are meant to.
        """
        self.call("set_options", int(pid_in_contextidr), int(act_on_truncate))

    def probe(self) -> int:
        """Load the module, which probes the SPU. Return 0 or a negative error number."""
        return self.call("probe")

    def remove(self) -> None:
        """Delete all events and unload the module."""
        self.call("remove")

    def cpu(self, online: bool) -> int:
        """Take the CPU offline or online."""
        return self.call("cpu", int(online))

    def interrupt(self) -> int:
        """Take the interrupt PMBIRQ. Return the `IRQReturn` of the handler, or a negative error number."""
        return self.call("irq")

    @property
    def page_size(self) -> int:
        """Size of a page of the kernel in bytes."""
        return self.call("page_size")


class PerfEvent:
    """A perf event with its AUX buffer. At most one event is scheduled in.

    Parameters
    ----------
    driver : LinuxDriver
    number : int
        0 or 1.
    """

    def __init__(self, driver: LinuxDriver, number: int):
        self._driver = driver
        self._number = number

    def _call(self, name: str, *arguments: Any) -> int:
        return self._driver.call(name, self._number, *arguments)

    def event_init(
        self,
        *,
        config: int = 0,
        config1: int = 0,
        config2: int = 0,
        config3: int = 0,
        sample_period: int,
        exclude: int = 0,
    ) -> int:
        """Open an event in place of the present one: perf_event_open.

        Return 0 or a negative error number. The parameters are those of perf_event_attr; `exclude` is of `Exclude`.
        """
        numbers = map(ctypes.c_uint64, (config, config1, config2, config3, sample_period))
        return self._call("event_init", *numbers, exclude)

    def aux_setup(self, pages: int, *, snapshot: bool = False, watermark: int = 0) -> int:
        """Map the AUX buffer: mmap. Return 0 or a negative error number.

        The reader is woken whenever `watermark` more bytes are available; 0 stands for half of the buffer.
        """
        return self._call("aux_setup", pages, int(snapshot), ctypes.c_ulong(watermark))

    def add(self) -> int:
        """Schedule the event in and start it. Return 0 or a negative error number."""
        return self._call("add")

    def delete(self) -> None:
        """Schedule the event out."""
        self._call("del")

    def start(self, flags: int = 0) -> None:
        """Start the event. `flags` are of `Start`."""
        self._call("start", flags)

    def stop(self, flags: int = 0) -> None:
        """Stop the event. `flags` are of `Start`."""
        self._call("stop", flags)

    def set_period(self, period: int) -> None:
        """Change the sample period: PERF_EVENT_IOC_PERIOD."""
        self._call("set_period", ctypes.c_uint64(period))

    @property
    def active(self) -> bool:
        """Whether the event is scheduled in, as perf has it."""
        return bool(self._call("active"))

    @property
    def aux_base(self) -> int:
        """Address of the AUX buffer in this process."""
        return self._call("aux_base")

    @property
    def aux_size(self) -> int:
        """Size of the AUX buffer in bytes."""
        return self._call("aux_size")

    @property
    def aux_head(self) -> int:
        """Offset up to which the kernel has written. Like the tail, it does not wrap with the buffer."""
        return self._call("aux_head")

    def set_aux_tail(self, tail: int) -> None:
        """Set the offset up to which the reader has read."""
        self._call("aux_set_tail", ctypes.c_uint64(tail))

    def aux_records(self) -> list[AuxRecord]:
        """Return all AUX records of the event."""
        count = self._call("aux_records", None, 0)
        records = (_AuxRecord * count)()
        self._call("aux_records", records, count)
        return [AuxRecord(record.offset, record.size, AuxFlag(record.flags)) for record in records]
