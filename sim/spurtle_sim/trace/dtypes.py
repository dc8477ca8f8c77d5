"""The tables between the emulator, the timing model, the engine and whoever follows them. Their C++ has the same
structs.
"""

import numpy as np

__all__ = ["FINISH", "OPERATION", "RESPONSE", "SELECTION", "TIMED_OPERATION"]

OPERATION = np.dtype([("pc", "<u8"), ("target", "<u8"), ("va", "<u8"), ("facts", "<u4")], align=True)
"""One retired instruction.

`target` is of a branch: the next PC. `va` is the lowest address accessed; zero without an access. `facts` are those of
`spurtle.interface.operation.FactsLayout` that the program decides: all but `pa_valid`, `va_tagged` and
`data_source_valid`.
"""

TIMED_OPERATION = np.dtype(
    [
        ("dispatch", "<u8"),  # cycle in which it passes the sampling point; up to `ops_per_cycle` rows share one
        ("pc", "<u8"),
        ("target", "<u8"),  # of a branch: where it went, or PC + 4
        ("va", "<u8"),  # of a load or store
        ("pa", "<u8"),
        ("events", "<u8"),  # bits of the Events packet; E[0], E[1], E[6] are derived from the facts
        ("issue", "<u4"),  # cycles from dispatch to issue: at least 1
        ("finish", "<u4"),  # cycles from dispatch until it completes: at least 2, and more than issue
        ("translate_from", "<u4"),  # cycles from dispatch to the start of the wait for a translation
        ("translate_to", "<u4"),  # and to its end; the same where there is none
        ("facts", "<u4"),  # bits of `spurtle.interface.operation.FactsLayout`
        ("data_source", "<u2"),
    ],
    align=True,
)
"""One operation of the program, 72 bytes: the timing model fills the table in program order, the engine plays it."""

SELECTION = np.dtype([(name, "<u8") for name in ("first", "candidates", "sampled", "time", "destination")])
"""What became of a selected operation, as far as the SPU says. It names the lane of a sampled one: that is number
`first`. Of one that collided it says no more than its cycle: it is one of `among` operations from number `first`.
Numbers count from the first operation played; `time` is the cycle in which it passed, as the timestamp has it.
`destination` is one if the store is sampled of a sampled operation that loads from one address and stores to another;
zero in a configuration without such operations. The engine is not told of any, and hands no `Facts.destination` back.
"""

FINISH = np.dtype([("row", "<u8"), ("latency", "<u8")])
"""A sampled operation whose end the core has reported: its number, and how many cycles after it passed. That can be
later than its `finish`, in which it completed: one end is reported in a cycle.
"""

RESPONSE = np.dtype([("fault", "<u8"), ("written", "<u8")])
"""Response of memory to a record: the number of the fault, of which 0 is none, and the bytes written before it."""
