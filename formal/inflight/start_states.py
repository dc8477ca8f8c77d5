"""Start states of the slots: each slot in use has a word of the memory, which is not written."""

from collections.abc import Iterator
from functools import reduce

from spurtle.config import SPUConfig
from spurtle.gateware.slots import SlotState

from ..engine.induction import Invariant
from ..engine.terms import BitVector, Boolean, all_of, boolean, if_else, implies, ule
from ..engine.transition import Wires

__all__ = ["registers", "start", "word_of", "words", "words_are_kept"]


def words(config: SPUConfig) -> list[str]:
    """Return the words of the memory of `InFlight`. There are none with one slot."""
    return [f"start_states.words[{word}]" for word in range(config.slots + 1)] if config.slots > 1 else []


def word_of(slot: int) -> str:
    """Return the register with the number of the word of this slot."""
    return f"start_states.word_{slot}"


def registers(config: SPUConfig) -> Iterator[str]:
    """Yield the registers of `InFlight` that `words_are_kept` reads, without those of the slots."""
    if config.slots > 1:
        yield "start_states.next_word"
        yield from map(word_of, range(config.slots))


def words_are_kept(config: SPUConfig) -> Invariant:
    """Return the invariant that the word of each slot in use is not the one that is written."""

    def holds(wires: Wires) -> Boolean:
        if config.slots == 1:
            return boolean(True)
        next_word = wires["start_states.next_word"]
        terms = [ule(next_word, config.slots)]
        for slot in range(config.slots):
            word, used = wires[word_of(slot)], wires[f"slot_{slot}.slot_state"] != SlotState.FREE
            terms.append(implies(used, all_of(ule(word, config.slots), word != next_word)))
        return all_of(*terms)

    return holds


def start(config: SPUConfig, wires: Wires, slot: int) -> BitVector:
    """Return the start state of the operation in this slot, under the invariant `words_are_kept`."""
    if config.slots == 1:
        return wires["start"]
    number, values = wires[word_of(slot)], [wires[name] for name in words(config)]
    return reduce(lambda found, word: if_else(number == word, values[word], found), range(len(values)), values[0])
