"""Docs and docstrings are plain English: what falls short is listed, and the list only shrinks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.prose import DEBT, count_faults, find_faults


def test_prose_falls_short_no_more_than_is_listed() -> None:
    counts, debt = count_faults(), json.loads(DEBT.read_text())
    worse = {name: f"{debt.get(name, 0)} → {count}" for name, count in counts.items() if count > debt.get(name, 0)}
    assert not worse, "`python -m tests.prose FILE` shows the faults"
    better = {name: f"{count} → {counts.get(name, 0)}" for name, count in debt.items() if counts.get(name, 0) < count}
    assert not better, "well done: `python -m tests.prose --write` notes it"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("The agent reports the error. Fix it, and apply again.\n", 0),
        ("Whoever is told of it may mend it.\n", 3),
        (" ".join(["word"] * 26) + ".\n", 1),
        ("- " + " ".join(["word"] * 20) + "\n- " + " ".join(["word"] * 20) + "\n", 0),
        ("*" + "word " * 20 + "end.* " + "word " * 20 + "end.\n", 0),
        ("| " + " ".join(["word"] * 26) + " | few |\n", 1),
        ("`nobody goes on` is code, as is\n\n```text\nnobody\n```\n", 0),
    ],
)
def test_faults_are_banned_words_and_long_sentences(tmp_path: Path, text: str, faults: int) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert len(find_faults(page)) == faults


def test_of_source_docstrings_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.py"
    page.write_text('"""Nobody\n\nis here."""\n\n\ndef f():\n    """Go on."""\n    x = "told"\n')
    assert [fault.split(":")[0] for fault in find_faults(page)] == ["1", "7"]
