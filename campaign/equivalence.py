"""Whether a mutant of the gateware differs from it: netlists compared, and where these differ, transition relations.

`python -m campaign.equivalence FOLDER` writes the netlists; with another argument it compares others with them.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
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
    """Yield what the fast tests elaborate: each shell, named configuration, variation of the tests, single feature."""
    yield "rvfi", lambda: RVFIAdapter(CONFIGS["minimal"])
    for name, config in CONFIGS.items():
        yield f"{name}_axi4_apb", lambda config=config: Shell(config, "axi4-apb")
        yield f"{name}_axi4_posted", lambda config=config: Shell(config, "axi4", outstanding=4)
    for name, config in {**FOR_BLOCKS, **FEATURES}.items():
        if name not in CONFIGS:
            yield name, lambda config=config: SPU(config)


def netlist(component: wiring.Component) -> str:
    """Return a component as RTLIL, without what says where in the source it comes from."""
    return rtlil.convert(component, name="top", emit_src=False)


def write_netlists(folder: Path) -> None:
    """Write each design to `NAME.il`, for `compare_all` in a copy with a fault."""
    folder.mkdir()
    for name, build in _designs():
        (folder / f"{name}.il").write_text(netlist(build()))


def compare_all(folder: Path) -> Difference:
    """Return how the designs differ from those that `write_netlists` has written: up to the first that does."""
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
        return Difference(Effect.DIFFERENT, f"it cannot be elaborated as {failed[0]}")
    reason = f"the same netlist in {len(designs) - len(proved)} of {len(designs)} configurations"
    return Difference(
        Effect.EQUIVALENT, f"{reason}; proved in the others that no state and no input differs" if proved else reason
    )


def compare(right: str, wrong: str) -> Difference:
    """Return whether a netlist differs from the right one, in its outputs or its next state, from any state at all.

    A state may be one that is never reached: a difference may be none that can be seen.
    """
    if right == wrong:
        return Difference(Effect.EQUIVALENT, "")
    both = [{found[1]: found[0] for found in _MODULE.finditer(text)} for text in (right, wrong)]
    module = _smallest(*both)
    try:
        one, other = (
            from_smt2(_transition(_below(modules, module)), name) for modules, name in zip(both, "ab", strict=True)
        )
        differ = not _comparable(one, other) or differs(one, other, assuming=lambda _: boolean(True))
    except (ToolError, Undecided, TermError):
        # Without a proof it counts as different. A signal of zero bits cannot be written as SMT.
        differ = True
    if differ:
        return Difference(Effect.DIFFERENT, f"{module} differs")
    return Difference(Effect.EQUIVALENT, f"proved of {module}")


def _smallest(right: dict[str, str], wrong: dict[str, str]) -> str:
    """Return the smallest module that all differences are in."""
    differing = [name.split(".") for name in {**right, **wrong} if right.get(name) != wrong.get(name)]
    common = differing[0]
    for name in differing:
        while name[: len(common)] != common:
            common = common[:-1]
    # A module's ports may differ where the module itself is new.
    while ".".join(common) not in right or ".".join(common) not in wrong:
        common = common[:-1]
    return ".".join(common)


def _below(modules: dict[str, str], top: str) -> str:
    """Return a module with those in it, named as `formal` expects."""
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
    """Write the netlists to a new folder, or with a second argument the difference from them to a file, as JSON."""
    folder, *report = map(Path, arguments)
    if report:
        report[0].write_text(json.dumps(asdict(compare_all(folder))))
    else:
        write_netlists(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
