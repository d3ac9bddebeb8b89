"""No document, message or template has anybody install us by a bare name: whoever registers it would be installed."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
#: Names under which we could be looked for: our distribution, our programs, our packages.
OURS = {
    re.sub(r"[-_.]+", "-", Path(name).name)
    for name in [
        _PROJECT["project"]["name"],
        *_PROJECT["project"]["scripts"],
        *_PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"],
    ]
}
#: Begins a command that fetches packages; what follows it, up to the end of the command.
INSTALLER = re.compile(r"(?<![\w-])(?:pip[3x]?|uvx?|poetry|pdm|conda|mamba)\s+([^\n`;|&]*)")
#: Words after which packages are named. `uvx` needs none.
VERBS = {"install", "add", "run", "inject", "upgrade", "--with", "--from"}


def by_name(text: str) -> list[str]:
    """Return the commands in a text that install something of ours by its name alone."""
    joined = text.replace("\\\n", " ")
    return [found[0].strip() for found in INSTALLER.finditer(joined) if _names_ours(found[0])]


def _names_ours(command: str) -> bool:
    # NAME @ URL has no index asked.
    words = [word.strip("'\"()[]{},.") for word in re.sub(r"\S+ @ \S+", "", command).split()]
    start = 1 if words[0] == "uvx" else min((words.index(verb) for verb in VERBS & set(words)), default=len(words)) + 1
    return any(_is_ours(word) for word in words[start:])


def _is_ours(word: str) -> bool:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[=<>~!@]", word)[0].lower()) in OURS


def texts(path: Path) -> Iterator[str]:
    """Yield what a file says to people: all of it; of Python its literals, in one piece, and its comments."""
    text = path.read_text()
    if path.suffix != ".py":
        yield text
        return
    yield from re.findall(r"#.*", text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def readable() -> Iterator[Path]:
    """Yield the tracked files that are text, without the tests: users see none of them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        path = ROOT / name
        if name and not name.startswith("tests/") and path.is_file() and b"\0" not in path.read_bytes():
            yield path


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("run `pip install monkey-sweep`, then", 1),
        ("pip install 'monkey-sweep[ssh]'", 1),
        ("pip install --upgrade monkey_sweep==0.1.0", 1),
        ("python -m pip install -q \\\n    Monkey.Sweep", 1),
        ("pip install monkey-sweep, anew", 1),
        ("uvx monkey-sweep", 1),
        ("uv tool install monkey; pipx run monkey-agent; conda install x monkey-sweep", 3),
        ("uv pip install --python x 'monkey-sweep[{}]'", 1),
        ("pip install 'monkey-sweep[ssh] @ git+https://example.org/monkey'", 0),
        ("pip install -q -e '.[ssh]' && monkey apply", 0),
        ("pip install -e /home/me/monkey", 0),
        ("`pip install botocore`, and monkey asks it", 0),
    ],
)
def test_what_is_found(text: str, bare: int) -> None:
    assert len(by_name(text)) == bare


def test_nobody_is_told_to_install_us_by_name() -> None:
    looked = list(readable())
    assert {"README.md", "docs/lab.md", "monkey/store/format.py"} <= {str(path.relative_to(ROOT)) for path in looked}
    found = [f"{path.relative_to(ROOT)}: {said}" for path in looked for text in texts(path) for said in by_name(text)]
    assert not found, "\n".join(found)
