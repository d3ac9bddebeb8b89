"""Small changes of a spec's text that keep the rest of it, comments included, as it was written."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from monkey.errors import SpecError
from monkey.spec.yaml.document import parse_document
from monkey.spec.yaml.parser import UnsupportedYamlError, YamlNode, compose_tree
from monkey.spec.yaml.scalar import InvalidScalarError, parse_scalar

#: A scalar on one line, as numbers and sizes are written.
_SCALAR = re.compile(r"[^\s,}\]#]+(?: ?[A-Za-z]+)?")
#: Text that needs no quotes, if it reads as text at all.
_PLAIN = re.compile(r"\w[\w./-]*")

#: A way into a spec: keys of mappings.
_Path = tuple[str, ...]


class SpecEdit:
    """One change of a spec's text: what it becomes, and what its values are to be then."""

    def __init__(self, text: str) -> None:
        """Change nothing yet. Raises ValueError for a text that is no spec."""
        try:
            self._root = compose_tree(text)
            self.data: dict[str, Any] = parse_document(text, "").data
        except (UnsupportedYamlError, SpecError) as exc:
            raise ValueError(str(exc)) from exc
        self._text, self._lines = text, text.split("\n")

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

    def _find_line_below(self, key: str) -> int:
        """Return the line before which a new key goes: below this one's value, above comments of the next."""
        below = [line for line, _ in self._root.keys.values() if line > self._root.keys.get(key, (0, 0))[0]]
        at = min(below, default=len(self._lines))
        while at > 1 and (not self._lines[at - 1].strip() or self._lines[at - 1].startswith("#")):
            at -= 1
        return at

    def _offset(self, node: YamlNode) -> int:
        return sum(len(line) + 1 for line in self._lines[: node.line]) + node.column

    def _check(self, changed: str, change: Callable[[dict[str, Any]], Any]) -> str | None:
        """Return the text if it says what it is to say: the spec as before, with this change."""
        wanted = copy.deepcopy(self.data)
        change(wanted)
        try:
            found = parse_document(changed, "").data
        except SpecError:
            return None
        # As JSON: 1 is not 1.0, nor true.
        same = json.dumps(found, sort_keys=True) == json.dumps(wanted, sort_keys=True)
        return changed if same else None


def spell_scalar(value: Any) -> str:
    """Return a value as YAML: text without quotes where it reads as the same text."""
    if isinstance(value, str):
        try:
            plain = _PLAIN.fullmatch(value) is not None and parse_scalar(value, plain=True) == value
        except InvalidScalarError:
            plain = False
        return value if plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


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
