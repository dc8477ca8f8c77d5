"""The library of `library.py` as Python sees it."""

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
    """What an event leaves out."""

    USER = 1
    KERNEL = 2
    HV = 4


class Start(IntFlag):
    """PERF_EF_*."""

    RELOAD = 2
    UPDATE = 4


class IRQReturn(IntEnum):
    """What an interrupt handler says: irqreturn_t."""

    NONE = 0
    HANDLED = 1


class AuxRecord(NamedTuple):
    """PERF_RECORD_AUX: so many bytes are new in the AUX buffer, from an offset that runs on when the buffer wraps."""

    offset: int
    size: int
    flags: AuxFlag


class _AuxRecord(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in AuxRecord._fields]


_READ = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint32)
_WRITE = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint64)
_TEXT = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


class LinuxDriver:
    """A driver that is loaded, with state of its own, and the core of perf that calls it.

    What raises in a callback does not travel through C: the call that led to it raises it when it returns.

    Parameters
    ----------
    library : Path
    read, write : functions
        Of System registers, by their encodings in an instruction: op0, op1, CRn, CRm and op2 from bit 19 downward.
    barrier : function
        Of "ISB", "PSB CSYNC", "DSB nsh".
    message : function
        Of the text of an error or a warning.
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
            _READ(self._kept(read, 0)),
            _WRITE(self._kept(write, None)),
            _TEXT(self._kept(lambda name: barrier(name.decode()), None)),
            _TEXT(self._kept(lambda line: message(line.decode()), None)),
        )
        self._library.spe_set_callbacks(*self._callbacks)
        for name in ("page_size", "aux_base", "aux_size", "aux_head"):
            getattr(self._library, f"spe_{name}").restype = ctypes.c_uint64

    def _kept(self, function: Callable[..., Any], default: Any) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except BaseException as error:
                self._error = self._error or error
                return default

        return call

    def call(self, name: str, *arguments: Any) -> int:
        """A function of the library."""
        answer = getattr(self._library, f"spe_{name}")(*arguments)
        error, self._error = self._error, None
        if error is not None:
            raise error
        return answer

    def set_options(self, *, pid_in_contextidr: bool = False, act_on_truncate: bool = True) -> None:
        """CONFIG_PID_IN_CONTEXTIDR; and whether the core of perf stops an event whose buffer overran, as it is meant
        to. Linux 6.12 forgets to, and 6.1 does on CPU 0.
        """
        self.call("set_options", int(pid_in_contextidr), int(act_on_truncate))

    def probe(self) -> int:
        """Load the module, and have it find the SPU."""
        return self.call("probe")

    def remove(self) -> None:
        """Unload it, and what events there are with it."""
        self.call("remove")

    def cpu(self, online: bool) -> int:
        """The CPU goes, or comes back."""
        return self.call("cpu", int(online))

    def interrupt(self) -> int:
        """PMBIRQ: what the handler says, of `IRQReturn`."""
        return self.call("irq")

    @property
    def page_size(self) -> int:
        return self.call("page_size")


class PerfEvent:
    """An event, with an AUX buffer of its own. At most one is scheduled in.

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
        """perf_event_open: a new event in place of the last one. `exclude` is of `Exclude`."""
        numbers = map(ctypes.c_uint64, (config, config1, config2, config3, sample_period))
        return self._call("event_init", *numbers, exclude)

    def aux_setup(self, pages: int, *, snapshot: bool = False, watermark: int = 0) -> int:
        """mmap of its AUX buffer. The reader is to be woken whenever `watermark` more bytes are there; 0 is half of
        the buffer.
        """
        return self._call("aux_setup", pages, int(snapshot), ctypes.c_ulong(watermark))

    def add(self) -> int:
        """The event is scheduled in, and starts."""
        return self._call("add")

    def delete(self) -> None:
        """It is scheduled out."""
        self._call("del")

    def start(self, flags: int = 0) -> None:
        """`flags` of `Start`, as for `stop`."""
        self._call("start", flags)

    def stop(self, flags: int = 0) -> None:
        self._call("stop", flags)

    def set_period(self, period: int) -> None:
        """PERF_EVENT_IOC_PERIOD."""
        self._call("set_period", ctypes.c_uint64(period))

    @property
    def active(self) -> bool:
        """It is scheduled in, as perf sees it."""
        return bool(self._call("active"))

    @property
    def aux_base(self) -> int:
        return self._call("aux_base")

    @property
    def aux_size(self) -> int:
        return self._call("aux_size")

    @property
    def aux_head(self) -> int:
        """Where the kernel is; like the tail and offsets it runs on when the buffer wraps."""
        return self._call("aux_head")

    def set_aux_tail(self, tail: int) -> None:
        """Where the reader is."""
        self._call("aux_set_tail", ctypes.c_uint64(tail))

    def aux_records(self) -> list[AuxRecord]:
        """All there have been."""
        count = self._call("aux_records", None, 0)
        records = (_AuxRecord * count)()
        self._call("aux_records", records, count)
        return [AuxRecord(record.offset, record.size, AuxFlag(record.flags)) for record in records]
