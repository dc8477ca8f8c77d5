"""Runs of the `spurtle` command in forked children of one process, which has loaded all libraries.

`python -m tests.support.forked` reads one JSON array with the arguments of a command from each line of standard input,
and writes one line with the outcome. A command that reaches the time limit receives SIGTERM. If it has not ended after
the same time again, it receives SIGKILL.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from signal import SIGKILL, SIGTERM, Signals

from spurtle.config import CONFIGS
from spurtle_sim import cli
from spurtle_sim.cosim import spu
from spurtle_sim.emulator import hooks, program
from spurtle_sim.native.library import load
from spurtle_sim.timing import model

__all__ = ["Outcome", "run"]

LIMIT = 10.0
"""Seconds until SIGTERM, and from then until SIGKILL. No test asserts how long a command takes."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a command.

    Parameters
    ----------
    status : int
        Exit status, negative for a signal.
    out, error : str
        Standard output and standard error.
    signals : tuple of str
        Signals that the command received because it reached the time limit.
    """

    status: int
    out: str
    error: str
    signals: tuple[str, ...]


def run(commands: Iterable[Sequence[str]]) -> Iterator[Outcome]:
    """Run commands in sequence. Yield the outcome of each."""
    with subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for command in commands:
            process.stdin.write(json.dumps(command).encode() + b"\n")
            process.stdin.flush()
            fields = json.loads(process.stdout.readline())
            yield Outcome(**{**fields, "signals": tuple(fields["signals"])})
        process.stdin.close()


def main() -> None:
    """Run the commands on standard input."""
    load([spu.library(CONFIGS["neoverse_n1"]), model.library(), hooks.library()])
    assert program.Program
    for line in sys.stdin:
        print(json.dumps(asdict(_outcome(json.loads(line)))), flush=True)


def _outcome(arguments: Sequence[str]) -> Outcome:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        child = os.fork()
        if not child:
            _child(arguments, out.fileno(), error.fileno())
        signals = tuple(number.name for number in _signals(child))
        _, status = os.waitpid(child, 0)
        texts = []
        for file in out, error:
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Outcome(os.waitstatus_to_exitcode(status), *texts, signals)


def _child(arguments: Sequence[str], out: int, error: int) -> None:
    status = -1
    try:
        for descriptor, file in enumerate((os.open(os.devnull, os.O_RDONLY), out, error)):
            os.dup2(file, descriptor)
        status = cli.main(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _signals(child: int) -> Iterator[Signals]:
    """Wait until a child has ended. Yield the signals that are sent to it."""
    descriptor = os.pidfd_open(child)
    poll = select.poll()
    poll.register(descriptor)
    for number in SIGTERM, SIGKILL:
        if poll.poll(1000 * LIMIT):
            break
        yield number
        os.kill(child, number)
    os.close(descriptor)


if __name__ == "__main__":
    main()
