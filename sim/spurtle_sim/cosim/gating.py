"""Clock gating of the simulated SPU: registers that cannot change in a cycle are not evaluated.

Most registers hold their values in almost every cycle: those behind the sampling point change only while a record is
made or software accesses a register. They get a clock of their own, `gated_clk`. The next values of these gated
registers are a function of the gated registers, of some other registers, and of some inputs. An edge of `gated_clk` can
be omitted if the last one has changed no gated register, and if the others have the values that they had at that edge:
the next values are then the current ones.

The registers and inputs are found in the Verilog. The names below only determine which registers are gated, and how
often an edge can be omitted. They have no influence on results.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

__all__ = ["GatedVerilog", "gate"]

_FREQUENT = ("sampling__valid", "pe__physical_count")
"""Inputs that change in most cycles. Registers whose next values depend on them are not gated."""

_RARE = re.compile(r"interval_counter_selected__\d+|record_path_serializer_cutter_(?:low|high)|inflight_start\[.*")
"""Registers that depend on them, but change only while a record is made. Others may depend on them and be gated.

The state of the PE is stored in each cycle in which no slot is in use. Only the timestamp in it changes.
"""

_NAME = re.compile(r"(?<![\w'$])(?:inflight_start\[[\d:]+\]|[A-Za-z_]\w*)")
_FUNCTION = re.compile(r"^  function (?:\[\S+\] )?(\w+);.*?endfunction$", re.MULTILINE | re.DOTALL)
_REGISTER = re.compile(r"^  always @\(edge clk\)\n    (\w+) <= (.*?);$", re.MULTILINE | re.DOTALL)
_MEMORY = re.compile(r"^  reg \[\S+\] (\w+) \[", re.MULTILINE)
_MEMORY_WRITE = re.compile(r"^  always @\(edge clk\) begin$(.*?)^  end$", re.MULTILINE | re.DOTALL)
_ASSIGNMENT = re.compile(r"^  assign (.*?) = (.*?);$", re.MULTILINE | re.DOTALL)
_INPUT = re.compile(r"^  input (?:\[\S+\] )?(\w+);$", re.MULTILINE)
_RANGE = r"\[(\d+)(?::(\d+))?\]$"
_WIDTH = r"^  (?:wire|reg) (?:\[(\d+):0\] )?{}(?: = .*)?;$"


@dataclass(frozen=True)
class GatedVerilog:
    """Verilog with a clock for the registers that seldom change.

    The module has the additional input `gated_clk`. Its edge can be omitted if the additional outputs `gated_changed`
    and `gated_watched` are zero, and `inputs` have the values that they had at the last one. There are two outputs, so
    that the first one is evaluated only after an edge of `gated_clk`.

    Parameters
    ----------
    text : str
    inputs : tuple of str
        Inputs on which the gated registers depend.
    gated : frozenset of str
        Gated registers.
    """

    text: str
    inputs: tuple[str, ...]
    gated: frozenset[str]


def gate(text: str, timestamp: tuple[int, int]) -> GatedVerilog:
    """Return the Verilog of an SPU with a gated clock.

    Parameters
    ----------
    text : str
        One module in the form that Yosys writes, with `edge clk` as the event of each register.
    timestamp : tuple of int
        Offset and width of the timestamp in the state of the PE.
    """
    functions = "|".join(["if", *_FUNCTION.findall(text)])
    plain = re.sub(rf"\b(?:{functions})\b", "", _FUNCTION.sub("", text))
    inputs, memories = {*_INPUT.findall(plain)}, {*_MEMORY.findall(plain)}
    registers = {name: _names(value) for name, value in _REGISTER.findall(plain)}
    writes = [_names(body) for body in _MEMORY_WRITE.findall(plain)]
    if len(registers) + len(writes) != text.count("always @"):
        raise ValueError("each always block must store one register or write a memory")
    wires: dict[str, set[str]] = {}
    for target, value in _ASSIGNMENT.findall(plain):
        for name in _names(target):
            wires.setdefault(name, set()).update(_names(value))
    known = {*inputs, *memories, *registers, *wires}
    sources = set[str]().union(*registers.values(), *writes, *wires.values())
    if unknown := {_signal(name) for name in sources} - known:
        raise ValueError(f"nothing drives {', '.join(sorted(unknown))}")

    stamps = {name for name in sources if _overlaps(name, timestamp)}
    next_values = {name: _support(found, wires) for name, found in registers.items()}
    changing = _changing(next_values, {*_FREQUENT, *memories, *stamps})
    gated = frozenset(registers.keys() - changing)
    needed = {name for name in set[str]().union(*(next_values[name] for name in gated)) if _signal(name) not in gated}
    return GatedVerilog(_gated_text(text, gated, sorted(needed - inputs)), tuple(sorted(needed & inputs)), gated)


def _names(text: str) -> set[str]:
    return {*_NAME.findall(text)}


def _signal(name: str) -> str:
    """Return the signal of which `name` is a part."""
    return name.partition("[")[0]


def _overlaps(name: str, bits: tuple[int, int]) -> bool:
    """Return whether `name` is a part of a signal that contains some of `bits`, which are an offset and a width."""
    found = re.search(_RANGE, name)
    return bool(found) and int(found[1]) >= bits[0] and int(found[2] or found[1]) < sum(bits)


def _support(names: Iterable[str], wires: Mapping[str, set[str]]) -> set[str]:
    """Return the registers, memories and inputs on which `names` depend."""
    found, pending = set[str](), {*names}
    while pending:
        found |= pending
        pending = {source for name in pending for source in wires.get(_signal(name), ())} - found
    return {name for name in found if _signal(name) not in wires}


def _changing(next_values: Mapping[str, set[str]], frequent: set[str]) -> set[str]:
    """Return the registers that depend on something that changes in most cycles."""
    changing: set[str] = set()
    while True:
        sources = frequent | {name for name in changing if not _RARE.fullmatch(name)}
        more = {name for name, found in next_values.items() if found & sources} - changing
        if not more:
            return changing
        changing |= more


def _gated_text(text: str, gated: Iterable[str], watched: Iterable[str]) -> str:
    """Return the Verilog with the clock of the gated registers, and the comparison of those and of `watched`."""

    def block(match: re.Match[str]) -> str:
        return match[0].replace("edge clk", "edge gated_clk") if match[1] in gated else match[0]

    head, ports, body = re.split(r"^(module \w+\()", _REGISTER.sub(block, text), maxsplit=1, flags=re.MULTILINE)
    end = "\n".join([*_comparison(text, sorted(gated), list(watched)), "endmodule"])
    return "".join([head, ports, "gated_clk, gated_changed, gated_watched, ", body.replace("endmodule", end)])


def _comparison(text: str, gated: list[str], watched: list[str]) -> Iterator[str]:
    """Yield the lines that compare values with those before the last edge of the gated clock."""
    yield "  input gated_clk;"
    for number, name in enumerate([*gated, *watched]):
        yield f"  reg [{_width(text, name) - 1}:0] gated_seen_{number} = 0;"
        yield f"  always @(edge gated_clk)\n    gated_seen_{number} <= {name};"
    for name, first, names in ("gated_changed", 0, gated), ("gated_watched", len(gated), watched):
        differences = ("1'h0", *(f"{each} != gated_seen_{number}" for number, each in enumerate(names, first)))
        yield f"  output {name};\n  assign {name} = {' | '.join(differences)};"


def _width(text: str, name: str) -> int:
    declared, part = re.search(_WIDTH.format(_signal(name)), text, re.MULTILINE), re.search(_RANGE, name)
    assert declared  # Yosys declares each signal
    last, first = part.groups(default=part[1]) if part else (declared[1] or 0, 0)
    return int(last) - int(first) + 1
