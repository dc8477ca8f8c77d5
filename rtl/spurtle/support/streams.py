"""Standard streams of a command, which may be closed, full, or of an encoding that lacks a character."""

import io
import os
import sys

__all__ = ["flush", "open_closed", "print_stderr"]


def open_closed() -> None:
    """Open each standard stream that is closed, so that no other file takes its number and its use is an error."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            # It takes the lowest number that is free, which is this one. It cannot be used for what the stream is for.
            os.open(os.devnull, os.O_RDONLY if descriptor else os.O_WRONLY)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error: a path need not be UTF-8


def flush() -> OSError | None:
    """Flush standard output. Return the error if that fails; what could not be written is dropped then."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python would report it once more when it closes the stream.
        _discard(sys.stdout.fileno())
        return error
    return None


def print_stderr(line: str) -> None:
    """Print a line on standard error. It is dropped where that cannot be written."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr.fileno())


def _discard(descriptor: int) -> None:
    """Send what is written to a descriptor nowhere from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
