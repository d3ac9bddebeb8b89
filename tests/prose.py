"""Plain English, counted: banned words and long sentences of the docs and of docstrings.

`python -m tests.prose [FILE…]` prints each fault with its place.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("monkey", "agent/monkey_agent", "stacks/monkey_stacks")
#: Words of a sentence at most.
LONGEST = 25
#: Words that hide who does what. The field has better ones: report, fix, continue, lost, everyone, again, started.
BANNED = re.compile(
    r"\b(told|mend(s|ed|ing)?|astray|whoever|nobody|somebody|anew|begun|(goes|go|went|going) on)\b"
    r"|\b(warden|courier|stray|seat)s?\b",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def list_files() -> list[Path]:
    """Return the files whose prose is counted."""
    pages = [*ROOT.glob("*.md"), *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("*/README.md"))]
    return pages + [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def find_faults(path: Path) -> list[str]:
    """Return the faults of a file, each with its line."""
    text = path.read_text()
    parts = _docstrings(text) if path.suffix == ".py" else [(1, _FENCE.sub(_blank, text))]
    return [f"{line}: {fault}" for start, part in parts for line, fault in _find_in(part, start)]


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


def _docstrings(source: str) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                found.append((node.body[0].lineno, text))
    return found


def _find_in(text: str, start: int) -> Iterator[tuple[int, str]]:
    for at, line in enumerate(text.splitlines()):
        for match in BANNED.finditer(re.sub(r"`[^`]*`", "x", line)):
            yield start + at, f"banned word {match[0]!r}"
    for at, paragraph in _paragraphs(text):
        plain = _LINK.sub(r"\1", re.sub(r"`[^`]*`", "x", paragraph))
        for sentence in re.split(r"(?<=[.!?])[*_)\"']*\s+", plain):
            words = len(re.findall(r"[\w'’]+", sentence))
            if words > LONGEST:
                yield start + at, f"{words} words: {sentence[:60]}…"


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield paragraphs, items of lists and cells of tables, each with its first line's number from 0."""
    lines: list[str] = []
    first = 0
    for at, line in enumerate([*text.splitlines(), ""]):
        bare = line.strip()
        if not bare or re.match(r"([-*#>|]|\d+\.|!!!)", bare):
            if lines:
                yield first, " ".join(lines)
            lines, first = [], at
        if bare.startswith("|"):
            yield from ((at, cell) for cell in bare.split("|"))
        elif bare:
            lines.append(bare.lstrip("-*#> "))


def main(names: list[str]) -> int:
    """Print the faults of these files, or of all; return 1 if there are any. A file that is not counted has none."""
    chosen = list_files()
    if names:
        chosen = [path for path in chosen if path in {ROOT / name for name in names}]
    faults = [f"{path.relative_to(ROOT)}:{fault}" for path in chosen for fault in find_faults(path)]
    print(*faults, sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
