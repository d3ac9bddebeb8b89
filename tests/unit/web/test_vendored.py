"""Files of others are those that VENDORED.md names, byte for byte; no other file of the page asks for anything."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

ASSETS = Path(__file__).parents[3] / "monkey/web/assets"
TABLE = re.findall(r"^\| `([\w.]+)` \|.*\| `([0-9a-f]{64})` \|$", (ASSETS / "VENDORED.md").read_text(), re.MULTILINE)
OURS = sorted({path.name for path in ASSETS.iterdir()} - {name for name, _ in TABLE} - {"VENDORED.md"})
#: Lines of a file of ours, as of Python's.
FILE = 300


@pytest.mark.parametrize(("name", "digest"), TABLE)
def test_files_of_others_are_as_published(name: str, digest: str) -> None:
    assert hashlib.sha256((ASSETS / name).read_bytes()).hexdigest() == digest


def test_all_of_them_are_named_and_small() -> None:
    assert {name for name, _ in TABLE} == {"htm.js", "uPlot.js", "uPlot.css"}
    assert sum((ASSETS / name).stat().st_size for name, _ in TABLE) < 70_000


@pytest.mark.parametrize("name", OURS)
def test_our_files_load_only_ours_and_make_no_html_of_text(name: str) -> None:
    text = (ASSETS / name).read_text()
    assert len(text.splitlines()) <= FILE
    assert not re.findall(r"https?://|\beval\b|new Function|innerHTML|outerHTML|insertAdjacent|document\.write", text)
    for found in re.findall(r'(?:from|src=|href=|import) ?"([^"]+)"', text):
        assert found == "data:," or (ASSETS / Path(found).name).is_file(), found
