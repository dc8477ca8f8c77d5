"""Version of the release, for all modules and for pyproject.toml, and version of the ports of generated hardware."""

__all__ = ["INTERFACE_VERSION", "__version__"]

__version__ = "0.2.0"

INTERFACE_VERSION = 2
"""Version of the ports: their names, directions, widths, fields and timing.

A core or a memory that was connected to one version must be checked before it is connected to another. The number is
one for all configurations and shells. It is incremented, once for each release, when any of them changes.
"""
