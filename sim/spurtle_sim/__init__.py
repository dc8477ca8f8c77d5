"""Tools around the Spurtle SPU: reference model, decoder, compiled RTL, profiler and command-line interface."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .profile.run import run_profile
    from .records.decode import decode_records as decode
    from .records.encode import encode
else:
    # Each name is imported when it is first used: a program that decodes records loads no Amaranth and no emulator.
    from spurtle.support.lazy import lazy

    __getattr__, __dir__ = lazy(
        __name__,
        {
            "decode": "records.decode:decode_records",
            "encode": "records.encode:encode",
            "run_profile": "profile.run:run_profile",
        },
    )

__all__ = ["decode", "encode", "run_profile"]
