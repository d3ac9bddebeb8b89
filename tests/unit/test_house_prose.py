"""Docs and docstrings are plain English."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prose import find_faults, list_files


def test_prose_has_no_fault() -> None:
    faults = [f"{path}:{fault}" for path in list_files() for fault in find_faults(path)]
    assert not faults, "\n".join(faults)


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
