"""Proofs and their results."""

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from spurtle.config import SPUConfig
from spurtle.support.errors import UserError

from .signals import UnlistedSignal
from .terms import Undecided
from .tools import ToolError
from .transition import Transition

__all__ = ["Proof", "ProofRow", "ProvedBlock", "Result", "Verdict"]


class Result(StrEnum):
    """Result of a proof. Only PASS means that the property is proved, or that the cover goal is reached."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"
    ERROR = "ERROR"


@dataclass(frozen=True)
class Verdict:
    """Outcome of a proof.

    Members
    -------
    depth : int
        Cycles: k of an induction, length of the trace that reaches a cover goal, 0 for a combinational block.
    evidence : str
        Counterexample, trace or message if the result is not PASS.
    method : str
        Method, if it is known only after the proof (for example the number of paths). Empty: the proof's own method.
    """

    result: Result
    depth: int
    evidence: str = ""
    method: str = ""


@dataclass(frozen=True)
class ProofRow:
    """Row of the report."""

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
    """Block of the gateware in one configuration, the subject of proofs.

    Members
    -------
    system : callable
        Return the transition relation of the block. Called when a proof runs.
    """

    name: str
    config: SPUConfig
    system: Callable[[SPUConfig], Transition]

    def proof(
        self, property: str, method: str, prove: Callable[[SPUConfig, Transition], Verdict], *, slow: bool = False
    ) -> "Proof":
        """Return the proof of a property."""
        return Proof(
            property,
            self.name,
            self.config.name,
            method,
            lambda: prove(self.config, self.system(self.config)),
            slow=slow,
        )


@dataclass(frozen=True)
class Proof:
    """Property of a block in one configuration (`-` if the block is the same in all configurations).

    Members
    -------
    slow : bool
        Whether only `make formal-full` runs this proof, because it takes too long for `make formal`. The property is
        then also proved for another configuration, with a proof that is not slow.
    """

    property: str
    block: str
    config: str
    method: str
    prove: Callable[[], Verdict]
    slow: bool = False

    def run(self) -> ProofRow:
        """Run the proof and return its row. An exception becomes UNKNOWN or ERROR; only UserError is raised."""
        started = time.monotonic()
        try:
            verdict = self.prove()
        except UserError:
            raise
        except Undecided as error:
            verdict = Verdict(Result.UNKNOWN, 0, f"the solver gave up: {error}")
        except (ToolError, UnlistedSignal) as error:
            verdict = Verdict(Result.ERROR, 0, str(error))
        except Exception:  # A bug in this proof must not stop the others.
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
