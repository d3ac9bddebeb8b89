"""A YAML 1.2 file as plain values that remember their line and column.

The tree is `composer`'s; here, mistakes find their lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path as FilePath
from typing import Any

from monkey.errors import Problem, SpecError
from monkey.spec.project_paths import read_regular_file, resolve_in_project
from monkey.spec.yaml.mistakes import Mistake
from monkey.spec.yaml.parser import MAX_YAML_BYTES, UnsupportedYamlError, YamlNode, compose_tree

#: Characters of a source line shown in an error.
MAX_SHOWN_CHARACTERS = 160

_LINE_BREAK = re.compile("\r\n|[\n\r]")


class YamlDocument:
    """A whole file: its `text`, its values as plain `data`, and a way from a mistake to its line."""

    def __init__(self, text: str, file: str, root: YamlNode) -> None:
        """Keep the text and the tree of a file that was read by `parse_document`."""
        self.text = text
        self.file = file
        self.root = root
        self._lines = _LINE_BREAK.split(text)
        self.data = _to_plain_value(root)

    def error(self, mistakes: Iterable[Mistake]) -> SpecError:
        """Return the mistakes as one error, each with its line."""
        return SpecError([self.place(mistake) for mistake in mistakes])

    def place(self, mistake: Mistake) -> Problem:
        """Give a mistake its line, column and source; of a missing node, its nearest parent's."""
        node, (line, column) = self.root, (self.root.line, self.root.column)
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
        return _make_problem(self.file, self._lines, line, column, mistake.message, mistake.hint)

    def _inside(self, node: YamlNode, offset: int) -> tuple[int, int]:
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


def read_document(path: FilePath, file: str, root: FilePath | None = None) -> YamlDocument:
    """Read a file that errors call `file`, as `read_document_text` does. Raises SpecError."""
    return parse_document(read_document_text(path, file, root), file)


def read_document_text(path: FilePath, file: str, root: FilePath | None = None) -> str:
    """Return the text of a file that errors call `file`; `root`: the project that it must not lead out of.

    Raises SpecError.
    """
    try:
        raw = read_regular_file(path if root is None else resolve_in_project(path, root), MAX_YAML_BYTES + 1)
    except FileNotFoundError as error:
        hint = "check the path, or a link that leads there; `monkey init` writes a first spec"
        raise SpecError([Problem(file, 1, 1, "there is no such file", hint)]) from error
    except OSError as error:
        raise SpecError([Problem(file, 1, 1, f"the file cannot be read: {error.strerror or error}")]) from error
    except ValueError as error:
        hint = "write the file itself there; a link may lead to a file of the project"
        raise SpecError([Problem(file, 1, 1, f"the file is not read: {error}", hint)]) from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = len(raw[raw.rfind(b"\n", 0, error.start) + 1 : error.start].decode("utf-8", "replace")) + 1
        message = f"expected UTF-8, found the byte 0x{raw[error.start]:02x}"
        raise SpecError([Problem(file, line, column, message, "save the file as UTF-8")]) from error


def parse_document(text: str, file: str) -> YamlDocument:
    """Read the text of a file that errors call `file`. Raises SpecError."""
    try:
        return YamlDocument(text, file, compose_tree(text))
    except UnsupportedYamlError as error:
        lines = _LINE_BREAK.split(text)
        raise SpecError([_make_problem(file, lines, error.line, error.column, error.message, error.hint)]) from error


def _to_plain_value(node: YamlNode) -> Any:
    match node.content:
        case dict():
            return {key: _to_plain_value(child) for key, child in node.content.items()}
        case list():
            return [_to_plain_value(child) for child in node.content]
        case _:
            return node.content


def _make_problem(file: str, lines: list[str], line: int, column: int, message: str, hint: str | None) -> Problem:
    """Make a Problem, its source line without tabs (the caret must stand right) and not too long."""
    source = lines[line].replace("\t", " ") if line < len(lines) else ""
    shown = source[:MAX_SHOWN_CHARACTERS] + ("…" if len(source) > MAX_SHOWN_CHARACTERS else "")
    fits = source.strip() and column <= MAX_SHOWN_CHARACTERS
    return Problem(file, line + 1, column + 1, message, hint, shown if fits else None)
