"""What counts as size: tokens, however they are laid out and explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.product_size import PACKAGES, count_tokens, describe_size


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("x = f(1)\n", 6),
        ("x = f(\n    1\n)\n", 6),
        ('"""Words."""\nimport os\nfrom os import (\n    path,\n)\nx = f(1)  # why\n', 6),
        ('def f():\n    """Words\n    of two lines.\n    """\n    return 1\n', 7),
        ('class A:\n    """Words."""\n\n    async def f(self):\n        """Words."""\n', 10),
        ('x = """no docstring"""\n', 3),
    ],
)
def test_tokens_are_counted(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_each_package_counts(tmp_path: Path) -> None:
    for number, name in enumerate(PACKAGES, 1):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep/a.py").write_text("x\n" * number * 1000)
    assert describe_size(tmp_path) == "size in tokens: monkey 1,000, agent 2,000, stacks 3,000; in all 6,000"
