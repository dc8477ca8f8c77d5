"""States of finite state machines."""

from enum import IntEnum

__all__ = ["FSMState"]


class FSMState(IntEnum):
    """A state of an FSM. Its value is its position in the encoding, so that proofs compare it with the register.

    The module of a component with an FSM exports an enumeration of its states, named after the FSM.
    """

    def __format__(self, specification: str) -> str:
        # Amaranth formats a state for waveforms, which show the name.
        return format(self.name, specification)
