"""Checked access to the members of a JSON object."""

from typing import TypeVar, cast

from spurtle.support.errors import UserError
from spurtle.support.numerals import number

__all__ = ["JSONFields"]

T = TypeVar("T")


class JSONFields:
    """JSON object whose members are removed as they are read. `finish` rejects the members that have not been read.

    Each method raises UserError with the name of the member, its value and the allowed values.

    Parameters
    ----------
    value : object
        Parsed JSON value. Members that are null are treated as absent.
    path : str
        Path of the object in error messages; empty for the record.
    """

    def __init__(self, value: object, path: str = ""):
        if not isinstance(value, dict):
            raise UserError(f"{path or 'a record'} must be a JSON object, not {value!r}")
        members = cast("dict[str, object]", value)
        self._remaining = {name: member for name, member in members.items() if member is not None}
        self._path = path
        self._names: list[str] = []

    def __contains__(self, name: str) -> bool:
        return name in self._remaining

    def _path_of(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _take(self, name: str, allowed: str) -> object:
        self._names.append(name)
        if name not in self._remaining:
            raise UserError(f"{self._path_of(name)} is missing: it must be {allowed}")
        return self._remaining.pop(name)

    def ignore(self, *names: str) -> None:
        """Allow members and ignore their values."""
        for name in names:
            self._remaining.pop(name, None)

    def integer(self, name: str, maximum: int) -> int:
        """Return the member, which must be a number from 0 to `maximum` or the text of one."""
        allowed = f"a number from 0 to {maximum if maximum < 1 << 32 else hex(maximum)}" if maximum else "0"
        value = self._take(name, allowed)
        content = number(value) if isinstance(value, str) else value
        if isinstance(content, int) and not isinstance(content, bool) and 0 <= content <= maximum:
            return content
        raise UserError(f"{self._path_of(name)} must be {allowed}, not {value!r}")

    def optional(self, name: str, maximum: int) -> int | None:
        """Return the member like `integer`, or None if it is absent."""
        if name in self:
            return self.integer(name, maximum)
        self._names.append(name)
        return None

    def choice(self, name: str, allowed: tuple[T, ...], default: T | None = None) -> T:
        """Return the member, which must be one of `allowed`, or `default` if the member is absent."""
        if default is not None and name not in self:
            self._names.append(name)
            return default
        text = " or ".join(_as_json(choice) for choice in allowed)
        value = self._take(name, text)
        for choice in allowed:
            if value == choice and type(value) is type(choice):
                return choice
        raise UserError(f"{self._path_of(name)} must be {text}, not {_as_json(value)}")

    def flag(self, name: str) -> int:
        """Return the member, which must be a Boolean value, as 0 or 1. An absent member is 0."""
        return int(self.choice(name, (False, True), default=False))

    def numbers(self, name: str, allowed: frozenset[int]) -> int:
        """Return the member, which must be a list of bit numbers, as a mask."""
        text = f"a list of {', '.join(str(number) for number in sorted(allowed))}"
        value = self._take(name, text)
        if not isinstance(value, list):
            raise UserError(f"{self._path_of(name)} must be {text}, not {value!r}")
        mask = 0
        for bit in cast("list[object]", value):
            if not isinstance(bit, int) or isinstance(bit, bool) or bit not in allowed:
                raise UserError(f"{self._path_of(name)} must be {text}, but holds {bit!r}")
            mask |= 1 << bit
        return mask

    def object(self, name: str) -> "JSONFields":
        """Return the member, which must be a JSON object."""
        return JSONFields(self._take(name, "a JSON object"), self._path_of(name))

    def optional_object(self, name: str) -> "JSONFields | None":
        """Return the member like `object`, or None if it is absent."""
        if name in self:
            return self.object(name)
        self._names.append(name)
        return None

    def finish(self, where: str) -> None:
        """Raise UserError if a member has not been read. `where` names the object in the message."""
        for name in self._remaining:
            raise UserError(f"{self._path_of(name)} cannot be encoded: {where} can hold {', '.join(self._names)}")


def _as_json(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
