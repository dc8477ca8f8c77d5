"""What a proof is, and what comes of one."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from spurtle.config import SPUConfig
from spurtle.support.errors import UserError

from .terms import Undecided
from .tools import ToolError
from .transition import Transition

__all__ = ["Proof", "ProofRow", "ProvedBlock", "Result", "Verdict"]


class Result(StrEnum):
    """PASS is the only good one."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"
    ERROR = "ERROR"


@dataclass(frozen=True)
class Verdict:
    """What came of a proof.

    Members
    -------
    depth : int
        Cycles: k of an induction, length of the trace that reaches a cover, 0 of a combinational block.
    evidence : str
        What is to be looked at when the result is not PASS: counterexample, trace, or message.
    method : str
        What the proof turned out to be, where that is known only afterwards; otherwise the proof's own method stands.
    """

    result: Result
    depth: int
    evidence: str = ""
    method: str = ""


@dataclass(frozen=True)
class ProofRow:
    """A line of the report."""

    property: str
    block: str
    config: str
    method: str
    depth: int
    seconds: float
    result: Result
    evidence: str = ""


@dataclass(frozen=True)
class ProvedBlock:
    """A block in a configuration: what proofs are about.

    Members
    -------
    system : callable
        Return the transition relation of the block. It is called when a proof runs.
    """

    name: str
    config: SPUConfig
    system: Callable[[SPUConfig], Transition]

    def proof(self, property: str, method: str, prove: Callable[[SPUConfig, Transition], Verdict]) -> "Proof":
        """Return the proof of a property."""
        return Proof(
            property, self.name, self.config.name, method, lambda: prove(self.config, self.system(self.config))
        )


@dataclass(frozen=True)
class Proof:
    """One property of one block in one configuration (`-` where the block is the same in all)."""

    property: str
    block: str
    config: str
    method: str
    prove: Callable[[], Verdict]

    def run(self) -> ProofRow:
        """Prove it. What goes wrong on the way is in the row, and never a PASS."""
        started = time.monotonic()
        try:
            verdict = self.prove()
        except UserError:
            raise
        except Undecided as gave_up:
            verdict = Verdict(Result.UNKNOWN, 0, f"the solver gave up: {gave_up}")
        except ToolError as failed:
            verdict = Verdict(Result.ERROR, 0, str(failed))
        except Exception:  # A fault of this proof does not keep the others from running.
            verdict = Verdict(Result.ERROR, 0, traceback.format_exc())
        return ProofRow(
            property=self.property,
            block=self.block,
            config=self.config,
            method=verdict.method or self.method,
            depth=verdict.depth,
            seconds=round(time.monotonic() - started, 2),
            result=verdict.result,
            evidence=verdict.evidence,
        )
