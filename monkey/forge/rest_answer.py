"""What a forge answered: each field is read by its name and its type, and one that is not as it should be is said."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from monkey.errors import ForgeError, ForgeRefused

#: Seconds that one answer may take, and bytes of it that are read: no forge of good will sends more.
_WHOLE, _ANSWER_LIMIT = 60.0, 32 << 20
#: What JSON calls a value of a type.
_JSON_NAMES: dict[type, str] = {str: "a text", int: "a number", dict: "an object", list: "a list", type(None): "null"}
_T = TypeVar("_T")


class RestFields(dict[str, Any]):
    """An object in an answer, which remembers what was asked."""

    def __init__(self, asked: str, fields: Mapping[str, Any]) -> None:
        """Keep the method and the URL of the request, and the fields."""
        super().__init__(fields)
        self._asked = asked

    def read(self, key: str, kind: type[_T]) -> _T:
        """Return a field that has to be there, and be of this type. Raises ForgeError."""
        value = self.get(key)
        if isinstance(value, kind):
            return value
        found = f"found {_name_kind(value)}" if key in self else "found an answer without it"
        raise _misanswered(f"{self._asked}: expected {_JSON_NAMES.get(kind, 'an object')} `{key}`, {found}")

    def find(self, key: str) -> RestFields | None:
        """Return an object that may be missing, or null: as a user who is gone. Raises ForgeError."""
        return None if self.get(key) is None else self.read(key, RestFields)

    def read_text(self, key: str) -> str:
        """Return a text; "" where it is null, or is not there. Raises ForgeError."""
        return "" if self.get(key) is None else self.read(key, str)


class RestAnswer(NamedTuple):
    """What a forge answered."""

    status: int
    headers: Mapping[str, str]
    data: Any
    #: The method and the URL of the request.
    asked: str = ""

    @property
    def fields(self) -> RestFields:
        """The answer, which has to be an object."""
        return check_fields(self.data, self.asked)


def check_fields(data: Any, asked: str) -> RestFields:
    """Return an object of an answer. Raises ForgeError where it is something else."""
    if isinstance(data, RestFields):
        return data
    raise _misanswered(f"{asked}: expected an object, found {_name_kind(data)}")


def check_list(data: Any, asked: str) -> list[RestFields]:
    """Return an answer that is a list of objects. Raises ForgeError where it is something else."""
    if isinstance(data, list):
        return [check_fields(each, asked) for each in data]
    raise _misanswered(f"{asked}: expected a list, found {_name_kind(data)}")


def read_answer(status: int, answer: Any, asked: str) -> RestAnswer:
    """Read an answer to its end. Raises OSError where it is too long, takes too long, or is no JSON."""
    parts, size, until = [], 0, time.monotonic() + _WHOLE
    while part := answer.read1(1 << 16):
        parts.append(part)
        size += len(part)
        if size > _ANSWER_LIMIT or time.monotonic() > until:
            raise OSError(0, "its answer does not end")
    text = b"".join(parts)
    headers = {name.lower(): value for name, value in answer.headers.items()}
    try:
        data = json.loads(text, object_hook=lambda found: RestFields(asked, found)) if text.strip() else None
    except (ValueError, RecursionError):
        if status // 100 == 2:
            raise OSError(0, "expected JSON, found something else") from None
        data = None
    return RestAnswer(status, headers, data, asked)


def _name_kind(value: Any) -> str:
    return next((name for kind, name in _JSON_NAMES.items() if isinstance(value, kind)), "another value")


def _misanswered(message: str) -> ForgeError:
    # An agent gives up at once: it would be the same the next time.
    return ForgeRefused(message, hint="is this the API of the forge's type? See `forge:` in monkey.yaml")
