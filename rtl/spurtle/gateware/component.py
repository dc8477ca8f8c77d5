"""Components that are built for a configuration."""

from collections.abc import Mapping

from amaranth.lib import wiring

from ..config import SPUConfig

__all__ = ["ConfiguredComponent"]


class ConfiguredComponent(wiring.Component):
    """A component that is built for a configuration of the SPU.

    Parameters
    ----------
    config : SPUConfig
        Checked by the subclass, whose members depend on it.
    members : mapping of str to Member
    """

    def __init__(self, config: SPUConfig, members: Mapping[str, wiring.Member]):
        self._config = config
        super().__init__(members)

    @property
    def config(self) -> SPUConfig:
        """The configuration that it is built for."""
        return self._config
