"""Equivalence of a mutant of the gateware: comparison of netlists and, where these differ, of transition relations.

`python -m campaign.equivalence FOLDER` writes the netlists of the correct code. With a second argument, a file name, it
compares the netlists of a mutant with them and writes the difference as JSON.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from amaranth.back import rtlil
from amaranth.lib import wiring

from configurations import FEATURES, FOR_BLOCKS
from formal.engine.faults import differs
from formal.engine.terms import TermError, Undecided, boolean
from formal.engine.tools import ToolError, yosys
from formal.engine.transition import PREPARE, WRITE, Transition, from_smt2
from spurtle.config import CONFIGS
from spurtle.gateware.spu import SPU
from spurtle.shell.rvfi import RVFIAdapter
from spurtle.shell.shell import Shell

from .report import Difference, Effect

__all__ = ["compare", "netlist"]

_MODULE = re.compile(r"^module (\S+)$.*?^end$", re.MULTILINE | re.DOTALL)


def _designs() -> Iterator[tuple[str, Callable[[], wiring.Component]]]:
    """Yield the designs that the fast tests elaborate.

    These are each shell, each named configuration, the variants of the tests, and each single feature.
    """
    yield "rvfi", lambda: RVFIAdapter(CONFIGS["minimal"])
    for name, config in CONFIGS.items():
        yield f"{name}_axi4_apb", lambda config=config: Shell(config, "axi4-apb")
        yield f"{name}_axi4_four", lambda config=config: Shell(replace(config, outstanding=4), "axi4")
    for name, config in {**FOR_BLOCKS, **FEATURES}.items():
        if name not in CONFIGS:
            yield name, lambda config=config: SPU(config)


def netlist(component: wiring.Component) -> str:
    """Return the RTLIL of a component without source locations."""
    return rtlil.convert(component, name="top", emit_src=False)


def write_netlists(folder: Path) -> None:
    """Write each design to `NAME.il`, for `compare_all` in a copy with a fault."""
    folder.mkdir()
    for name, build in _designs():
        (folder / f"{name}.il").write_text(netlist(build()))


def compare_all(folder: Path) -> Difference:
    """Compare the designs with those that `write_netlists` has written, up to the first difference."""
    designs = list(_designs())
    failed: list[str] = []
    proved: list[str] = []
    for name, build in designs:
        try:
            text = netlist(build())
        except Exception:  # A fault in the code may raise anything.
            failed.append(name)
            continue
        difference = compare((folder / f"{name}.il").read_text(), text)
        if difference.effect is Effect.DIFFERENT:
            return Difference(Effect.DIFFERENT, f"{name}: {difference.reason}")
        if difference.reason:
            proved.append(name)
    if len(failed) == len(designs):
        return Difference(Effect.ILLEGAL, "it cannot be elaborated")
    if failed:
        return Difference(Effect.DIFFERENT, f"{failed[0]} cannot be elaborated")
    reason = f"equal netlists in {len(designs) - len(proved)} of {len(designs)} configurations"
    return Difference(Effect.EQUIVALENT, f"{reason}; proved to be equivalent in the others" if proved else reason)


def compare(right: str, wrong: str) -> Difference:
    """Return whether a netlist differs from the correct one in its outputs or its next state, for any state.

    Unreachable states are included, so a reported difference may have no effect.
    """
    if right == wrong:
        return Difference(Effect.EQUIVALENT, "")
    both = [{found[1]: found[0] for found in _MODULE.finditer(text)} for text in (right, wrong)]
    module = _smallest(*both)
    try:
        one, other = (
            from_smt2(_transition(_subtree(modules, module)), name) for modules, name in zip(both, "ab", strict=True)
        )
        differ = not _comparable(one, other) or differs(one, other, assuming=lambda _: boolean(True))
    except (ToolError, Undecided, TermError):
        # Without a proof the netlist counts as different. A signal of zero bits cannot be written as SMT.
        differ = True
    if differ:
        return Difference(Effect.DIFFERENT, f"{module} differs")
    return Difference(Effect.EQUIVALENT, f"{module} is proved to be equivalent")


def _smallest(right: dict[str, str], wrong: dict[str, str]) -> str:
    """Return the smallest module that contains all differences."""
    differing = [name.split(".") for name in {**right, **wrong} if right.get(name) != wrong.get(name)]
    common = differing[0]
    for name in differing:
        while name[: len(common)] != common:
            common = common[:-1]
    # A module that exists in one netlist only cannot be compared; its parent can.
    while ".".join(common) not in right or ".".join(common) not in wrong:
        common = common[:-1]
    return ".".join(common)


def _subtree(modules: dict[str, str], top: str) -> str:
    """Return a module with its submodules, with the names that `formal` expects."""
    texts = [text for name, text in modules.items() if name == top or name.startswith(f"{top}.")]
    return re.sub(rf"{re.escape(top)}(?=[.\s])", r"\\top", "\n".join(texts))


def _transition(design: str) -> str:
    return yosys(design, f"{PREPARE}; {WRITE} {{output}}")


def _comparable(right: Transition, wrong: Transition) -> bool:
    """Return whether both have the same ports and registers."""
    one, other = right.wires(0), wrong.wires(0)
    kinds = [(relation.inputs, relation.outputs, relation.registers) for relation in (right, wrong)]
    if [set(names) for names in kinds[0]] != [set(names) for names in kinds[1]]:
        return False
    return all(one[name].width == other[name].width for names in kinds[0] for name in names)


def main(arguments: Sequence[str]) -> None:
    """Write the netlists to a new folder, or, with a second argument, the difference from them to a JSON file."""
    folder, *report = map(Path, arguments)
    if report:
        report[0].write_text(json.dumps(asdict(compare_all(folder))))
    else:
        write_netlists(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
