"""Examples of the rules of the sample interval counter, calculated by hand, for the reference and the gateware.

Where the architecture leaves a choice, they follow docs/choices.md.

Ref: DDI0487 M.a, D17.3.3 and D17.3.4.
"""

from dataclasses import dataclass

__all__ = ["CASES", "Case"]

BOTH = (False, True)
PLAIN = (False,)
ERND = (True,)


@dataclass(frozen=True)
class Case:
    """A sequence of members of the sample population, and those that are selected.

    Members
    -------
    rule : str
        The rule that the case is an example of.
    ernd : tuple of bool
        Whether FEAT_SPE_ERnd is implemented: one value or both.
    passing : tuple of (int, int)
        Number of members, and PMSIRR_EL1.RND while they pass.
    selected : tuple of int
        Numbers of the selected members; the first member is 1.
    remaining : (int, int)
        COUNT and ECOUNT after the last member.
    count, ecount : int
        PMSICR_EL1 before the first member: its value when profiling is enabled, or a write while it is enabled.
    interval : int
        PMSIRR_EL1.INTERVAL.
    numbers : tuple of int
        Random numbers in the order of their use. The first follows the last.
    """

    rule: str
    ernd: tuple[bool, ...]
    passing: tuple[tuple[int, int], ...]
    selected: tuple[int, ...]
    remaining: tuple[int, int]
    count: int = 0
    ecount: int = 0
    interval: int = 1
    numbers: tuple[int, ...] = (0,)


CASES = (
    # D17.3.3, and D17.3.4.1 with its Note.
    Case("zero is held until the first member passes", BOTH, ((0, 0),), (), (0, 0)),
    Case("zero is loaded with the interval", BOTH, ((1, 0),), (), (0x100, 0)),
    Case("the largest interval fits", BOTH, ((1, 0),), (), (0xFFFF_FF00, 0), interval=0xFF_FFFF),
    Case("the largest count fits", BOTH, ((1, 0),), (), (0xFFFF_FFFE, 0), count=0xFFFF_FFFF),
    Case("the member that decrements COUNT to zero is selected", BOTH, ((1, 0),), (1,), (0, 0), count=1),
    Case("the next member reloads COUNT and does not decrement it", BOTH, ((2, 0),), (1,), (0x100, 0), count=1),
    Case("the interval is INTERVAL * 256 + 1", BOTH, ((771, 0),), (257, 514, 771), (0, 0)),
    Case("the interval is INTERVAL * 256 + 1, doubled", BOTH, ((1026, 0),), (513, 1026), (0, 0), interval=2),
    Case("a restored COUNT continues", BOTH, ((262, 0),), (5, 262), (0, 0), count=5),
    Case("INTERVAL = 0 behaves as 1", BOTH, ((514, 0),), (257, 514), (0, 0), interval=0),
    # D17.3.4.2.
    Case("the random number is added to the interval", PLAIN, ((1, 1),), (), (0x134, 0), numbers=(0x34,)),
    Case("the largest interval", PLAIN, ((1, 1),), (), (0xFFFF_FFFF, 0), interval=0xFF_FFFF, numbers=(255,)),
    Case("each interval uses a new random number", PLAIN, ((1033, 1),), (264, 521, 1033), (0, 0), numbers=(7, 0, 255)),
    Case("INTERVAL = 0 behaves as 1, random", PLAIN, ((265, 1),), (260,), (0x102 - 4, 0), interval=0, numbers=(3, 2)),
    Case("no random number is added to a restored COUNT", PLAIN, ((6, 1),), (5,), (0x109, 0), count=5, numbers=(9,)),
    # D17.3.4.3.
    Case("ECOUNT is not loaded first", ERND, ((256, 1),), (), (1, 0), numbers=(77,)),
    Case("the member that loads ECOUNT does not decrement it", ERND, ((257, 1),), (), (0, 77), numbers=(77,)),
    Case("the next member decrements both counters", ERND, ((259, 1),), (), (0xFF, 75), numbers=(77,)),
    Case("the number 0 selects the member that loads it", ERND, ((514, 1),), (257, 514), (0, 0), numbers=(0,)),
    Case("the number 1 selects the next member", ERND, ((515, 1),), (258, 515), (0x100, 0), numbers=(1,)),
    Case("the number 3 selects the third member after", ERND, ((517, 1),), (260, 517), (0xFE, 0), numbers=(3,)),
    Case("COUNT does not wait for ECOUNT", ERND, ((1283, 1),), (266, 714, 771, 1283), (2, 0),
         numbers=(9, 200, 0, 255)),
    Case("selections can be two apart", ERND, ((771, 1),), (512, 514), (0, 255), numbers=(255, 0)),
    Case("INTERVAL = 0 behaves as 1, with ECOUNT", ERND, ((517, 1),), (260, 517), (0xFE, 0), interval=0, numbers=(3,)),
    # ECOUNT as software wrote it.
    Case("ECOUNT is overwritten", ERND, ((20, 1),), (10,), (0x400 - 18, 0), count=1, ecount=2, interval=4,
         numbers=(9,)),
    Case("ECOUNT is overwritten when it would become zero", ERND, ((20, 1),), (10,), (0x400 - 18, 0), count=1, ecount=1,
         interval=4, numbers=(9,)),
    Case("ECOUNT becomes zero one member before COUNT", ERND, ((2, 1),), (1, 2), (0, 0), count=2, ecount=1),
    Case("a restored ECOUNT continues", ERND, ((5, 1),), (5,), (0x100 - 4, 0), ecount=5),
    Case("the member that reloads COUNT decrements ECOUNT", ERND, ((1, 1),), (1,), (0x100, 0), ecount=1),
    Case("the largest ECOUNT fits", ERND, ((255, 1),), (255,), (0x100 - 254, 0), ecount=255),
    Case("a restored ECOUNT is ignored while RND is zero", ERND, ((6, 0),), (5,), (0x100, 3), count=5, ecount=3),
    Case("ECOUNT is held while RND is zero", ERND, ((4, 1), (20, 0), (6, 1)), (30,), (470, 0), count=500, ecount=10),
    Case("RND is evaluated when COUNT becomes zero", ERND, ((256, 0), (6, 1)), (262,), (0x100 - 4, 0), numbers=(5,)),
    Case("RND is evaluated when COUNT is reloaded", PLAIN, ((257, 0), (1, 1)), (257,), (0x108, 0), numbers=(8,)),
)  # fmt: skip
"""Each rule of the two sections, at least once."""
