"""Data types of the tables that the emulator, the timing model, the compiled SPU and its checkers exchange.

The C++ code of the simulator has the same structures.
"""

import numpy as np

__all__ = ["FINISH", "OPERATION", "RESPONSE", "SELECTION", "TIMED_OPERATION"]

OPERATION = np.dtype(
    [("pc", "<u8"), ("target", "<u8"), ("va", "<u8"), ("facts", "<u4"), ("vectors", "<u2")], align=True
)
"""Retired instruction.

`target` is the next PC after a branch. `va` is the lowest address of a memory access; zero without an access. `facts`
are the members of `spurtle.interface.operation.FactsLayout` that depend on the program only: all except `pa_valid`,
`va_tagged` and `data_source_valid`. `vectors` is a number of `trace.vectors`; zero if the operation is not one of SVE.
"""

TIMED_OPERATION = np.dtype(
    [
        ("dispatch", "<u8"),  # cycle in which it passes the sampling point; at most `ops_per_cycle` rows have the same
        ("pc", "<u8"),
        ("target", "<u8"),  # of a branch: its target, or PC + 4 if it is not taken
        ("va", "<u8"),  # of a load or store
        ("pa", "<u8"),
        ("events", "<u8"),  # bits of the Events packet; the SPU derives E[0], E[1] and E[6] from the facts
        ("issue", "<u4"),  # cycles from dispatch to issue: at least 1
        ("finish", "<u4"),  # cycles from dispatch to completion: at least 2, and more than issue
        ("translate_from", "<u4"),  # cycles from dispatch to the start of the wait for a translation
        ("translate_to", "<u4"),  # cycles from dispatch to its end; equal to translate_from without a wait
        ("facts", "<u4"),  # bits of `spurtle.interface.operation.FactsLayout`
        ("data_source", "<u2"),
        ("vectors", "<u2"),  # number of `trace.vectors`; zero if the operation is not one of SVE
    ],
    align=True,
)
"""Operation of a program with its timing, 72 bytes.

The timing model fills the table in program order, and the compiled SPU plays it.
"""

SELECTION = np.dtype([(name, "<u8") for name in ("first", "candidates", "sampled", "time", "destination")])
"""Selected operation, as the SPU reports it.

`sampled` is one if the operation is sampled, and zero if it collided. The SPU reports the lane of a sampled operation,
which is operation number `first`, and `candidates` is one. For a collision the SPU reports only the cycle: the
operation is one of `candidates` operations from number `first`. Operations are numbered from the first operation
played.

`time` is the cycle in which the operation passed the sampling point, and the value of the system counter in that cycle.

`destination` is one if the store is sampled of an operation that loads from one address and stores to another. It is
zero in a configuration without such operations. No such operation is played on the compiled SPU, so the choice is not
copied to `Facts.destination` of the finished operation.
"""

FINISH = np.dtype([("row", "<u8"), ("latency", "<u8")])
"""Finished sampled operation: its number, and the cycles from the sampling point until the core reported it finished.

The latency can exceed `TIMED_OPERATION.finish`, the cycles until completion, because the core reports one finished
operation per cycle.
"""

RESPONSE = np.dtype([("fault", "<u8"), ("written", "<u8")])
"""Response of memory to a record: the number of the fault, or 0 without a fault, and the bytes written before it."""
