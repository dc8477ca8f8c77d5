"""When an operation is selected for sampling: PMSICR_EL1.COUNT and PMSIRR_EL1.INTERVAL."""

# Ref: DDI0487 M.a, D17.3.3 and D17.3.4.1. This also runs over z3 values: nothing but `if`, `==`, `-` and `<<`.

__all__ = ["advance"]


def advance(count: int, interval: int) -> tuple[int, bool]:
    """One member of the sample population passes while profiling is enabled, with RND = 0.

    Parameters
    ----------
    count : int
        PMSICR_EL1.COUNT, 32 bits.
    interval : int
        PMSIRR_EL1.INTERVAL, 24 bits.

    Returns
    -------
    count : int
        The new COUNT.
    selected : bool
        This member is selected: it made COUNT zero. The next one reloads and does not decrement, so that selections are
        INTERVAL * 256 + 1 members apart.
    """
    if count == 0:
        if (
            interval == 0
        ):  # CONSTRAINED UNPREDICTABLE: docs/choices.md takes 1, which neither hangs nor samples everything.
            return 1 << 8, False
        return interval << 8, False
    return count - 1, count == 1
