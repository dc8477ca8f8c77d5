"""Version of the release. Every file that names it reads it here."""

__all__ = ["__version__"]

__version__ = "0.2.0"
