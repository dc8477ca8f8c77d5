"""The members of a JSON object, each taken once and checked."""

from typing import TypeVar, cast

from spurtle.support.errors import UserError
from spurtle.support.numerals import number

__all__ = ["Fields"]

T = TypeVar("T")


class Fields:
    """A JSON object of which each member is taken once, so that what is left is not allowed there.

    Each method raises UserError with the name of the member, its value and what is allowed.
    """

    def __init__(self, value: object, path: str = ""):
        if not isinstance(value, dict):
            raise UserError(f"{path or 'a record'} must be a JSON object, not {value!r}")
        members = cast("dict[str, object]", value)
        self._left = {name: member for name, member in members.items() if member is not None}
        self._path = path
        self._asked: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def _name(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _take(self, name: str, allowed: str) -> object:
        self._asked.append(name)
        if name not in self._left:
            raise UserError(f"{self._name(name)} is missing: it must be {allowed}")
        return self._left.pop(name)

    def ignore(self, *names: str) -> None:
        for name in names:
            self._left.pop(name, None)

    def integer(self, name: str, maximum: int) -> int:
        allowed = f"a number from 0 to {maximum if maximum < 1 << 32 else hex(maximum)}" if maximum else "0"
        value = self._take(name, allowed)
        content = number(value) if isinstance(value, str) else value
        if isinstance(content, int) and not isinstance(content, bool) and 0 <= content <= maximum:
            return content
        raise UserError(f"{self._name(name)} must be {allowed}, not {value!r}")

    def optional(self, name: str, maximum: int) -> int | None:
        if name in self:
            return self.integer(name, maximum)
        self._asked.append(name)
        return None

    def choice(self, name: str, allowed: tuple[T, ...], default: T | None = None) -> T:
        """One of `allowed`; `default` if there is none."""
        if default is not None and name not in self:
            self._asked.append(name)
            return default
        text = " or ".join(_json_word(one) for one in allowed)
        value = self._take(name, text)
        for one in allowed:
            if value == one and type(value) is type(one):
                return one
        raise UserError(f"{self._name(name)} must be {text}, not {_json_word(value)}")

    def flag(self, name: str) -> int:
        return int(self.choice(name, (False, True), default=False))

    def numbers(self, name: str, allowed: frozenset[int]) -> int:
        """A list of bit numbers, as a mask."""
        text = f"a list of {', '.join(str(number) for number in sorted(allowed))}"
        value = self._take(name, text)
        if not isinstance(value, list):
            raise UserError(f"{self._name(name)} must be {text}, not {value!r}")
        mask = 0
        for bit in cast("list[object]", value):
            if not isinstance(bit, int) or isinstance(bit, bool) or bit not in allowed:
                raise UserError(f"{self._name(name)} must be {text}, but holds {bit!r}")
            mask |= 1 << bit
        return mask

    def object(self, name: str) -> "Fields":
        return Fields(self._take(name, "a JSON object"), self._name(name))

    def optional_object(self, name: str) -> "Fields | None":
        if name in self:
            return self.object(name)
        self._asked.append(name)
        return None

    def finish(self, where: str) -> None:
        for name in self._left:
            raise UserError(f"{self._name(name)} cannot be encoded: {where} can hold {', '.join(self._asked)}")


def _json_word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
