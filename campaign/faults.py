"""Mutants of the gateware and of the reference model: each has one fault, in one line."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, pairwise
from pathlib import Path, PurePath

__all__ = ["Mutant", "MutantError", "MutantKind", "apply", "is_model", "mutants_of", "sources"]

_GATEWARE = (Path("rtl/spurtle/gateware"), Path("rtl/spurtle/interface"), Path("rtl/spurtle/shell"))
_MODEL = Path("sim/spurtle_sim/model")


class MutantError(Exception):
    """The text of a mutant does not occur exactly once in its file."""


class MutantKind(StrEnum):
    """Kind of a fault."""

    OPERATOR = "operator"
    CONSTANT = "constant"
    WIDTH = "width"
    SWAP = "swapped operands"
    ASSIGNMENT = "dropped assignment"
    RESET = "dropped reset"


@dataclass(frozen=True)
class Mutant:
    """A file with a fault in one line.

    Attributes
    ----------
    file : str
        Path below the root of the repository.
    text : str
        Source that occurs exactly once in the file.
    replacement : str
        Source that replaces it. It differs from `text` in one line.
    """

    file: str
    text: str
    replacement: str

    def __str__(self) -> str:
        old, new = next(
            (old.strip(), new.strip())
            for old, new in zip(self.text.splitlines(), self.replacement.splitlines(), strict=True)
            if old != new
        )
        return f"{self.file}: {old} -> {new}"


def is_model(file: str) -> bool:
    """Return whether a file belongs to the reference model."""
    return PurePath(file).is_relative_to(_MODEL)


def sources(root: Path) -> list[str]:
    """Return the files that have mutants: components, the signatures of their ports, and the reference model."""
    paths = [path for folder in (*_GATEWARE, _MODEL) for path in sorted((root / folder).glob("*.py"))]
    return [str(path.relative_to(root)) for path in paths if path.name != "__init__.py"]


def apply(mutant: Mutant, source: str) -> str:
    """Return the source of the mutant.

    Raises
    ------
    MutantError
        If the text of the mutant does not occur exactly once.
    """
    count = source.count(mutant.text)
    if count != 1:
        raise MutantError(f"{mutant.file} must contain the text of a mutant once, not {count} times: {mutant.text!r}")
    return source.replace(mutant.text, mutant.replacement)


def mutants_of(file: str, source: str) -> dict[MutantKind, list[Mutant]]:
    """Return the mutants of a file by the kind of their fault, in the order of the lines."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    found: dict[MutantKind, list[Mutant]] = {kind: [] for kind in MutantKind}
    seen: set[Mutant] = set()
    for edit in sorted(finder.edits, key=lambda edit: (edit.start, edit.stop)):
        mutant = _mutant(file, source, edit)
        if mutant not in seen:
            seen.add(mutant)
            found[edit.kind].append(mutant)
    return found


@dataclass(frozen=True)
class _Edit:
    """Replacement of the source between two offsets in one line."""

    kind: MutantKind
    start: int
    stop: int
    new: str


def _mutant(file: str, source: str, edit: _Edit) -> Mutant:
    """Return the mutant of an edit. Its text is the edited line, with the lines before it that make it unique."""
    first = source.rfind("\n", 0, edit.start) + 1
    last = source.find("\n", edit.stop)
    while first and source.count(source[first:last].lstrip()) > 1:
        first = source.rfind("\n", 0, first - 1) + 1
    text = source[first:last].lstrip()
    first = last - len(text)
    return Mutant(file, text, source[first : edit.start] + edit.new + source[edit.stop : last])


_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_OPERATIONS: dict[type[ast.operator], tuple[str, str]] = {
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
_WIDTH_FIRST = ("Signal", "In", "Out", "unsigned")
_WIDTH_SECOND = ("C", "Const")


class _Finder(ast.NodeVisitor):
    """Visitor that collects the edits of a module."""

    def __init__(self, source: str):
        self.edits: list[_Edit] = []
        self._source = source
        self._lines = list(chain([0], (match.end() for match in re.finditer("\n", source))))
        self._function = ""
        self._registered: set[str] = set()
        self._widths: set[int] = set()

    # Offsets.

    def _offset(self, line: int, column: int) -> int:
        start = self._lines[line - 1]
        # The parser counts bytes.
        return start + len(self._source[start:].encode()[:column].decode())

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._offset(node.lineno, node.col_offset)

    def _stop(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.expr | ast.stmt) -> str:
        return self._source[self._start(node) : self._stop(node)]

    def _operand(self, node: ast.expr) -> str:
        """Return the source of an operand, in parentheses unless it binds more strongly than any operator."""
        atom = isinstance(node, ast.Name | ast.Attribute | ast.Constant | ast.Call | ast.Subscript)
        return self._text(node) if atom else f"({self._text(node)})"

    def _add(self, kind: MutantKind, start: int, stop: int, new: str) -> None:
        if "\n" not in self._source[start:stop]:
            self.edits.append(_Edit(kind, start, stop, new))

    def _between(self, kind: MutantKind, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Replace the operator between two operands, which may be in parentheses."""
        gap = self._source[self._stop(left) : self._start(right)]
        if "\n" not in gap:
            start = self._stop(left) + gap.index(old)
            self._add(kind, start, start + len(old), new)

    # Nodes without effect on the behavior: argument checks, types, exported names.

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        pass

    def visit_If(self, node: ast.If) -> None:
        if not all(isinstance(statement, ast.Raise) for statement in node.body):
            self.visit(node.test)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        before, self._function = self._function, node.name
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body):
            self.visit(part)
        self._function = before

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before = self._registered
        self._registered = set(_registered(node))
        for statement in node.body:
            self.visit(statement)
        self._registered = before

    # Operators and operands.

    def visit_Compare(self, node: ast.Compare) -> None:
        for (left, right), operator in zip(pairwise((node.left, *node.comparators)), node.ops, strict=True):
            self._between(MutantKind.OPERATOR, left, right, *_COMPARISONS[type(operator)])
            if isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and len(node.ops) == 1:
                symbol = _COMPARISONS[type(operator)][0]
                swapped = f"{self._operand(right)} {symbol} {self._operand(left)}"
                self._add(MutantKind.SWAP, self._start(node), self._stop(node), swapped)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in _OPERATIONS:
            self._between(MutantKind.OPERATOR, node.left, node.right, *_OPERATIONS[type(node.op)])
        if isinstance(node.op, ast.Sub):
            swapped = f"{self._operand(node.right)} - {self._operand(node.left)}"
            self._add(MutantKind.SWAP, self._start(node), self._stop(node), swapped)
        if isinstance(node.op, ast.LShift) and isinstance(node.left, ast.Constant) and node.left.value == 1:
            self._narrow(node.right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in pairwise(node.values):
            self._between(MutantKind.OPERATOR, left, right, old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Invert | ast.Not):
            # Parentheses around the operand remain.
            before = self._source[self._start(node) : self._start(node.operand)]
            operator = "~" if isinstance(node.op, ast.Invert) else "not"
            self._add(
                MutantKind.OPERATOR,
                self._start(node),
                self._start(node.operand),
                before.removeprefix(operator).lstrip(),
            )
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        swapped = f"{self._operand(node.orelse)} if {self._text(node.test)} else {self._operand(node.body)}"
        self._add(MutantKind.SWAP, self._start(node), self._stop(node), swapped)
        self.generic_visit(node)

    # Numbers.

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(MutantKind.CONSTANT, self._start(node), self._stop(node), str(not node.value))
        elif isinstance(node.value, int):
            kind = MutantKind.WIDTH if id(node) in self._widths else MutantKind.CONSTANT
            changed = 1 - node.value if node.value in (0, 1) else node.value + (-1 if kind is MutantKind.WIDTH else 1)
            self._add(kind, self._start(node), self._stop(node), str(changed))

    def _narrow(self, node: ast.expr) -> None:
        """Take one off a width, or off a bit index."""
        if isinstance(node, ast.Constant):
            self._widths.add(id(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            self._narrow(node.args[-1])
        elif isinstance(node, ast.BinOp | ast.Name | ast.Attribute) or (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("len", "min", "max")
        ):
            self._add(MutantKind.WIDTH, self._start(node), self._stop(node), f"{self._operand(node)} - 1")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.slice, ast.Slice):
            for bound in filter(None, (node.slice.lower, node.slice.upper)):
                self._narrow(bound)
        elif isinstance(node.slice, ast.Constant):
            self._narrow(node.slice)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _WIDTH_FIRST and node.args:
            self._narrow(node.args[0])
        elif name in _WIDTH_SECOND and len(node.args) > 1:
            self._narrow(node.args[1])
        if name in ("Mux", "Cat") and len(node.args) > 1:
            self._swap(*node.args[-2:])
        for keyword in node.keywords:
            if keyword.arg == "init":
                self._drop_keyword(keyword)
        self.generic_visit(node)

    def _swap(self, left: ast.expr, right: ast.expr) -> None:
        if not isinstance(left, ast.Starred | ast.GeneratorExp) and not isinstance(right, ast.Starred):
            gap = self._source[self._stop(left) : self._start(right)]
            self._add(
                MutantKind.SWAP, self._start(left), self._stop(right), f"{self._text(right)}{gap}{self._text(left)}"
            )

    # Assignments and resets.

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not _is_statements(node.target):
            if type(node.op) in _OPERATIONS:
                old, new = _OPERATIONS[type(node.op)]
                self._between(MutantKind.OPERATOR, node.target, node.value, f"{old}=", f"{new}=")
            self._drop(node)
        elif isinstance(node.value, ast.List):
            for element in node.value.elts:
                # `*()` unpacks to nothing, and is valid in any list.
                self._add(MutantKind.ASSIGNMENT, self._start(element), self._stop(element), "*()")
        else:
            self._drop(node)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            return
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self._drop(node)
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self._registered and isinstance(node.value, ast.Call):
                self._reset_less(node.value)
        self.generic_visit(node)

    def _drop(self, node: ast.stmt) -> None:
        # An attribute that a constructor does not store makes every test fail.
        if self._function != "__init__":
            self._add(MutantKind.ASSIGNMENT, self._start(node), self._stop(node), "pass")

    def _drop_keyword(self, keyword: ast.keyword) -> None:
        start, stop = self._offset(keyword.lineno, keyword.col_offset), self._stop(keyword.value)
        before = self._source[:start].rstrip()
        self._add(MutantKind.RESET, len(before) - before.endswith(","), stop, "")

    def _reset_less(self, call: ast.Call) -> None:
        if isinstance(call.func, ast.Name) and call.func.id == "Signal" and "\n" not in self._text(call):
            comma = ", " if call.args or call.keywords else ""
            self._add(MutantKind.RESET, self._stop(call) - 1, self._stop(call), f"{comma}reset_less=True)")


def _is_statements(target: ast.expr) -> bool:
    """Return whether the target adds statements to a domain of a module: `m.d.comb`, `m.d.sync`."""
    return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Attribute) and target.value.attr == "d"


def _registered(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the signals that are assigned in `m.d.sync`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign) and _is_statements(node.target) and _attribute(node.target) == "sync":
            for call in _calls(node.value, "eq"):
                name = call
                while isinstance(name, ast.Attribute | ast.Subscript):
                    name = name.value
                if isinstance(name, ast.Name):
                    yield name.id


def _attribute(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""


def _calls(tree: ast.AST, method: str) -> Iterable[ast.expr]:
    """Yield the objects on which a method is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
            yield node.func.value
