"""What a spec says arrives as it is written, and what it refers to is read with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.job.recipe import JobResources, Recipe, SweepSettings
from monkey.spec.project.provider import Provider
from monkey.spec.sweep.load import load_spec, parse_spec
from tests.unit.spec.making import jobs, problem, spec

FULL = """\
name: digits
command: python train.py --lr {lr} --hidden {hidden} --seed {seed}
method: grid
parameters:
  lr: [0.01, 0.03, 0.1]
  hidden: {values: [32, 128, 256]}
  seed: {range: [0, 5]}
zip: [[lr, hidden]]
include: [{lr: 0.5, hidden: 256, seed: 0}]
exclude: [{lr: 0.1, hidden: 256}]
metric: {name: val_accuracy, goal: maximize}
run_cap: 200
max_concurrent_jobs: 16
max_retries: 2
timeout: 2h
grace: 30s
fail_fast: true
resources: {cpus: 2, gpus: 1, memory: 2GiB}
code: {root: ., include: ["**/*.py"]}
environment: {python: "3.11", requirements: requirements.txt}
env: {OMP_NUM_THREADS: 1, A: "b c"}
outputs: [plots/, model.npz]
provider: [local, other]
priority: 3
"""


def test_every_field_arrives(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy\n")
    (tmp_path / "specs").mkdir()
    path = tmp_path / "specs/digits.yaml"
    path.write_text(FULL)
    made = load_spec(path, tmp_path)
    assert (made.name, made.source, made.text) == ("digits", "specs/digits.yaml", FULL)
    assert made.settings() == SweepSettings(
        max_retries=2,
        timeout=7200,
        grace=30,
        max_concurrent_jobs=16,
        fail_fast=True,
        priority=3,
        providers=["local", "other"],
        resources=JobResources(2, 1, 2 << 30),
        metric="val_accuracy",
        maximize=True,
    )
    assert made.recipe("c" * 64) == Recipe(
        command="python train.py --lr {lr} --hidden {hidden} --seed {seed}",
        code="c" * 64,
        environment={"python": "3.11", "requirements": "numpy\n"},
        env={"OMP_NUM_THREADS": "1", "A": "b c"},
        outputs=["model.npz", "plots/"],
    )
    assert (made.code.root, made.code.include) == (".", ["**/*.py"])
    assert len(made.parameters) == 3


def test_the_value_of_a_metric_that_counts_is_the_last_unless_the_spec_says_best() -> None:
    takes = {said: parse_spec(f"command: a\nmetric: {{name: loss{said}}}\n", "specs/a.yaml", Path()).settings()
             for said in ("", ", take: last", ", take: best")}  # fmt: skip
    assert [settings.take for settings in takes.values()] == ["last", "last", "best"]
    written = [settings.to_json() for settings in takes.values()]
    assert ["take" in data for data in written] == [False, False, True], "an agent of before reads the others"
    assert [SweepSettings.from_json(data) for data in written] == list(takes.values())
    text = "command: a\nmetric: {name: loss, take: best, last: [seconds, flops]}\n"
    found = parse_spec(text, "specs/a.yaml", Path()).settings()
    assert found.last == ["seconds", "flops"] and SweepSettings.from_json(found.to_json()) == found
    assert all("last" not in data for data in written)


def test_the_least_spec() -> None:
    made = parse_spec("command: 'true'\n", "specs/my-sweep.yaml", Path())
    assert made.name == "my-sweep"
    assert made.settings() == SweepSettings()
    assert made.recipe("0") == Recipe(command="true", code="0")
    assert jobs("command: 'true'") == [{}]


def test_providers_are_the_project_s(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("command: a\nprovider: [local, bg]\n")
    assert load_spec(path, tmp_path).fleets == ["local", "bg"]
    with pytest.raises(SpecError) as caught:
        load_spec(path, tmp_path, {"local": Provider(), "big": Provider()})
    (found,) = caught.value.problems
    assert (found.line, found.column, found.message, found.hint) == (
        2, 19, "unknown provider 'bg'", "did you mean 'big'?"
    )  # fmt: skip


def test_a_default_provider_that_is_not_there_is_no_word_of_the_spec(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    for known, hint in [(["lab"], "`provider: lab`"), (["lab", "big"], "`provider: big` or `provider: lab`")]:
        path.write_text("command: a\n")
        with pytest.raises(SpecError) as caught:
            load_spec(path, tmp_path, {name: Provider() for name in known})
        (found,) = caught.value.problems
        told = "the spec names no provider, and the default 'local' is not in monkey.yaml"
        assert (found.message, found.hint) == (told, f"write {hint}")
    path.write_text("command: a\nproviders: lab\n")
    with pytest.raises(SpecError) as caught:
        load_spec(path, tmp_path, {"lab": Provider()})
    assert len(caught.value.problems) == 1


def test_requirements_must_stand_alone(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("numpy\n  -r other.txt\n")
    found = problem("environment: {requirements: r.txt}", tmp_path)
    assert "-r, which refers to another file" in found.message
    (tmp_path / "r.txt").write_bytes(b"\xff")
    assert "not UTF-8" in problem("environment: {requirements: r.txt}", tmp_path).message


def test_requirements_are_those_at_loading(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("numpy\n")
    made = spec("environment: {requirements: r.txt}", tmp_path)
    same = spec("environment: {requirements: [numpy]}", tmp_path)
    assert same.recipe("0") == made.recipe("0")
    (tmp_path / "r.txt").unlink()
    assert made.recipe("0").environment == {"requirements": "numpy\n"}


def test_a_spec_outside_of_the_project_is_named_by_its_whole_path(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("command: 'true'\n")
    (tmp_path / "project").mkdir()
    assert load_spec(path, tmp_path / "project").source == str(path)


def test_a_link_may_lead_to_another_file_of_the_project_and_no_further(tmp_path: Path) -> None:
    real, link, outside = tmp_path / "real", tmp_path / "link", tmp_path / "outside.yaml"
    (real / "specs").mkdir(parents=True)
    (real / ".git").mkdir()
    link.symlink_to(real)
    for path in (outside, real / "base.yaml", real / ".git" / "config"):
        path.write_text("command: 'true'\nsecret: hunter2\n" if path.name == "config" else "command: 'true'\n")
    spec = real / "specs" / "a.yaml"
    spec.symlink_to("../base.yaml")
    for root in (real, link):
        for project in (real, link):
            assert load_spec(root / "specs" / "a.yaml", project).source == "base.yaml"
    for target, why in ((outside, "outside of the project"), (real / ".git" / "config", "one of git's own")):
        spec.unlink()
        spec.symlink_to(target)
        for root in (real, link):
            for path in (root / "specs" / "a.yaml", real / "specs" / "a.yaml"):
                with pytest.raises(SpecError, match=why) as caught:
                    load_spec(path, root)
                assert "hunter2" not in str(caught.value) and caught.value.problems[0].hint
    with pytest.raises(SpecError, match="one of git's own"):
        load_spec(real / ".git" / "config", real)
    assert load_spec(real / "specs" / ".." / ".." / "outside.yaml", real).source == str(outside)


@pytest.mark.parametrize(
    ("name", "why"),
    [("pipe", "no regular file"), ("/dev/zero", "regular file|outside"), ("circle", "symbolic"), ("none", "no such")],
)
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, name: str, why: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "circle").symlink_to("circle")
    link = tmp_path / "a.yaml"
    link.symlink_to(name)
    for path in (tmp_path / name, link):
        with pytest.raises(SpecError, match=why):
            load_spec(path, tmp_path)


@pytest.mark.parametrize("name", [".git/config", "linked"])
def test_requirements_and_code_are_none_of_git_s_own_files(tmp_path: Path, name: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("token")
    (tmp_path / "linked").symlink_to(".git/config")
    assert "one of git's own" in problem(f"environment: {{requirements: {name}}}", tmp_path).message
    assert "no directory '.git'" in problem("code: {root: .git}", tmp_path).message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, message in ((tmp_path / "none.yaml", "there is no such file"), (tmp_path, "Is a directory")):
        with pytest.raises(SpecError, match=message):
            load_spec(path, tmp_path)


def test_spec_text_of_another_place_is_read_the_same(tmp_path: Path) -> None:
    made = parse_spec(FULL.replace(", requirements: requirements.txt", ""), "digits.yaml", tmp_path)
    assert made.name == "digits"
