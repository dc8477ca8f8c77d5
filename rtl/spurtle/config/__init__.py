"""Configuration of an SPU, and the named configurations."""

from .choices import UnpredictableFilter
from .named import CONFIGS
from .random_numbers import ELEMENT_BITS, LFSR_ACCESS_RESET, LFSR_DELAYS, LFSR_RESET
from .shells import NO_SHELL, SHELLS
from .spu import SPUConfig, check_config

__all__ = [
    "CONFIGS",
    "ELEMENT_BITS",
    "LFSR_ACCESS_RESET",
    "LFSR_DELAYS",
    "LFSR_RESET",
    "NO_SHELL",
    "SHELLS",
    "SPUConfig",
    "UnpredictableFilter",
    "check_config",
]
