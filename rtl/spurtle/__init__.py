"""Spurtle: a synthesizable Arm Statistical Profiling Unit (FEAT_SPE)."""

from typing import TYPE_CHECKING

from .support.version import __version__ as __version__

if TYPE_CHECKING:
    from .config import CONFIGS, SPUConfig
    from .gateware.spu import SPU
else:
    # Each name is imported when it is first used: a program that imports `spurtle.arch` alone loads no Amaranth.
    from .support.lazy import lazy

    __getattr__, __dir__ = lazy(
        __name__, {"CONFIGS": "config:CONFIGS", "SPU": "gateware.spu:SPU", "SPUConfig": "config:SPUConfig"}
    )

__all__ = ["CONFIGS", "SPU", "SPUConfig"]
