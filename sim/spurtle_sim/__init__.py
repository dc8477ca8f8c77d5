"""Tools for the Spurtle SPU: reference model, decoder, compiled SPU, profiler and command-line interface."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .perf.reader import read_perf_data
    from .profile.run import run_profile
    from .records.decode import decode_records as decode
    from .records.encode import encode
else:
    # Each name is imported on first use, so a program that decodes records loads neither Amaranth nor the emulator.
    from spurtle.support.lazy import lazy

    __getattr__, __dir__ = lazy(
        __name__,
        {
            "decode": "records.decode:decode_records",
            "encode": "records.encode:encode",
            "read_perf_data": "perf.reader:read_perf_data",
            "run_profile": "profile.run:run_profile",
        },
    )

__all__ = ["decode", "encode", "read_perf_data", "run_profile"]
