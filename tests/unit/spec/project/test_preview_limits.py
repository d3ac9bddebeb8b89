"""`previews:` in monkey.yaml: what it says, what holds without it, and what is wrong with it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.project.preview_limits import PreviewLimits
from monkey.spec.project.project import load_project

CLOUD = "{type: aws, region: eu-central-1, instance_type: g5.xlarge, price: 1}"
HEAD = f"providers: {{local: {{}}, lab: {{type: ssh, hosts: [h1]}}, aws: {CLOUD}}}\n"


def limits(place: Path, text: str, head: str = HEAD) -> PreviewLimits | None:
    (place / "monkey.yaml").write_text(f"{head}previews: {text}\n")
    return load_project(place).previews


def test_what_it_says(tmp_path: Path) -> None:
    said = (
        "{sweeps: 1, jobs: 5, max_concurrent_jobs: 3, expires: 1h, providers: [lab, aws], max_cost: 5, secrets: [KEY]}"
    )
    assert limits(tmp_path, said) == PreviewLimits(1, 5, 3, 3600.0, ("lab", "aws"), 5.0, ("KEY",))


def test_without_a_choice_only_machines_that_cost_nothing_take_part(tmp_path: Path) -> None:
    assert limits(tmp_path, "{}") == PreviewLimits(4, 8, 2, 14400.0, ("local", "lab"))
    assert limits(tmp_path, "{}", "") == PreviewLimits(4, 8, 2, 14400.0, ("local",))


def test_without_the_block_there_are_no_previews(tmp_path: Path) -> None:
    (tmp_path / "monkey.yaml").write_text(HEAD)
    assert load_project(tmp_path).previews is None


@pytest.mark.parametrize(
    ("text", "at", "message", "hint"),
    [
        ("yes", "yes", "expected a mapping of limits, found the text 'yes'", "jobs: 8"),
        ("", "", "expected a mapping of limits, found nothing", "jobs: 8"),
        ("{job: 8}", "job", "unknown key 'job' of previews", "'jobs'"),
        ("{jobs: 0}", "0", "expected a whole number from 1 to 256, found 0", "jobs: 8"),
        ("{jobs: true}", "true", "expected a whole number from 1 to 256, found true", "jobs: 8"),
        ("{max_concurrent_jobs: 1e9}", "1e9", "expected a whole number", "max_concurrent_jobs: 2"),
        ("{expires: never}", "never", "expected a duration", "2h"),
        ("{expires: 30d}", "30d", "expected 1m to 7d, found the text '30d'", "4h"),
        ("{expires: 2, providers: aws, max_cost: 1}", "2,", "to 7d, found 2", "4h"),
        ("{providers: []}", "[]", "expected a list of providers, found an empty list", "[local]"),
        ("{providers: [lib]}", "lib", "expected one of the project's providers, found the text 'lib'", "'lab'"),
        ("{providers: [lab, [lab]]}", "[lab]]", "expected one of the project's providers, found a list", "'lab'"),
        ("{providers: [lab, lab]}", "lab]", "provider 'lab' is listed twice", "once"),
        ("{providers: aws}", "aws", "machines of provider 'aws' are paid for: expected max_cost", "max_cost: 5"),
        ("{max_cost: 0}", "0}", "expected USD, more than 0", "5"),
        ("{max_cost: -1}", "-1", "expected USD, more than 0", "5"),
        ("{secrets: WANDB}", "WANDB", "expected a list of names of secrets", "[WANDB_API_KEY]"),
        ("{secrets: [A, PATH]}", "PATH", "'PATH' is no secret", "out"),
    ],
)
def test_mistakes(text: str, at: str, message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        limits(tmp_path, text)
    (found,) = caught.value.problems
    if at:
        assert (found.file, found.line, found.column) == ("monkey.yaml", 2, 11 + text.index(at))
    assert message in found.message and hint in (found.hint or "")


def test_a_value_in_the_place_of_a_secrets_name_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        limits(tmp_path, "{secrets: [se-same]}")
    assert "se-same" not in caught.value.problems[0].message


def test_whatever_stands_there_is_a_limit_or_a_mistake_with_its_place(tmp_path: Path) -> None:
    dice = random.Random(5)
    odd = [
        "",
        "-",
        "{}",
        "[]",
        "[[]]",
        "{a: b}",
        "null",
        "true",
        "-3",
        "1e99",
        ".inf",
        "'\\0'",
        "8",
        "lab",
        "[aws]",
        "4h",
    ]
    for _ in range(150):
        keys = dice.sample(["jobs", "max_concurrent_jobs", "expires", "providers", "max_cost", "secrets", "x"], 3)
        text = "".join(f"\n  {key}: {dice.choice(odd)}" for key in keys)
        try:
            found = limits(tmp_path, text)
        except SpecError as error:
            assert all(problem.file == "monkey.yaml" and problem.line >= 1 for problem in error.problems)
        else:
            assert found is not None and 1 <= found.jobs <= 256 and 60 <= found.expires <= 7 * 86400
            assert "aws" not in found.providers or found.max_cost
