"""Values that differ never look the same: on narrow terminals, in a plan, in Markdown and in LaTeX."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from tests.acceptance.shop import Shop
from tests.acceptance.test_terminal import on_terminal, plain

#: Names that begin alike, differ in the middle, or end alike; lists that differ in their last item.
VALUES = [
    "mistralai/Mistral-7B-Instruct-v0.2",
    "mistralai/Mistral-7B-Instruct-v0.3",
    "/data/experiments/2026/run-1/checkpoints/last.pt",
    "/data/experiments/2026/run-2/checkpoints/last.pt",
    [64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 1],
    [64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 2],
]
TEXTS = [str(value).replace(" ", "") for value in VALUES]
RATES = [0.001953125, 0.0019531]
SPEC = """\
command: [python3, train.py]
parameters: {{model: {values}, lr: {rates}, seed: {{range: [0, 3]}}}}
metric: {{name: acc, goal: maximize}}
code: {{include: [train.py]}}
outputs: []
"""
TRAIN = """\
import monkey

p = monkey.params()
monkey.log("acc", 0.9 + 0.01 * p["seed"])
"""


def find_models(text: str) -> set[str]:
    """Return the different texts that begin as one of the values, in lines of a table."""
    return {line.split()[0] for line in text.splitlines() if re.match(r"mistral|/data|\[64", line)}


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80])
def test_no_two_values_look_the_same_wherever_they_are_shown(shop: Shop, columns: int) -> None:
    (shop.root / "train.py").write_text(TRAIN)
    text = SPEC.format(values=VALUES, rates=RATES)
    shop.spec(text, name="models")
    shop.spec(text, name="again")
    told = "".join(shop.run("plan").stdout.split())
    listed = re.findall(r"model\{(.*?)\}×lr\{0.001953125,0.0019531\}×3seeds", told)
    assert len(listed) == 2
    assert all(len(set(re.split(r",(?![0-9\]…])", each))) == len(VALUES) for each in listed)
    shop.run("apply")

    for words in (("results", "models"), ("results", "models", "--group-by", "model"), ("compare", "models", "again")):
        with on_terminal(shop, *words, columns=columns) as screen:
            screen.ended()
        lines = plain(screen.seen)
        assert len(find_models(lines)) == len(VALUES), lines
        assert all(len(line) <= columns for line in lines.splitlines() if re.match(r"model|mistral|/data|\[64", line))
    # In full, and beside each other or below.
    with on_terminal(shop, "results", "models", "--all", columns=columns) as screen:
        screen.ended()
    everything = "".join(plain(screen.seen).split())
    assert all(text in everything for text in [*TEXTS, *map(str, RATES)])

    markdown = shop.run("results", "models", "--markdown").stdout
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    code = {child.content for token in tokens for child in token.children or [] if child.type == "code_inline"}
    assert len([text for text in code if text in TEXTS]) >= 2
    assert "| 0.001953125 |" in markdown and not any("…" in text for text in code)
    latex = shop.run("results", "models", "--latex").stdout
    rows = {line.split(" & ")[0] for line in latex.splitlines() if line.endswith(r"\\")}
    assert len(rows) == len(VALUES) + 1 and r"\dots" not in latex
    assert r"mistralai/Mistral{-}7B{-}Instruct{-}v0.2" in rows and "0.001953125" in latex
