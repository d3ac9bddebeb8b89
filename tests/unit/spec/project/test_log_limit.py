"""`log_limit:` in monkey.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.project.project import load_project


@pytest.mark.parametrize(
    ("text", "limit"),
    [("", 0), ("log_limit: 100 MiB", 104857600), ("log_limit: 2GB", 2000000000), ("log_limit: 1048576", 1048576)],
)
def test_a_limit_is_a_size(text: str, limit: int, tmp_path: Path) -> None:
    (tmp_path / "monkey.yaml").write_text(f"project: shop\n{text}\n")
    assert load_project(tmp_path).log_limit == limit


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("many", "expected a size, found the text 'many'"),
        ("100 KiB", "expected 1MiB or more, found the text '100 KiB'"),
        ("0", "expected 1MiB or more, found 0"),
        ("-1", "expected a size, found -1"),
        ("[1MiB]", "expected a size, found a list"),
        ("", "expected a size, found nothing (null)"),
    ],
)
def test_what_is_none_is_refused_with_its_line(written: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "monkey.yaml").write_text(f"project: shop\nlog_limit: {written}\n")
    with pytest.raises(SpecError) as caught:
        load_project(tmp_path)
    (found,) = caught.value.problems
    assert (found.file, found.line) == ("monkey.yaml", 2) and said in found.message and found.hint
