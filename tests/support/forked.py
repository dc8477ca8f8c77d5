"""The `spurtle` command in forked children of one process that has loaded everything: `python -m tests.support.forked`.

Each line of standard input is a JSON object with the arguments of a command; the answer is a line with its outcome. A
command that reaches the time limit receives SIGTERM. If that does not end it either, it is killed.
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
from spurtle_sim.timing import machine

__all__ = ["Outcome", "run"]

LIMIT = 10.0  # seconds until SIGTERM, and from there until SIGKILL; nothing is asserted of the time that a case takes


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
        Signals that it was sent, because the time was over.
    """

    status: int
    out: str
    error: str
    signals: tuple[str, ...]


def run(commands: Iterable[Sequence[str]]) -> Iterator[Outcome]:
    """Run commands one after the other, and give the outcome of each."""
    with subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for command in commands:
            process.stdin.write(json.dumps(command).encode() + b"\n")
            process.stdin.flush()
            fields = json.loads(process.stdout.readline())
            yield Outcome(**{**fields, "signals": tuple(fields["signals"])})
        process.stdin.close()


def main() -> None:
    load([spu.library(CONFIGS["neoverse_n1"]), machine.library(), hooks.library()])
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
    """Wait until a child has ended. Give the signals that it is sent."""
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
