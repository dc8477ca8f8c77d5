"""Short sequences of operations on the timing model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spurtle.arch import Event
from spurtle_sim.timing.model import TimingModel
from spurtle_sim.timing.parameters import Parameters
from spurtle_sim.trace.dtypes import OPERATION
from spurtle_sim.trace.instruction import FACT, Instruction, InstructionKind
from tests.support.cores import core

__all__ = [
    "ALU",
    "ATOMIC",
    "BRANCH",
    "DMB",
    "INDEPENDENT",
    "INDEPENDENT_LOAD",
    "ISB",
    "LINE",
    "LOAD",
    "PAGE",
    "STORE",
    "events",
    "run_loop",
    "run_steps",
]

_DEFAULT = core()

ALU = Instruction(InstructionKind.INTEGER, sources=(1,), destinations=(1,))
INDEPENDENT = Instruction(InstructionKind.INTEGER, destinations=(2,))
LOAD = Instruction(InstructionKind.LOAD, FACT["load"], sources=(1,), destinations=(1,), traffic=8)
INDEPENDENT_LOAD = Instruction(InstructionKind.LOAD, FACT["load"], sources=(3,), destinations=(4,), traffic=8)
STORE = Instruction(InstructionKind.STORE, FACT["store"], sources=(1, 3), traffic=8)
ATOMIC = Instruction(InstructionKind.ATOMIC, FACT["load"] | FACT["store"] | FACT["atomic"], (3,), (4,), traffic=16)
BRANCH = Instruction(InstructionKind.BRANCH, FACT["branch"] | FACT["conditional"])
ISB = Instruction(InstructionKind.SYNCHRONIZE)
DMB = Instruction(InstructionKind.MEMORY_BARRIER)

LINE, PAGE = 64, 4096


def run_steps(steps: Sequence[tuple[Instruction, int]], parameters: Parameters = _DEFAULT) -> NDArray[np.void]:
    """Return the timing of `steps`: instructions, each with its address, or for a branch whether it is taken."""
    instructions = {4 * index: instruction for index, (instruction, _) in enumerate(steps, 1)}
    operations = np.zeros(len(steps), OPERATION)
    for index, (instruction, argument) in enumerate(steps):
        facts = instruction.facts | FACT["retired"]
        if instruction.traffic:
            facts |= FACT["va_valid"]
            operations["va"][index] = argument
        if instruction.facts & FACT["branch"] and argument:
            facts |= FACT["taken"]
        operations["facts"][index] = facts
    operations["pc"] = list(instructions)
    return TimingModel(instructions, parameters).run(operations)


def events(row: np.void) -> set[Event]:
    """Return the events of an operation."""
    return {event for event in Event if int(row["events"]) >> event & 1}


def run_loop(instruction: Instruction, addresses: Sequence[int], parameters: Parameters) -> NDArray[np.void]:
    """Return the timing of an instruction that is executed once for each address."""
    operations = np.zeros(len(addresses), OPERATION)
    operations["pc"] = 4
    operations["va"] = addresses
    operations["facts"] = instruction.facts | FACT["retired"] | FACT["va_valid"]
    return TimingModel({4: instruction}, parameters).run(operations)
