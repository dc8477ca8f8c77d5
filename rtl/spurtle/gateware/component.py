"""Base class of components that are built for a configuration."""

from collections.abc import Mapping
from typing import ClassVar

from amaranth.lib import wiring

from ..config import SPUConfig

__all__ = ["ConfiguredComponent"]


class ConfiguredComponent(wiring.Component):
    """Component that is built for a configuration of the SPU.

    Parameters
    ----------
    config : SPUConfig
        The subclass checks it before it derives members from it.
    members : mapping of str to Member

    Attributes
    ----------
    proof_signals : tuple of str
        Names of internal signals, not ports, that proofs in `formal/` read. `*` stands for any text.
    """

    proof_signals: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: SPUConfig, members: Mapping[str, wiring.Member]):
        self._config = config
        super().__init__(members)

    @property
    def config(self) -> SPUConfig:
        """Configuration that the component is built for."""
        return self._config
