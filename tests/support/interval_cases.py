"""D17.3.3 and D17.3.4 in numbers, worked out by hand from the chapter: for the reference and for the gateware."""

# Where the chapter leaves a choice, these are the ones of docs/choices.md.

from dataclasses import dataclass

__all__ = ["CASES", "Case"]

BOTH = (False, True)
PLAIN = (False,)
ERND = (True,)


@dataclass(frozen=True)
class Case:
    """Members of the sample population pass, and some are selected.

    Members
    -------
    rule : str
        What this is an instance of.
    ernd : tuple of bool
        Without FEAT_SPE_ERnd, with it, or either.
    passing : tuple of (int, int)
        So many members pass while PMSIRR_EL1.RND has that value.
    selected : tuple of int
        Numbers of the selected ones, the first member being 1.
    left : (int, int)
        COUNT and ECOUNT after the last member.
    count, ecount : int
        PMSICR_EL1 when profiling is enabled, or what is written to it while it is.
    interval : int
        PMSIRR_EL1.INTERVAL.
    numbers : tuple of int
        The random numbers, in the order of their use; the first again after the last.
    """

    rule: str
    ernd: tuple[bool, ...]
    passing: tuple[tuple[int, int], ...]
    selected: tuple[int, ...]
    left: tuple[int, int]
    count: int = 0
    ecount: int = 0
    interval: int = 1
    numbers: tuple[int, ...] = (0,)


CASES = (
    # D17.3.3, and D17.3.4.1 with its Note.
    Case("zero is kept until the first member passes", BOTH, ((0, 0),), (), (0, 0)),
    Case("zero is loaded with the interval", BOTH, ((1, 0),), (), (0x100, 0)),
    Case("the largest interval fits", BOTH, ((1, 0),), (), (0xFFFF_FF00, 0), interval=0xFF_FFFF),
    Case("the largest count fits", BOTH, ((1, 0),), (), (0xFFFF_FFFE, 0), count=0xFFFF_FFFF),
    Case("the member that makes it zero is selected", BOTH, ((1, 0),), (1,), (0, 0), count=1),
    Case("the next one reloads and does not decrement", BOTH, ((2, 0),), (1,), (0x100, 0), count=1),
    Case("the interval is INTERVAL * 256 + 1", BOTH, ((771, 0),), (257, 514, 771), (0, 0)),
    Case("the interval is INTERVAL * 256 + 1, doubled", BOTH, ((1026, 0),), (513, 1026), (0, 0), interval=2),
    Case("a restored count goes on", BOTH, ((262, 0),), (5, 262), (0, 0), count=5),
    Case("INTERVAL = 0 behaves as 1", BOTH, ((514, 0),), (257, 514), (0, 0), interval=0),
    # D17.3.4.2.
    Case("the random number is added to the interval", PLAIN, ((1, 1),), (), (0x134, 0), numbers=(0x34,)),
    Case("the largest of all intervals", PLAIN, ((1, 1),), (), (0xFFFF_FFFF, 0), interval=0xFF_FFFF, numbers=(255,)),
    Case("each interval has its own number", PLAIN, ((1033, 1),), (264, 521, 1033), (0, 0), numbers=(7, 0, 255)),
    Case("INTERVAL = 0 behaves as 1, random", PLAIN, ((265, 1),), (260,), (0x102 - 4, 0), interval=0, numbers=(3, 2)),
    Case("a restored count has no number added", PLAIN, ((6, 1),), (5,), (0x109, 0), count=5, numbers=(9,)),
    # D17.3.4.3.
    Case("ECOUNT is not loaded first", ERND, ((256, 1),), (), (1, 0), numbers=(77,)),
    Case("the member that loads ECOUNT does not decrement it", ERND, ((257, 1),), (), (0, 77), numbers=(77,)),
    Case("the next one decrements both", ERND, ((259, 1),), (), (0xFF, 75), numbers=(77,)),
    Case("the number zero selects at once", ERND, ((514, 1),), (257, 514), (0, 0), numbers=(0,)),
    Case("the number one selects the next", ERND, ((515, 1),), (258, 515), (0x100, 0), numbers=(1,)),
    Case("the number three selects the third", ERND, ((517, 1),), (260, 517), (0xFE, 0), numbers=(3,)),
    Case("the primary counter keeps its own time", ERND, ((1283, 1),), (266, 714, 771, 1283), (2, 0),
         numbers=(9, 200, 0, 255)),
    Case("selections can be two apart", ERND, ((771, 1),), (512, 514), (0, 255), numbers=(255, 0)),
    Case("INTERVAL = 0 behaves as 1, with ECOUNT", ERND, ((517, 1),), (260, 517), (0xFE, 0), interval=0, numbers=(3,)),
    # What software wrote to ECOUNT.
    Case("ECOUNT is overwritten", ERND, ((20, 1),), (10,), (0x400 - 18, 0), count=1, ecount=2, interval=4,
         numbers=(9,)),
    Case("ECOUNT is overwritten as it would end", ERND, ((20, 1),), (10,), (0x400 - 18, 0), count=1, ecount=1,
         interval=4, numbers=(9,)),
    Case("ECOUNT ends just before", ERND, ((2, 1),), (1, 2), (0, 0), count=2, ecount=1),
    Case("a restored ECOUNT goes on", ERND, ((5, 1),), (5,), (0x100 - 4, 0), ecount=5),
    Case("the member that reloads COUNT decrements ECOUNT", ERND, ((1, 1),), (1,), (0x100, 0), ecount=1),
    Case("the largest ECOUNT", ERND, ((255, 1),), (255,), (0x100 - 254, 0), ecount=255),
    Case("without RND a restored ECOUNT is kept and ignored", ERND, ((6, 0),), (5,), (0x100, 3), count=5, ecount=3),
    Case("ECOUNT rests while RND is zero", ERND, ((4, 1), (20, 0), (6, 1)), (30,), (470, 0), count=500, ecount=10),
    Case("RND is looked at when COUNT becomes zero", ERND, ((256, 0), (6, 1)), (262,), (0x100 - 4, 0), numbers=(5,)),
    Case("RND is looked at when COUNT is reloaded", PLAIN, ((257, 0), (1, 1)), (257,), (0x108, 0), numbers=(8,)),
)  # fmt: skip
"""Each rule of the chapter, at least once."""
