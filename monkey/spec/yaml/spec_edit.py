"""Small changes of a spec's text that keep the rest of it, comments included, as it was written."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from monkey.errors import SpecError
from monkey.spec.yaml.document import YamlDocument, parse_document
from monkey.spec.yaml.parser import UnsupportedYamlError, YamlNode, compose_tree
from monkey.spec.yaml.scalar import InvalidScalarError, parse_scalar

#: A scalar on one line, as numbers and sizes are written.
_SCALAR = re.compile(r"[^\s,}\]#]+(?: ?[A-Za-z]+)?")
#: Text that needs no quotes, if it reads as text at all.
_PLAIN = re.compile(r"\w[\w./-]*")

#: Characters of all text in a spec, each alias counted as all that it stands for.
_MAX_CHARACTERS = 1 << 22
#: A key with its colon.
_KEY = re.compile(r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s:'"][^:\n]*)\s*:""")

#: A way into a spec: keys of mappings.
_Path = tuple[str, ...]


class SpecEdit:
    """One change of a spec's text: what it becomes, and what its values are to be then."""

    def __init__(self, text: str, order: Sequence[str] = ()) -> None:
        """Change nothing yet. Raises ValueError for a text that is no spec.

        `order`: how the fields of a spec follow each other, for those that are added.
        """
        try:
            self._root = compose_tree(text)
        except UnsupportedYamlError as exc:
            raise ValueError(str(exc)) from exc
        self.data: dict[str, Any] = YamlDocument(text, "", self._root).data
        if not isinstance(self.data, dict):
            raise ValueError("expected key: value lines")
        if _is_huge(self.data):
            raise ValueError("expected less text than its aliases stand for")
        self._text, self._lines, self._order = text, text.split("\n"), list(order)

    def replace_scalar(self, path: _Path, value: Any) -> str | None:
        """Return the text with another scalar there; None where it cannot be put there."""
        node = _find_node(self._root, path)
        if node is None or isinstance(node.content, dict | list):
            return None
        at = self._offset(node)
        changed = _SCALAR.sub(lambda _: spell_scalar(value), self._text[at:], count=1)
        return self._check(
            self._text[:at] + changed, lambda data: _find_mapping(data, path[:-1]).update({path[-1]: value})
        )

    def insert_keys(self, path: _Path, added: dict[str, Any]) -> str | None:
        """Return the text with these keys first in the mapping there; None where they cannot be put there."""
        node = _find_node(self._root, path)
        if node is None or not isinstance(node.content, dict) or added.keys() & node.content.keys():
            return None
        at, told = self._offset(node), [f"{key}: {spell_scalar(value)}" for key, value in added.items()]
        if self._text[at : at + 1] == "{":
            changed = f"{self._text[: at + 1]}{', '.join(told)}, {self._text[at + 1 :]}"
        else:
            lines = [" " * node.column + line for line in told]
            changed = "\n".join([*self._lines[: node.line], *lines, *self._lines[node.line :]])
        return self._check(changed, lambda data: _find_mapping(data, path).update(added))

    def insert_rows(self, key: str, rows: Sequence[dict[str, Any]]) -> str | None:
        """Return the text with rows put first in a list of the spec; None where they cannot be put there."""
        told = [f"{{{', '.join(f'{name}: {spell_scalar(value)}' for name, value in row.items())}}}" for row in rows]
        node = _find_node(self._root, (key,))
        if node is None:
            at = self._find_line_below("parameters")
            changed = "\n".join([*self._lines[:at], f"{key}: [{', '.join(told)}]", *self._lines[at:]])
        elif not isinstance(node.content, list) or not node.content:
            return None
        elif self._text[at := self._offset(node)] == "[":
            changed = f"{self._text[: at + 1]}{', '.join(told)}, {self._text[at + 1 :]}"
        else:
            lines = [f"{' ' * node.column}- {row}" for row in told]
            changed = "\n".join([*self._lines[: node.line], *lines, *self._lines[node.line :]])
        return self._check(changed, lambda data: data.update({key: [*rows, *data.get(key, ())]}))

    def put_value(self, path: _Path, value: Any, written: str = "") -> str | None:
        """Return the text with this value there, in place of another or as a new key.

        `written`: how a user wrote the value, on one line; it is kept so where that says the same. None where the value
        cannot be put there.
        """
        if _is_huge(value):
            return None
        plain = value if isinstance(value, str) else ""
        for spelling in filter(None, (written.strip(), plain, spell_flow(value))):
            changed = self._check(self._put(path, spelling), lambda data: _put_into(data, path, value))
            if changed is not None:
                return changed
        return None

    def _put(self, path: _Path, spelling: str) -> str:
        """Return the text with a spelling there. What `_check` refuses may come of it, too."""
        node, known = self._root, 0
        while known < len(path) and isinstance(node.content, dict) and path[known] in node.content:
            parent, node, known = node, node.content[path[known]], known + 1
        missing = list(path[known:])
        if not missing or not isinstance(node.content, dict):
            for name in reversed(missing):
                spelling = f"{{{spell_scalar(name)}: {spelling}}}"
            return self._replace(parent, path[known - 1], node, spelling) if known else self._text
        return self._insert(node, missing, spelling)

    def _insert(self, parent: YamlNode, names: list[str], spelling: str) -> str:
        """Put new keys, each inside the one before, at the end of a mapping: or where a spec has them, at the top."""
        key, *inner = names
        for name in reversed(inner):
            # Parameters stand one a line: others follow.
            block = key == "parameters" and len(inner) == 1
            spelling = f"\n  {spell_scalar(name)}: {spelling}" if block else f"{{{spell_scalar(name)}: {spelling}}}"
        line = f"{spell_scalar(key)}:{'' if spelling.startswith(chr(10)) else ' '}{spelling}"
        if parent.is_flow:
            at = self._place(parent.end) - 1
            comma = ", " if parent.content else ""
            return f"{self._text[:at].rstrip(' ')}{comma}{line}{self._text[at:]}"
        if parent is self._root:
            at_line = self._find_line_below(self._find_predecessor(key))
        else:
            at_line = parent.end[0] + (parent.end[1] > 0)
        before = self._lines[:at_line]
        return "\n".join([*before, " " * parent.column + line, *self._lines[at_line:]])

    def _find_predecessor(self, key: str) -> str:
        """Return the last key of the spec that usually stands before this one; "" where none does."""
        before = self._order[: self._order.index(key)] if key in self._order else self._order
        there = [name for name in self._root.content if name in before]
        return max(there, key=lambda name: self._root.keys[name], default="")

    def _replace(self, parent: YamlNode, key: str, node: YamlNode, spelling: str) -> str:
        line, column = parent.keys[key]
        colon = self._find_colon(self._place((line, column)))
        start, end = self._place((node.line, node.column)), self._place(node.end)
        if node.content is None and (node.line, node.column) == (line, column):
            start = end = colon
        if end > start and node.end[1] == 0:  # a block of text ends where the next line begins, or below comments
            while end > start and self._text[end - 1] in "\r\n":
                end -= 1
        between = self._text[colon:start]
        if "\n" not in between:
            return f"{self._text[:start]}{'' if between else ' '}{spelling}{self._text[end:]}"
        comment = between.split("\n")[0].strip()
        return f"{self._text[:colon]} {spelling}{'  ' if comment else ''}{comment}{self._text[end:]}"

    def remove_key(self, path: _Path) -> str | None:
        """Return the text without a key, and without a mapping that would be empty; None where it cannot be removed."""
        parent = _find_node(self._root, path[:-1])
        node = _find_node(self._root, path)
        if node is None or parent is None:
            return None
        if len(path) > 1 and len(parent.content) == 1:
            return self.remove_key(path[:-1])
        place = parent.keys[path[-1]]
        if parent.is_flow:
            before, after = self._text[: self._place(place)], self._text[self._place(node.end) :]
            tail = re.sub(r"^\s*,[ \t]*", "", after)
            changed = before + tail if tail != after else re.sub(r",\s*$", "", before) + after
        else:
            last = node.end[0] - (node.end[1] == 0 and node.end[0] > place[0])
            changed = "\n".join([*self._lines[: place[0]], *self._lines[last + 1 :]])
        return self._check(changed, lambda data: _find_mapping(data, path[:-1]).pop(path[-1]))

    def rename_key(self, path: _Path, name: str) -> str | None:
        """Return the text with another name for a key; None where it has none, or another key has the name."""
        parent = _find_node(self._root, path[:-1])
        if parent is None or _find_node(self._root, path) is None or name in parent.content:
            return None
        at = self._place(parent.keys[path[-1]])
        changed = self._text[:at] + spell_scalar(name) + self._text[self._find_colon(at) - 1 :]

        def change(data: dict[str, Any]) -> None:
            mapping = _find_mapping(data, path[:-1])
            mapping[name] = mapping.pop(path[-1])

        return self._check(changed, change)

    def _find_colon(self, at: int) -> int:
        """Return the place behind the colon of the key that begins at `at`."""
        found = _KEY.match(self._text, at)
        return found.end() if found else at

    def _find_line_below(self, key: str) -> int:
        """Return the line before which a new key goes: below this one's value, above comments of the next."""
        below = [line for line, _ in self._root.keys.values() if line > self._root.keys.get(key, (0, 0))[0]]
        at = min(below, default=len(self._lines))
        while at > 1 and (not self._lines[at - 1].strip() or self._lines[at - 1].startswith("#")):
            at -= 1
        return at

    def _offset(self, node: YamlNode) -> int:
        return self._place((node.line, node.column))

    def _place(self, place: tuple[int, int]) -> int:
        """Return the offset of a line and a column, both from 0."""
        line, column = place
        return sum(len(each) + 1 for each in self._lines[:line]) + column

    def _check(self, changed: str, change: Callable[[dict[str, Any]], Any]) -> str | None:
        """Return the text if it says what it is to say: the spec as before, with this change."""
        wanted = copy.deepcopy(self.data)
        change(wanted)
        try:
            found = parse_document(changed, "").data
        except SpecError:
            return None
        return changed if _is_same(found, wanted) else None


def spell_scalar(value: Any) -> str:
    """Return a value as YAML: text without quotes where it reads as the same text."""
    if isinstance(value, str):
        try:
            plain = _PLAIN.fullmatch(value) is not None and parse_scalar(value, plain=True) == value
        except InvalidScalarError:
            plain = False
        return value if plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def spell_flow(value: Any) -> str:
    """Return any value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{spell_scalar(name)}: {spell_flow(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(spell_flow, value)) + "]"
    return spell_scalar(value)


def _is_huge(data: Any) -> bool:
    """Would a value take too many characters if it were written out?"""
    count, left = 0, [data]
    while left and count <= _MAX_CHARACTERS:
        value = left.pop()
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
        else:
            count += len(value) if isinstance(value, str) else 1
    return count > _MAX_CHARACTERS


def _is_same(one: Any, other: Any) -> bool:
    """Are two values the same, also in type? 1 is not 1.0, nor true."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return bool(one.keys() == other.keys()) and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)


def _put_into(data: dict[str, Any], path: _Path, value: Any) -> None:
    for key in path[:-1]:
        inner = data.get(key)
        data[key] = inner if isinstance(inner, dict) else {}
        data = data[key]
    data[path[-1]] = value


def _find_node(root: YamlNode, path: _Path) -> YamlNode | None:
    node: YamlNode | None = root
    for key in path:
        content = node.content if node else None
        node = content.get(key) if isinstance(content, dict) else None
    return node


def _find_mapping(data: dict[str, Any], path: _Path) -> dict[str, Any]:
    for key in path:
        data = data[key]
    return data
