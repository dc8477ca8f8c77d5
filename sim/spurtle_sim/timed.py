"""The table that the timing model fills and the engine plays: one row for each operation of the program, with its
cycles.
"""

import numpy as np

__all__ = ["TIMED"]

TIMED = np.dtype(
    [
        ("dispatch", "<u8"),  # cycle in which it passes the sampling point; rises from row to row
        ("pc", "<u8"),
        ("target", "<u8"),  # of a branch: where it went, or PC + 4
        ("va", "<u8"),  # of a load or store
        ("pa", "<u8"),
        ("events", "<u4"),  # bits of the Events packet; E[0], E[1], E[6] are derived from the facts
        ("issue", "<u4"),  # cycles from dispatch to issue: at least 1
        ("finish", "<u4"),  # cycles from dispatch to the end: at least 2, and more than issue
        ("translate_from", "<u4"),  # cycles from dispatch to the start of the wait for a translation
        ("translate_to", "<u4"),  # and to its end; the same where there is none
        ("facts", "<u2"),  # bits of `spurtle.pe.Facts`
        ("data_source", "<u2"),
    ]
)
"""One operation, 64 bytes. The C++ side of the engine reads the same struct."""
