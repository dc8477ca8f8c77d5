"""Selection of operations for sampling: PMSICR_EL1, PMSIRR_EL1 and the pseudorandom number generators.

All functions also run on z3 values. They therefore use only `if`, comparisons, `+`, `-`, bit operations and shifts by
constants.

Ref: DDI0487 M.a, D17.3.2 to D17.3.4.
"""

from spurtle.config import LFSR_DELAYS

__all__ = ["access_number", "advance", "draw", "draw_access", "random_byte", "seed"]


def advance(
    count: int, ecount: int, *, interval: int, rnd: int, random: int, ernd: bool
) -> tuple[int, int, bool, bool]:
    """Count one member of the sample population while profiling is enabled.

    The member that makes COUNT zero ends an interval. The next member reloads COUNT and does not decrement it. If RND
    is 0, an interval is therefore INTERVAL * 256 + 1 members long (D17.3.4.1, Note).

    Parameters
    ----------
    count, ecount : int
        PMSICR_EL1.COUNT, 32 bits, and ECOUNT, 8 bits.
    interval, rnd : int
        PMSIRR_EL1.INTERVAL, 24 bits, and RND. The interval of INTERVAL = 0 is UNKNOWN: the value behaves as 1.
    random : int
        Next random number, 8 bits.
    ernd : bool
        Whether FEAT_SPE_ERnd is implemented.

    Returns
    -------
    count, ecount : int
        New values of COUNT and ECOUNT.
    selected : bool
        Whether this member is selected for sampling.
    drawn : bool
        Whether the random number was used: the next use needs a new one.
    """
    if count == 0:
        reload = (1 if interval == 0 else interval) << 8
        if rnd and not ernd:  # D17.3.4.2
            return reload + random, ecount, False, True
        count = reload
    else:
        count = count - 1
        if count == 0:
            if rnd and ernd:  # D17.3.4.3: this member does not decrement the new ECOUNT.
                return 0, random, random == 0, True
            return 0, ecount, True, False
    if rnd and ernd and ecount != 0:
        ecount = ecount - 1
        return count, ecount, ecount == 0, False
    return count, ecount, False, False


def random_byte(state: int) -> int:
    """Return the next random number: the newest eight bits of the state."""
    return state & 0xFF


def draw(state: int) -> int:
    """Return the state after a random number is used: advanced by 8 bits (D17.3.2, `spurtle.config.LFSR_DELAYS`)."""
    return _advanced(state, 8)


def access_number(state: int, bits: int) -> int:
    """Return the next random number of the second generator, which chooses an access of the selected operation.

    It is the newest `bits` bits of the state, with the newest in bit 0.
    """
    return state & (1 << bits) - 1


def draw_access(state: int, bits: int) -> int:
    """Return the state of the second generator after a random number is used: advanced by `bits` bits."""
    return _advanced(state, bits)


def _advanced(state: int, bits: int) -> int:
    """Return the state advanced by `bits` bits."""
    for _ in range(bits):
        state = _step(state)
    return state


def _step(state: int) -> int:
    """Return the state, the newest 32 bits of the sequence, advanced by one bit."""
    bit = 0
    for delay in LFSR_DELAYS:
        bit ^= state >> (delay - 1)
    return (state << 1 | bit & 1) & (1 << max(LFSR_DELAYS)) - 1


def seed(value: int) -> int:
    """Return the state of a generator after software writes `value`. Zero, which would never change, becomes one."""
    return 1 if value == 0 else value
