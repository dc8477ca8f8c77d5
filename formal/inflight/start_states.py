"""Start states of the slots: each slot in use has a word of the memory, which is not written."""

from collections.abc import Iterator
from functools import reduce
from itertools import combinations

from spurtle.config import SPUConfig
from spurtle.gateware.slots import SlotState

from ..engine.induction import Invariant
from ..engine.terms import BitVector, Boolean, all_of, any_of, boolean, extract, if_else, implies
from ..engine.transition import Wires

__all__ = ["held_by", "kept", "passed", "registers", "start", "words", "words_are_kept"]


def words(config: SPUConfig) -> list[str]:
    """Return the words of the memory of `InFlight`. There are none with one slot."""
    if config.slots == 1:
        return []
    return [f"start_states.words[{word}]" for word in range(config.slots + config.answer_latency + 1)]


def passed(age: int) -> str:
    """Return the register, one-hot, with the word of the operations that passed `age + 1` cycles before."""
    return f"start_states.passed_{age}"


def held_by(slot: int) -> str:
    """Return the register, one-hot, with the word of this slot."""
    return f"start_states.held_{slot}"


def _address_of(slot: int) -> str:
    """Return the register with the number of the word of this slot."""
    return f"start_states.address_{slot}"


def registers(config: SPUConfig) -> Iterator[str]:
    """Yield the registers of `StartStates` that `words_are_kept` reads."""
    if config.slots > 1:
        yield from map(passed, range(config.answer_latency))
        yield from map(held_by, range(config.slots))
        yield from map(_address_of, range(config.slots))


def _one_hot(word: BitVector) -> Boolean:
    return all_of(word != 0, word & (word - 1) == 0)


def words_are_kept(config: SPUConfig) -> Invariant:
    """Return the invariant that the word of each slot in use is no other's, except for those of one cycle.

    So it is not written, nor are the words of operations whose selection is not known.
    """

    def holds(wires: Wires) -> Boolean:
        if config.slots == 1:
            return boolean(True)
        waiting = [wires[passed(age)] for age in range(config.answer_latency)]
        terms = [*map(_one_hot, waiting), *(one & other == 0 for one, other in combinations(waiting, 2))]
        for slot in range(config.slots):
            word, address = wires[held_by(slot)], wires[_address_of(slot)]
            kept = all_of(
                _one_hot(word),
                *(word & one == 0 for one in waiting),
                *(implies(extract(n, n, word) == 1, address == n) for n in range(word.width)),
            )
            terms.append(any_of(wires[f"slot_{slot}.slot_state"] == SlotState.FREE, kept))
            terms.append(word & (word - 1) == 0)
        return all_of(*terms)

    return holds


def kept(config: SPUConfig, now: Wires, then: Wires, slot: int) -> Boolean:
    """Return whether the start state of this slot is stable, under the invariant `words_are_kept`.

    The slot keeps its word. Only one word is written, and no slot in use has that word.
    """
    if config.slots == 1:
        return then["start"] == now["start"]
    written = now[passed(0)]
    unchanged = (
        any_of(extract(number, number, written) == 1, then[word] == now[word])
        for number, word in enumerate(words(config))
    )
    same = (then[name] == now[name] for name in (held_by(slot), _address_of(slot)))
    return all_of(*same, *unchanged)


def start(config: SPUConfig, wires: Wires, slot: int) -> BitVector:
    """Return the start state of the operation in this slot, under the invariant `words_are_kept`."""
    if config.slots == 1:
        return wires["start"]
    address, values = wires[_address_of(slot)], [wires[name] for name in words(config)]
    return reduce(lambda found, word: if_else(address == word, values[word], found), range(len(values)), values[0])
