"""A YAML 1.2 file as plain values that remember their line and column.

ruamel.yaml reads the events; the tree is our own, because it must refuse what a spec never needs (tags, merge keys,
aliases inside themselves, duplicate keys, absurd depth or size) and must know where every node stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import Any

from monkey.errors import Problem, SpecError
from monkey.spec.mistake import Mistake
from monkey.spec.scalar import BadScalar, scalar

#: Bytes; people write specs, and pure Python reads about half a MiB a second.
MAX_BYTES = 1 << 20
#: Lists and mappings inside each other.
MAX_DEPTH = 64
#: Nodes, each alias counted as all that it stands for ("a billion laughs").
MAX_NODES = 500_000
#: Brackets are counted before parsing: the parser takes half a second for a million of them.
MAX_BRACKETS = 256
#: Characters of a source line shown in an error.
MAX_LINE = 160

_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BRACKETS = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[\[\]{}]")


class Node:
    """A value of the file: a scalar, a list of nodes or a mapping of nodes, and where it begins (from 0)."""

    __slots__ = ("column", "content", "keys", "line", "size")

    def __init__(self, content: Any, line: int, column: int) -> None:
        """Make a scalar; a list or mapping is filled by its composer, which counts its nodes into `size`."""
        self.content = content
        self.line = line
        self.column = column
        self.size = 1
        #: Where each key of a mapping stands.
        self.keys: dict[str, tuple[int, int]] = {}


class Document:
    """A whole file: its `text`, its values as plain `data`, and a way from a mistake to its line."""

    def __init__(self, text: str, file: str, root: Node) -> None:
        """Keep the text and the tree of a file that was read by `parse`."""
        self.text = text
        self.file = file
        self._root = root
        self._lines = _LINE_BREAK.split(text)
        self.data = _plain(root)

    def error(self, mistakes: Iterable[Mistake]) -> SpecError:
        """Return the mistakes as one error, each with its line."""
        return SpecError([self.place(mistake) for mistake in mistakes])

    def place(self, mistake: Mistake) -> Problem:
        """Give a mistake its line, column and source; of a missing node, its nearest parent's."""
        node, (line, column) = self._root, (self._root.line, self._root.column)
        for at, step in enumerate(mistake.path):
            children = node.content
            if isinstance(step, str) and isinstance(children, dict) and step in children:
                key, node = node.keys[step], children[step]
                on_key = mistake.on_key and at == len(mistake.path) - 1
                line, column = key if on_key else (node.line, node.column)
            elif isinstance(step, int) and isinstance(children, list) and 0 <= step < len(children):
                node = children[step]
                line, column = node.line, node.column
            else:
                break
        if mistake.offset is not None and isinstance(node.content, str):
            line, column = self._inside(node, mistake.offset)
        return _problem(self.file, self._lines, line, column, mistake.message, mistake.hint)

    def _inside(self, node: Node, offset: int) -> tuple[int, int]:
        """Return where a character of a text stands; the text's beginning where the file writes it otherwise."""
        line = self._lines[node.line] if node.line < len(self._lines) else ""
        for opening in (0, 1):  # plain, or after a quote
            if line.startswith(node.content, node.column + opening):
                return node.line, node.column + opening + offset
        above = node.content.count("\n", 0, offset)
        written, own = self._lines[node.line + 1 + above : node.line + 2 + above], node.content.split("\n")[above]
        if written and own and written[0].endswith(own):  # a block, its indent taken off
            into = offset - (node.content.rfind("\n", 0, offset) + 1)
            return node.line + 1 + above, len(written[0]) - len(own) + into
        return node.line, node.column


def read(path: FilePath, file: str) -> Document:
    """Read a file that errors call `file`. Raises SpecError."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        hint = "check the path, or begin with: monkey init"
        raise SpecError([Problem(file, 1, 1, "there is no such file", hint)]) from error
    except OSError as error:
        raise SpecError([Problem(file, 1, 1, f"the file cannot be read: {error.strerror or error}")]) from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = len(raw[raw.rfind(b"\n", 0, error.start) + 1 : error.start].decode("utf-8", "replace")) + 1
        message = f"expected UTF-8, found the byte 0x{raw[error.start]:02x}"
        raise SpecError([Problem(file, line, column, message, "save the file as UTF-8")]) from error
    return parse(text, file)


def parse(text: str, file: str) -> Document:
    """Read the text of a file that errors call `file`. Raises SpecError."""
    lines = _LINE_BREAK.split(text)
    try:
        _refuse_bombs(text)
        return Document(text, file, _Composer(text).document())
    except _Refused as error:
        raise SpecError([_problem(file, lines, error.line, error.column, error.message, error.hint)]) from error


class _Refused(Exception):
    """Not a file that we read; `line` and `column` count from 0."""

    def __init__(self, message: str, hint: str | None, line: int, column: int) -> None:
        super().__init__(message)
        self.message, self.hint, self.line, self.column = message, hint, line, column


def _refuse_bombs(text: str) -> None:
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise _Refused(f"the file is larger than {MAX_BYTES >> 20} MiB", "write ranges, not long lists of values", 0, 0)
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > MAX_BRACKETS:
            raise _too_deep(text.count("\n", 0, match.start()), match.start() - text.rfind("\n", 0, match.start()) - 1)


def _too_deep(line: int, column: int) -> _Refused:
    return _Refused(f"expected at most {MAX_DEPTH} levels of nesting, found more", "close a bracket", line, column)


class _Composer:
    """Turns the parser's events into nodes."""

    def __init__(self, text: str) -> None:
        self.events = _events(text)
        self.anchors: dict[str, Node] = {}
        #: Anchors whose node is not complete yet: an alias to one of them would contain itself.
        self.open: set[str] = set()

    def document(self) -> Node:
        root: Node | None = None
        for event in self.events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                if root is not None:
                    raise _refused(event, "expected one document, found a second", "one file holds one document")
                if event.version not in (None, (1, 2)) or event.tags:
                    raise _refused(event, "expected YAML 1.2, found another directive", "remove the line")
            elif not kind.startswith(("Stream", "Document")):
                root = self.node(event, 0)
        if root is None or root.content is None:
            raise _Refused("the file is empty", "begin with: monkey init", 0, 0)
        return root

    def node(self, event: Any, depth: int) -> Node:
        kind = type(event).__name__
        if depth > MAX_DEPTH:
            raise _too_deep(event.start_mark.line, event.start_mark.column)
        if kind == "AliasEvent":
            return self.alias(event)
        if event.tag is not None:
            raise _refused(event, f"tags such as {event.tag!r} are not read", "remove the tag")
        node = Node(None, event.start_mark.line, event.start_mark.column)
        if event.anchor:
            self.open.add(event.anchor)
        if kind == "ScalarEvent":
            node.content = _scalar(event)
        elif kind == "SequenceStartEvent":
            self.sequence(node, depth)
        else:
            self.mapping(node, depth)
        if event.anchor:
            self.open.discard(event.anchor)
            self.anchors[event.anchor] = node
        if node.size > MAX_NODES:
            raise _refused(event, f"expected at most {MAX_NODES:,} values, found more", "write ranges, not lists")
        return node

    def alias(self, event: Any) -> Node:
        if event.anchor in self.open:
            raise _refused(event, f"*{event.anchor} contains itself", "an alias cannot stand inside its own anchor")
        if event.anchor not in self.anchors:
            raise _refused(event, f"*{event.anchor} has no anchor", f"put &{event.anchor} before the value it repeats")
        return self.anchors[event.anchor]

    def sequence(self, node: Node, depth: int) -> None:
        node.content = []
        for event in self.events:
            if type(event).__name__ == "SequenceEndEvent":
                return
            child = self.node(event, depth + 1)
            node.size += child.size
            node.content.append(child)

    def mapping(self, node: Node, depth: int) -> None:
        node.content = {}
        for event in self.events:
            if type(event).__name__ == "MappingEndEvent":
                return
            key = self.key(event, node, depth)
            value = next(self.events)
            child = self.node(value, depth + 1)
            node.keys[key] = (event.start_mark.line, event.start_mark.column)
            if type(value).__name__ == "ScalarEvent" and not value.value and value.style is None:
                child.line, child.column = node.keys[key]  # nothing stands nowhere
            node.size += child.size
            node.content[key] = child

    def key(self, event: Any, parent: Node, depth: int) -> str:
        key = self.node(event, depth + 1).content
        if not isinstance(key, str):
            raise _refused(event, f"expected text as key, found {_found(event, key)}", "put the key in quotes")
        if key == "<<":
            raise _refused(event, "merge keys (<<) are not part of YAML 1.2", "write the keys out")
        if key in parent.keys:
            first = parent.keys[key][0] + 1
            raise _refused(event, f"the key {key!r} stands twice; first in line {first}", "remove one of them")
        return key


def _events(text: str) -> Iterator[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError

    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except _Refused:
        raise
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "not valid YAML"
        line, column = (mark.line, mark.column) if mark else (0, 0)
        raise _Refused(f"not valid YAML: {what}", _yaml_hint(what), line, column) from error
    except Exception as error:  # the parser lets ValueError, OverflowError, AssertionError and more through on garbage
        at = getattr(error, "position", 0)
        line = text.count("\n", 0, at)
        what = getattr(error, "reason", None) or type(error).__name__
        raise _Refused(f"not valid YAML: {what}", None, line, at - text.rfind("\n", 0, at) - 1) from error


def _yaml_hint(what: str) -> str | None:
    if "\\t" in what or "tab" in what:
        return "use spaces instead, or put the text in quotes"
    if "mapping values are not allowed" in what:
        return "put text that contains ': ' in quotes"
    if "cannot start any token" in what or "alias" in what or "anchor" in what:
        return "put text that begins with a special character in quotes"
    return None


def _scalar(event: Any) -> Any:
    try:
        return scalar(event.value, plain=event.style is None and event.implicit[0])
    except BadScalar as error:
        raise _refused(event, error.message, error.hint) from error


def _refused(event: Any, message: str, hint: str) -> _Refused:
    return _Refused(message, hint, event.start_mark.line, event.start_mark.column)


def _found(event: Any, key: Any) -> str:
    return event.value or "nothing" if type(event).__name__ == "ScalarEvent" else f"a {type(key).__name__}"


def _plain(node: Node) -> Any:
    match node.content:
        case dict():
            return {key: _plain(child) for key, child in node.content.items()}
        case list():
            return [_plain(child) for child in node.content]
        case _:
            return node.content


def _problem(file: str, lines: list[str], line: int, column: int, message: str, hint: str | None) -> Problem:
    """Make a Problem, its source line without tabs (the caret must stand right) and not too long."""
    source = lines[line].replace("\t", " ") if line < len(lines) else ""
    shown = source[:MAX_LINE] + ("…" if len(source) > MAX_LINE else "")
    fits = source.strip() and column <= MAX_LINE
    return Problem(file, line + 1, column + 1, message, hint, shown if fits else None)
