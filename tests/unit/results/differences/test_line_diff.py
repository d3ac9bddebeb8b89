"""Texts line by line: git applies what is printed, and no text makes it long."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from monkey.results.differences.line_diff import MAX_TEXT_BYTES, TooDifferent, compare_lines

LINES = (b"", b"a", b"b", b"\tx = 1", b"\xc3\xa9", b"a\x0cb", b"c\r", b"-", b"+", b"@@ -1 +1 @@", b"\\")


def change(dice: random.Random, before: list[bytes]) -> list[bytes]:
    """Return some lines with some changes."""
    after = list(before)
    for _ in range(dice.randrange(6)):
        at = dice.randrange(len(after) + 1)
        after[at : at + dice.randrange(3)] = dice.choices(LINES, k=dice.randrange(3))
    return after


def test_git_makes_one_text_of_the_other_by_it(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    dice, pairs, patch = random.Random(seed), {}, []
    for number in range(60):
        before = dice.choices(LINES, k=dice.randrange(30))
        texts = [b"\n".join(each) + b"\n" * dice.randrange(2) for each in (before, change(dice, before))]
        name = f"{number}.txt"
        (tmp_path / name).write_bytes(texts[0])
        lines = compare_lines(*texts)
        assert bool(lines) is (texts[0] != texts[1])
        if lines:
            patch += [f"--- a/{name}", f"+++ b/{name}", *lines]
        pairs[name] = texts[1]
    data = "".join(f"{line}\n" for line in patch).encode()
    command = ["git", "apply", "--whitespace=nowarn", "--unidiff-zero", "-"]
    subprocess.run(command, cwd=tmp_path, input=data, check=True)
    assert {name: (tmp_path / name).read_bytes() for name in pairs} == pairs


def test_a_text_that_was_made_to_take_long_is_given_up() -> None:
    """Lines that repeat below the share that difflib takes for noise, each time in another order."""
    dice = random.Random(1)
    lines = [b"%d\n" % (at % 120) for at in range(30_000)]
    texts = [b"".join(dice.sample(lines, len(lines))) for _ in range(2)]
    assert len(texts[0]) < MAX_TEXT_BYTES
    with pytest.raises(TooDifferent):
        compare_lines(*texts)


def test_a_change_in_a_long_text_is_found() -> None:
    lines = [b"line %d\n" % (at // 2) for at in range(60_000)]
    changed = [*lines[:30_000], b"new\n", *lines[30_001:]]
    found = compare_lines(b"".join(lines), b"".join(changed))
    assert found[0] == "@@ -29998,7 +29998,7 @@" and found[4:6] == ["-line 15000", "+new"]
