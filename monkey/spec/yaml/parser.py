"""The parser's events as a tree that knows where each value stands, less all that a spec never needs.

ruamel.yaml reads the events. Refused are tags, merge keys, aliases inside themselves, duplicate keys, absurd depth or
size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from monkey.spec.yaml.scalar import InvalidScalarError, parse_scalar

#: Bytes; people write specs, and pure Python reads about half a MiB a second.
MAX_YAML_BYTES = 1 << 20
#: Lists and mappings inside each other.
MAX_YAML_DEPTH = 64
_TOO_DEEP = f"expected at most {MAX_YAML_DEPTH} levels of nesting, found more"
#: Nodes, each alias counted as all that it stands for ("a billion laughs").
_MAX_YAML_NODES = 500_000
#: Brackets are counted before parsing: the parser takes half a second for a million of them.
_MAX_OPEN_BRACKETS = 256
_BRACKETS = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[\[\]{}]")
#: YAML 1.2 ends no line at these; the parser, as YAML 1.1, makes a blank of them.
_LOST_CHARACTERS = "\x85\u2028\u2029"


class YamlNode:
    """A value of the file: a scalar, a list of nodes or a mapping of nodes, and where it begins (from 0)."""

    __slots__ = ("column", "content", "end", "is_flow", "keys", "line", "size", "written")

    def __init__(self, content: Any, line: int, column: int) -> None:
        """Make a scalar; a list or mapping is filled by its composer, which counts its nodes into `size`."""
        self.content = content
        self.line = line
        self.column = column
        self.size = 1
        #: The text of a scalar without quotes; "" for all others.
        self.written = ""
        #: Line and column behind its last character; of a block, behind its last scalar.
        self.end = (line, column)
        #: Is it a list or mapping in brackets?
        self.is_flow = False
        #: Where each key of a mapping stands.
        self.keys: dict[str, tuple[int, int]] = {}


class UnsupportedYamlError(Exception):
    """Not a file that we read; `line` and `column` count from 0."""

    def __init__(self, message: str, hint: str | None, line: int, column: int) -> None:
        super().__init__(message)
        self.message, self.hint, self.line, self.column = message, hint, line, column


def compose_tree(text: str) -> YamlNode:
    """Read a YAML text. Raises UnsupportedYamlError."""
    if len(text) > MAX_YAML_BYTES or len(text.encode("utf-8", "replace")) > MAX_YAML_BYTES:
        raise UnsupportedYamlError(
            f"the file is larger than {MAX_YAML_BYTES >> 20} MiB", "write ranges, not long lists of values", 0, 0
        )
    if (bomb := _find_deep_bracket(text)) is None:
        return _Composer(text).document()
    try:
        _Composer(text[: bomb + 1]).document()  # says at which level it is too deep, blocks counted too
    except UnsupportedYamlError as error:
        if error.message == _TOO_DEEP:
            raise
    raise _make_depth_error(text.count("\n", 0, bomb), bomb - text.rfind("\n", 0, bomb) - 1)


def _find_deep_bracket(text: str) -> int | None:
    """Return the place of the first bracket inside too many others."""
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > _MAX_OPEN_BRACKETS:
            return match.start()
    return None


def _make_depth_error(line: int, column: int) -> UnsupportedYamlError:
    return UnsupportedYamlError(_TOO_DEEP, "close a bracket", line, column)


class _Composer:
    """Turns the parser's events into nodes."""

    def __init__(self, text: str) -> None:
        self.events = _parse_events(text)
        self.anchors: dict[str, YamlNode] = {}
        #: Anchors whose node is not complete yet: an alias to one of them would contain itself.
        self.open: set[str] = set()

    def document(self) -> YamlNode:
        root: YamlNode | None = None
        for event in self.events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                if root is not None:
                    raise _make_event_error(
                        event, "expected one document, found a second", "one file holds one document"
                    )
                if event.version not in (None, (1, 2)) or event.tags:
                    raise _make_event_error(event, "expected YAML 1.2, found another directive", "remove the line")
            elif not kind.startswith(("Stream", "Document")):
                root = self.node(event, 0)
        if root is None or root.content is None:
            raise UnsupportedYamlError("the file is empty", "write key: value lines, or remove the file", 0, 0)
        return root

    def node(self, event: Any, depth: int) -> YamlNode:
        kind = type(event).__name__
        if depth > MAX_YAML_DEPTH:
            raise _make_depth_error(event.start_mark.line, event.start_mark.column)
        if kind == "AliasEvent":
            return self.alias(event)
        if event.tag is not None:
            raise _make_event_error(event, f"tags such as {event.tag!r} are not read", "remove the tag")
        node = YamlNode(None, event.start_mark.line, event.start_mark.column)
        if event.anchor:
            self.open.add(event.anchor)
        if kind == "ScalarEvent":
            node.content = _parse_scalar_event(event)
            node.written = event.value if event.style is None else ""
            node.end = (event.end_mark.line, event.end_mark.column)
        elif kind == "SequenceStartEvent":
            self.sequence(node, depth)
        else:
            self.mapping(node, depth)
        if event.anchor:
            self.open.discard(event.anchor)
            self.anchors[event.anchor] = node
        if node.size > _MAX_YAML_NODES:
            raise _make_event_error(
                event, f"expected at most {_MAX_YAML_NODES:,} values, found more", "write ranges, not lists"
            )
        return node

    def alias(self, event: Any) -> YamlNode:
        if event.anchor in self.open:
            raise _make_event_error(
                event, f"*{event.anchor} contains itself", "an alias cannot stand inside its own anchor"
            )
        if event.anchor not in self.anchors:
            raise _make_event_error(
                event, f"*{event.anchor} has no anchor", f"put &{event.anchor} before the value it repeats"
            )
        return self.anchors[event.anchor]

    def sequence(self, node: YamlNode, depth: int) -> None:
        node.content = []
        for event in self.events:
            if type(event).__name__ == "SequenceEndEvent":
                _close_flow(node, event)
                return
            child = self.node(event, depth + 1)
            node.size += child.size
            node.end = child.end
            node.content.append(child)

    def mapping(self, node: YamlNode, depth: int) -> None:
        node.content = {}
        for event in self.events:
            if type(event).__name__ == "MappingEndEvent":
                _close_flow(node, event)
                return
            key = self.key(event, node, depth)
            value = next(self.events)
            child = self.node(value, depth + 1)
            node.keys[key] = (event.start_mark.line, event.start_mark.column)
            if type(value).__name__ == "ScalarEvent" and not value.value and value.style is None:
                child.line, child.column = node.keys[key]  # nothing stands nowhere
                child.end = (event.end_mark.line, event.end_mark.column)
            node.size += child.size
            node.end = child.end
            node.content[key] = child

    def key(self, event: Any, parent: YamlNode, depth: int) -> str:
        key = self.node(event, depth + 1).content
        if not isinstance(key, str):
            raise _make_event_error(
                event, f"expected text as key, found {_describe_key(event, key)}", "put the key in quotes"
            )
        if key == "<<":
            raise _make_event_error(event, "merge keys (<<) are not part of YAML 1.2", "write the keys out")
        if key in parent.keys:
            first = parent.keys[key][0] + 1
            raise _make_event_error(event, f"the key {key!r} stands twice; first in line {first}", "remove one of them")
        return key


def _close_flow(node: YamlNode, event: Any) -> None:
    """Note where the closing bracket of a list or mapping stands, if it has one."""
    if event.end_mark.index > event.start_mark.index:
        node.is_flow, node.end = True, (event.end_mark.line, event.end_mark.column)


def _parse_events(text: str) -> Iterator[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError

    hide, show = _map_lost_characters(text)
    try:
        for event in YAML(typ="safe", pure=True).parse(text.translate(hide)):
            if show and type(event).__name__ == "ScalarEvent":
                event.value = event.value.translate(show)
            yield event
    except UnsupportedYamlError:
        raise
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "not valid YAML"
        line, column = (mark.line, mark.column) if mark else (0, 0)
        raise UnsupportedYamlError(f"not valid YAML: {what}", _yaml_hint(what), line, column) from error
    except Exception as error:  # the parser lets ValueError, OverflowError, AssertionError and more through on garbage
        at = getattr(error, "position", 0)
        line = text.count("\n", 0, at)
        what = getattr(error, "reason", None) or type(error).__name__
        raise UnsupportedYamlError(f"not valid YAML: {what}", None, line, at - text.rfind("\n", 0, at) - 1) from error


def _map_lost_characters(text: str) -> tuple[dict[int, int], dict[int, int]]:
    """Return what turns the characters that the parser would lose into others that the text lacks, and back."""
    lost = [ord(char) for char in _LOST_CHARACTERS if char in text]
    free = (code for code in range(0xE000, 0xF900) if chr(code) not in text) if lost else iter(())
    hide = dict(zip(lost, free, strict=False))
    return hide, {there: here for here, there in hide.items()}


def _yaml_hint(what: str) -> str | None:
    if "\\t" in what or "tab" in what:
        return "use spaces instead, or put the text in quotes"
    if "mapping values are not allowed" in what:
        return "put text that contains ': ' in quotes"
    if "cannot start any token" in what or "alias" in what or "anchor" in what:
        return "put text that begins with a special character in quotes"
    return None


def _parse_scalar_event(event: Any) -> Any:
    try:
        return parse_scalar(event.value, plain=event.style is None and event.implicit[0])
    except InvalidScalarError as error:
        raise _make_event_error(event, error.message, error.hint) from error


def _make_event_error(event: Any, message: str, hint: str) -> UnsupportedYamlError:
    return UnsupportedYamlError(message, hint, event.start_mark.line, event.start_mark.column)


def _describe_key(event: Any, key: Any) -> str:
    return event.value or "nothing" if type(event).__name__ == "ScalarEvent" else f"a {type(key).__name__}"
