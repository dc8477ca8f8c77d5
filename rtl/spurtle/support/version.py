"""Version of the release, for all modules and for pyproject.toml."""

__all__ = ["__version__"]

__version__ = "0.2.0"
