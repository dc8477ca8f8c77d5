"""The sampling point, and what the core reports of sampled operations until they finish."""

# Ref: DDI0487 M.a, D17.3.6 (where operations are sampled is the core's choice).

from amaranth.lib.wiring import In, Out

from ..config import ELEMENT_BITS, SPUConfig, check_config
from .members import when
from .operation import LocationLayout, OperationLayout
from .signature import StructuralSignature

__all__ = ["FinishSignature", "InFlightSignature", "SamplingPointSignature", "TakenBranchSignature"]


class SamplingPointSignature(StructuralSignature):
    """The point of the pipeline at which the core samples, seen from the core. A lane is a bit; they are in program
    order, bit 0 first, and any of them may be empty.

    Members
    -------
    valid : Out(ops_per_cycle)
        Members of the sample population that pass in this cycle. One `PEStateSignature` holds for all of them.
    sampled : In(ops_per_cycle)
        `answer_latency` cycles after `valid`: which of those operations are sampled. More than one can be with
        FEAT_SPE_ERnd alone, and then at most two.
    slot : In(range(slots)) for each lane
        The slot of a sampled operation, by which the core tells it from the others in flight. Not there with one slot.
    destination : In(ops_per_cycle)
        Which access is sampled of a sampled operation that loads from one address and stores to another (Memory Copy,
        GCSSS2): the store, where it is one (D17.6.4.3, D17.6.4.5). Only there with FEAT_MOPS or FEAT_GCS.
    element : In(8) for each lane
        A uniform random number, a fresh one for each selected operation: of a non-contiguous SVE access to n elements
        number `element * n >> 8` is sampled (D17.6.6 R_MYPFF). Only there with FEAT_SVE or FEAT_SME.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        lanes = config.ops_per_cycle
        super().__init__(
            {
                "valid": Out(lanes),
                "sampled": In(lanes),
                **when(config.slots > 1, slot=In(range(config.slots)).array(lanes)),
                **when(config.two_accesses, destination=In(lanes)),
                **when(config.scalable, element=In(ELEMENT_BITS).array(lanes)),
            }
        )


class InFlightSignature(StructuralSignature):
    """What the sampled operations are doing, one bit for each slot, seen from the core; meaningful from an operation's
    `sampled` to its `FinishSignature`.

    What happens to an operation is told `answer_latency - 1` cycles late, here and in `FinishSignature`. So the cycle
    after it passed the sampling point is told with the answer, nothing is told before, and the latencies are true.

    Members
    -------
    issued : Out(slots)
        The operation leaves the issue queue: the issue counter stops.
    completed : Out(slots)
        It has finished execution and can stall no instruction that consumes its output (D18.2.3): its counters stop. In
        the cycle of `FinishSignature` at the latest: that stops them as well.
    translating : Out(slots)
        Level: part of the operation waits for an address translation, and the translation counter counts.
    alternate_tick : Out(1)
        A cycle of the alternate clock has passed (D17.6.1). Only there with that clock.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "issued": Out(config.slots),
                "completed": Out(config.slots),
                "translating": Out(config.slots),
                **when(config.altclk, alternate_tick=Out(1)),
            }
        )


class FinishSignature(StructuralSignature):
    """The end of a sampled operation, seen from the core. Always accepted: the SPU never stalls the core.

    Members
    -------
    valid : Out(1)
        A sampled operation has finished, at the earliest one cycle after its `sampled` strobe. All is known of it,
        whether it retired too: where that comes after it completed, `InFlightSignature.completed` has told its latency.
    slot : Out(range(slots))
        Which. Not there with one slot.
    vanished : Out(1)
        It was flushed and leaves no record: only its slot is freed.
    operation : Out(OperationLayout)
        The operation. A core that samples micro-ops reports the micro-op, by whose type it is filtered (D17.5.1
        I_XNXRN).
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "valid": Out(1),
                **when(config.slots > 1, slot=Out(range(config.slots))),
                "vanished": Out(1),
                "operation": Out(OperationLayout(config)),
            }
        )


class TakenBranchSignature(StructuralSignature):
    """The taken branches that retire, in program order, seen from the core. Only there with FEAT_SPE_PBT.

    The core chooses whether exceptions, exception returns and other context synchronization are told of as branches
    (D17.6.3.1). A branch that is older in program order than a sampled operation is told before the cycle in which
    `FinishSignature` tells of that operation, and nothing younger is, nor the operation itself.

    Members
    -------
    valid : Out(1)
        A taken branch has retired.
    target : Out(LocationLayout)
        Where it went.
    el, ns, nse, aarch32 : Out
        State of the PE that it was executed in, as in `PEStateSignature`; `nse` only with FEAT_RME.
    """

    def __init__(self, config: SPUConfig):
        check_config(config)
        super().__init__(
            {
                "valid": Out(1),
                "target": Out(LocationLayout(config)),
                "el": Out(2),
                "ns": Out(1),
                **when(config.rme, nse=Out(1)),
                "aarch32": Out(1),
            }
        )
