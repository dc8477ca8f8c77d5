"""Standard streams of a command. They can be closed, full, or have an encoding that lacks a character."""

import io
import os
import sys

__all__ = ["flush", "open_closed", "print_stderr"]


def open_closed() -> None:
    """Open each closed standard stream, so that no other file has its descriptor and its use is an error."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            # os.open returns the lowest free descriptor, which is this one. The stream cannot be used, because standard
            # input is open for writing, and an output stream for reading.
            os.open(os.devnull, os.O_RDONLY if descriptor else os.O_WRONLY)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as for standard error: a path need not be UTF-8


def flush() -> OSError | None:
    """Flush standard output. If that fails, drop what could not be written and return the error."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would report the error again when it closes the stream.
        _discard(sys.stdout.fileno())
        return error
    return None


def print_stderr(line: str) -> None:
    """Print a line on standard error. Drop it if standard error cannot be written."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr.fileno())


def _discard(descriptor: int) -> None:
    """Discard everything that is written to a descriptor from now on."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
