"""Long lists of files, folded."""

from __future__ import annotations

import pytest

from monkey.plan.text.folding import fold_paths


@pytest.mark.parametrize(
    ("paths", "text"),
    [
        (["b.py", "a.py"], "a.py, b.py"),
        ([f"a/{n}" for n in range(6)], "a/0, a/1, a/2, a/3, a/4, a/5"),
        ([f"a/{n}" for n in range(7)] + ["b/x", "c"], "a/ (7 files), b/x, c"),
        ([f"{n:02}" for n in range(18)], "00, 01, 02, 03, 04, 05, … and 12 more"),
        (
            [f"d{n}/{m}" for n in range(8) for m in range(4)],
            ", ".join(f"d{n}/ (4 files)" for n in range(6)) + ", … and 2 more",
        ),
        (["a", "a/b"], "a, a/b"),
    ],
)
def test_folded(paths: list[str], text: str) -> None:
    assert fold_paths(paths) == text
