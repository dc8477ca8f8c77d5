"""The timing model: when each operation of a program passes the sampling point, issues and finishes, and what it met.

A small out-of-order core: some operations a cycle in program order, dependences through registers, caches and TLBs with
least-recently-used replacement, a branch predictor. `docs/machine.md` says what it models and what it does not.
"""

# Ref: DDI0487 M.a, D17.6 (what the counters count), D18.2.4 (data source), D18.2.6 (events).

from collections import deque
from collections.abc import Mapping

import numpy as np

from spurtle.arch import Event

from .classify import FACT, REGISTERS, Instruction, Kind
from .core import Cache, DataSource, Parameters, Predictor
from .timed import TIMED

__all__ = ["Machine"]

_LINE_SHIFT, _PAGE_SHIFT = 6, 12
_FIRST_FRAME = 0x8000_0000 >> _PAGE_SHIFT

_TLB_ACCESS, _TLB_WALK = 1 << Event.TLB_ACCESS, 1 << Event.TLB_WALK
_L1D_ACCESS, _L1D_REFILL = 1 << Event.L1D_ACCESS, 1 << Event.L1D_REFILL
_L2D_ACCESS, _L2D_MISS = 1 << Event.L2D_ACCESS, 1 << Event.L2D_MISS
_LLC_ACCESS, _LLC_MISS = 1 << Event.LLC_ACCESS, 1 << Event.LLC_MISS
_RECENTLY_FETCHED = 1 << Event.RECENTLY_FETCHED
_MISPREDICTED = 1 << Event.MISPREDICTED


_Plan = tuple[Kind, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Of an instruction: kind (an atomic operation is a load or a store), latency, sources, destinations, base."""


class Machine:
    """The core. It keeps its state from one call of `time` to the next.

    Parameters
    ----------
    instructions : mapping of int to Instruction
        By PC; it may grow between calls (`Program.instructions`).
    parameters : Parameters
    """

    def __init__(self, instructions: Mapping[int, Instruction], parameters: Parameters | None = None) -> None:
        self._instructions = instructions
        self._parameters = p = parameters or Parameters()
        self._plans: dict[int, _Plan] = {}
        self._frames: dict[int, int] = {}
        self._l1d = Cache(p.l1d_bytes >> _LINE_SHIFT, p.l1d_ways)
        self._l2 = Cache(p.l2_bytes >> _LINE_SHIFT, p.l2_ways)
        self._system_cache = Cache(p.system_cache_bytes >> _LINE_SHIFT, p.system_cache_ways)
        self._tlb = Cache(p.tlb_entries, p.tlb_entries)
        self._l2_tlb = Cache(p.l2_tlb_entries, p.l2_tlb_ways)
        self._filling: dict[int, int] = {}
        self._predictor = Predictor(p.predictor_bits, p.return_stack)
        # Cycles, from the start of the program.
        self._dispatch = 0
        self._room = 0  # operations that can still dispatch in that cycle
        self._earliest = 0  # next dispatch after a redirection
        self._retired = 0
        self._drained = 0  # last store is in the cache
        self._ready = [0] * REGISTERS
        self._window = deque([0] * p.window, p.window)
        self._scheduler = deque([0] * p.scheduler, p.scheduler)
        self._stores = deque([0] * p.store_buffer, p.store_buffer)

    @property
    def cycles(self) -> int:
        """Cycles until everything so far has retired."""
        return self._retired

    def time(self, operations: np.ndarray) -> np.ndarray:
        """What the core does with `operations`.

        Parameters
        ----------
        operations : numpy.ndarray
            Of `program.OPERATION`, in program order.

        Returns
        -------
        numpy.ndarray
            Of TIMED, one row for each operation. `dispatch` goes on from call to call and never falls.
        """
        timed = np.zeros(len(operations), TIMED)
        facts = operations["facts"].copy()
        accessed = facts & FACT["va_valid"] != 0
        for name in ("pc", "target", "va"):
            timed[name] = operations[name]
        timed["pa"][accessed] = self._translate(operations["va"][accessed])
        facts[accessed] |= FACT["pa_valid"]
        facts[accessed & (facts & FACT["load"] != 0)] |= FACT["data_source_valid"]
        timed["facts"] = facts
        self._advance(timed)
        return timed

    def _translate(self, va: np.ndarray) -> np.ndarray:
        """Physical addresses: frames from 2 GiB upward, in the order in which the program first touches its pages."""
        pages, first, inverse = np.unique(va >> _PAGE_SHIFT, return_index=True, return_inverse=True)
        for page in pages[np.argsort(first)].tolist():
            if page not in self._frames:
                self._frames[page] = _FIRST_FRAME + len(self._frames)
        frames = np.array([self._frames[page] for page in pages.tolist()], np.uint64)
        return frames[inverse] << np.uint64(_PAGE_SHIFT) | va & np.uint64((1 << _PAGE_SHIFT) - 1)

    def _plan(self, instruction: Instruction) -> _Plan:
        kind, parameters = instruction.kind, self._parameters
        registers = (instruction.sources, instruction.destinations, instruction.base)
        if kind is Kind.ATOMIC:
            return (Kind.LOAD if instruction.facts & FACT["load"] else Kind.STORE, parameters.atomic, *registers)
        return (kind, parameters.latencies.get(kind, 0), *registers)

    def _refill(self, line: int) -> tuple[int, int, int]:
        """Latency, events and data source of a load that missed the first level; the line is then in every level."""
        parameters = self._parameters
        if self._l2.access(line):
            return parameters.l2, _L2D_ACCESS, DataSource.L2
        missed = _L2D_ACCESS | _L2D_MISS | _LLC_ACCESS
        if self._system_cache.access(line):
            return parameters.system_cache, missed, DataSource.SYSTEM_CACHE
        return parameters.dram, missed | _LLC_MISS, DataSource.DRAM

    def _advance(self, timed: np.ndarray) -> None:
        """Fill in cycles, events and data sources: the part with a recurrence, one operation after the other."""
        p = self._parameters
        pcs: list[int] = timed["pc"].tolist()
        for pc in set(pcs) - self._plans.keys():
            self._plans[pc] = self._plan(self._instructions[pc])
        facts: list[int] = timed["facts"].tolist()
        targets: list[int] = timed["target"].tolist()
        lines: list[int] = (timed["pa"] >> _LINE_SHIFT).tolist()
        pages: list[int] = (timed["va"] >> _PAGE_SHIFT).tolist()
        count = len(timed)
        dispatches, issues, finishes = [0] * count, [0] * count, [0] * count
        events, sources_of_data, waits = [0] * count, [0] * count, [0] * count

        ready, window, scheduler, stores = self._ready, self._window, self._scheduler, self._stores
        dispatch, earliest, retired, drained = self._dispatch, self._earliest, self._retired, self._drained
        room, ops_per_cycle = self._room, p.ops_per_cycle
        l1d_recent, l1d_mask, tlb_recent, filling = self._l1d.recent, self._l1d.mask, self._tlb.recent, self._filling
        va_valid, l1d_latency, store_latency, redirect = FACT["va_valid"], p.l1d, p.store, p.redirect
        load, store, barrier, synchronize = Kind.LOAD, Kind.STORE, Kind.MEMORY_BARRIER, Kind.SYNCHRONIZE
        branches = (Kind.BRANCH, Kind.CALL, Kind.RETURN)

        for index, (kind, latency, sources, destinations, base) in enumerate(map(self._plans.__getitem__, pcs)):
            # Dispatch: in order, so many a cycle, if there is room.
            cycle = dispatch if room else dispatch + 1
            if cycle < earliest:
                cycle = earliest
            if cycle < scheduler[0]:
                cycle = scheduler[0]
            if cycle < window[0]:
                cycle = window[0]
            if cycle != dispatch:
                dispatch, room = cycle, ops_per_cycle
            room -= 1

            # Issue: when the operands are there.
            issue = dispatch + 1
            for register in sources:
                if issue < ready[register]:
                    issue = ready[register]

            if kind is load or kind is store:
                finish = issue + store_latency
                if facts[index] & va_valid:
                    # Translation, then the caches. A hit in both costs nothing beyond the cache's latency.
                    page, line = pages[index], lines[index]
                    event, wait = _TLB_ACCESS, 1
                    if page != tlb_recent[0] and not self._tlb.access(page):
                        if self._l2_tlb.access(page):
                            wait += p.l2_tlb
                        else:
                            wait += p.walk
                            event |= _TLB_WALK
                    waits[index] = wait
                    hit = line == l1d_recent[line & l1d_mask] or self._l1d.access(line)
                    if kind is load:
                        event |= _L1D_ACCESS
                        if hit:
                            finish = issue + wait - 1 + l1d_latency
                            if line in filling and finish < filling[line]:
                                finish = filling[line]
                                event |= _RECENTLY_FETCHED
                        else:
                            delay, missed, sources_of_data[index] = self._refill(line)
                            event |= _L1D_REFILL | missed
                            finish = issue + wait - 1 + delay
                            filling[line] = finish
                            if len(filling) > 64:
                                filling = {line: end for line, end in filling.items() if end > dispatch}
                        finish += latency
                    else:
                        # A store ends in the store buffer; its line comes later, in order.
                        finish += wait - 1
                        if finish < stores[0]:
                            finish = stores[0]
                        if drained < finish:
                            drained = finish
                        drained += 1 if hit else self._refill(line)[0] // p.store_overlap
                        stores.append(drained)
                    events[index] = event
            elif kind is synchronize:
                issue = max(issue, retired)
                finish = issue + latency
                earliest = finish + redirect
            elif kind is barrier:
                issue = max(issue, retired)
                finish = max(issue + latency, drained)
            else:
                finish = issue + latency
                if kind in branches and self._predictor.mispredicts(kind, pcs[index], targets[index], facts[index]):
                    events[index] = _MISPREDICTED
                    earliest = finish + redirect

            for register in destinations:
                ready[register] = finish
            for register in base:
                ready[register] = issue + 1
            if retired < finish:
                retired = finish
            window.append(retired)
            scheduler.append(issue)
            dispatches[index] = dispatch
            issues[index] = issue - dispatch
            finishes[index] = finish - dispatch

        self._dispatch, self._earliest, self._retired, self._drained = dispatch, earliest, retired, drained
        self._room, self._filling = room, filling
        timed["dispatch"] = dispatches
        timed["issue"] = timed["translate_from"] = timed["translate_to"] = issues
        timed["translate_to"] += np.array(waits, np.uint32)
        timed["finish"] = finishes
        timed["events"] = events
        timed["data_source"] = sources_of_data
