"""What a plan warns a spec's author of."""

from __future__ import annotations

from tests.acceptance.shop import Shop


def test_a_plan_warns_of_values_that_are_other_than_they_look(shop: Shop) -> None:
    text = "name: sweep\ncommand: 'true'\noutputs: []\nparameters:\n  lr: [2**-5, 0.1]\n  build: [08, '09']\n"
    shop.spec(text)
    said = [line.partition("warning: ")[2] for line in shop.run("plan").stdout.splitlines() if "warning: " in line]
    assert said == [
        "specs/sweep.yaml:5:8: 2**-5 is a text: write 0.03125, or '2**-5' in quotes",
        "specs/sweep.yaml:6:11: 08 is the number 8: write 8, or '08' in quotes",
    ]
    assert shop.json("plan")["sweeps"][0]["warnings"] == said
    told = shop.run("validate").stderr.splitlines()
    assert [line.removeprefix("warning: ") for line in told] == said
