"""States of finite state machines."""

from enum import IntEnum

__all__ = ["FSMState"]


class FSMState(IntEnum):
    """State of an FSM, with its encoding as value, so that proofs can compare it with the state register.

    The module of a component with an FSM exports an enumeration of its states, named after the FSM.
    """

    def __format__(self, specification: str) -> str:
        # Amaranth formats a state for waveforms, which are to show its name.
        return format(self.name, specification)
