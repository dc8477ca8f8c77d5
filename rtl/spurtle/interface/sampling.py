"""Sampling point, and reports of the core on sampled operations until they finish.

Ref: DDI0487 M.a, D17.3.6 (the core chooses where in its pipeline it samples).
"""

from amaranth.lib.wiring import In, Out

from ..config import ELEMENT_BITS, SPUConfig, check_config
from .members import when
from .operation import LocationLayout, OperationLayout
from .signature import StructuralSignature

__all__ = ["FinishSignature", "InFlightSignature", "SamplingPointSignature", "TakenBranchSignature"]


class SamplingPointSignature(StructuralSignature):
    """Point of the pipeline at which the core samples, seen from the core.

    A lane is one bit. Lanes are in program order, bit 0 first. Any lane may be empty.

    Members
    -------
    valid : Out(ops_per_cycle)
        Members of the sample population that pass the sampling point in this cycle. One `PEStateSignature` holds for
        all of them.
    sampled : In(ops_per_cycle)
        Operations that are sampled, `answer_latency` cycles after `valid`: at most one, or at most two with
        FEAT_SPE_ERnd.
    slot : In(range(slots)) for each lane
        Slot of a sampled operation, which identifies it among those in flight. Only with more than one slot.
    destination : In(ops_per_cycle)
        For a sampled operation that loads from one address and stores to another (Memory Copy, GCSSS2): the store is
        sampled if one, the load if zero (D17.6.4.3, D17.6.4.5). Only with FEAT_MOPS or FEAT_GCS.
    element : In(8) for each lane
        Uniform random number, a new one for each selected operation. Element number `element * n >> 8` of a
        non-contiguous SVE access to n elements is sampled (D17.6.6 R_MYPFF). Only with FEAT_SVE or FEAT_SME.
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
    """Progress of the sampled operations, one bit for each slot, seen from the core.

    The bits of a slot are valid from `sampled` of its operation to its `FinishSignature`.

    Reports are `answer_latency - 1` cycles late, here and in `FinishSignature`. The report for the cycle after the
    sampling point thus coincides with `sampled`, no report precedes `sampled`, and the latencies are exact.

    Members
    -------
    issued : Out(slots)
        The operation leaves the issue queue. The issue counter stops.
    completed : Out(slots)
        The operation has finished execution and can stall no instruction that consumes its output (D18.2.3). Its
        counters stop. They stop with `FinishSignature` at the latest.
    translating : Out(slots)
        Level: part of the operation waits for an address translation. The translation counter counts.
    alternate_tick : Out(1)
        A cycle of the alternate clock has passed (D17.6.1). Only with an alternate clock.
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
    """End of a sampled operation, seen from the core.

    There is no `ready`: the SPU never stalls the core.

    Members
    -------
    valid : Out(1)
        A sampled operation has finished, at the earliest one cycle after its `sampled` strobe. Everything is known of
        it, including whether it retired. If it retires after it completes, `InFlightSignature.completed` has stopped
        its counters before.
    slot : Out(range(slots))
        Slot of the operation. Only with more than one slot.
    vanished : Out(1)
        The operation was flushed and leaves no record: only its slot is freed.
    operation : Out(OperationLayout)
        The operation. A core that samples micro-ops reports the micro-op, whose type the filters use (D17.5.1 I_XNXRN).
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
    """Taken branches that retire, in program order, seen from the core. Only with FEAT_SPE_PBT.

    The core chooses whether exceptions, exception returns and other context synchronization events are reported as
    branches (D17.6.3.1). A branch that is older in program order than a sampled operation is reported before the cycle
    of the operation's `FinishSignature`. Younger branches and the operation itself are not.

    Members
    -------
    valid : Out(1)
        A taken branch has retired.
    target : Out(LocationLayout)
        Target of the branch.
    el, ns, nse, aarch32 : Out
        State of the PE in which the branch was executed, as in `PEStateSignature`. `nse` only with FEAT_RME.
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
