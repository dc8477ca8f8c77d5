"""Names of files on the command line."""

import argparse

__all__ = ["file_name"]


def file_name(text: str) -> str:
    """Return the name of a file or folder, for the `type` of an argument of argparse.

    Raises
    ------
    ArgumentTypeError
        If it is empty: a variable of a shell can be.
    """
    if not text:
        raise argparse.ArgumentTypeError("the name must not be empty")
    return text
