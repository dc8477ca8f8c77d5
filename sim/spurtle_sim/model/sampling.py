"""When an operation is selected for sampling: PMSICR_EL1, PMSIRR_EL1 and the pseudorandom numbers."""

# Ref: DDI0487 M.a, D17.3.2 to D17.3.4. This also runs over z3 values: nothing but `if`, comparisons, `+`, `-`, bit
# operations and shifts by constants.

from spurtle.config import LFSR_DELAYS

__all__ = ["access_number", "advance", "draw", "draw_access", "random_byte", "seed"]


def advance(
    count: int, ecount: int, *, interval: int, rnd: int, random: int, ernd: bool
) -> tuple[int, int, bool, bool]:
    """One member of the sample population passes while profiling is enabled.

    The member that makes COUNT zero ends an interval. The next one reloads COUNT and does not decrement it, so that
    intervals are INTERVAL * 256 + 1 members long (D17.3.4.1, Note).

    Parameters
    ----------
    count, ecount : int
        PMSICR_EL1.COUNT, 32 bits, and ECOUNT, 8 bits.
    interval, rnd : int
        PMSIRR_EL1.INTERVAL, 24 bits, and RND. INTERVAL = 0 leaves the interval UNKNOWN: it behaves as 1.
    random : int
        The next random number, 8 bits.
    ernd : bool
        FEAT_SPE_ERnd is implemented.

    Returns
    -------
    count, ecount : int
        The new COUNT and ECOUNT.
    selected : bool
        This member is selected for sampling.
    drawn : bool
        The random number was used: the next use needs another.
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
    """The random number that comes next: the newest eight bits."""
    return state & 0xFF


def draw(state: int) -> int:
    """The generator's state after a random number was used: eight bits on (D17.3.2, `spurtle.config.LFSR_DELAYS`)."""
    return _moved(state, 8)


def access_number(state: int, bits: int) -> int:
    """The second generator's random number that comes next, which chooses an access of the selected operation: the
    newest `bits` bits, the newest in bit 0.
    """
    return state & (1 << bits) - 1


def draw_access(state: int, bits: int) -> int:
    """The second generator's state after a random number was used: `bits` bits on."""
    return _moved(state, bits)


def _moved(state: int, bits: int) -> int:
    """The state so many bits on."""
    for _ in range(bits):
        state = _step(state)
    return state


def _step(state: int) -> int:
    """The state, the last 32 bits, after one more."""
    bit = 0
    for delay in LFSR_DELAYS:
        bit ^= state >> (delay - 1)
    return (state << 1 | bit & 1) & (1 << max(LFSR_DELAYS)) - 1


def seed(value: int) -> int:
    """A generator's state after software wrote `value`. Zero, from which it would never move, becomes one."""
    return 1 if value == 0 else value
