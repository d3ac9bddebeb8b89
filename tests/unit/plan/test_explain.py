from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monkey.plan.explain import (
    KEEPABLE_REASONS,
    explain_parameter_changes,
    explain_recipe_changes,
    find_setting_changes,
    format_seconds,
    format_setting_change,
)
from monkey.plan.sizes import format_size
from monkey.spec.job.recipe import JobResources, Recipe, SweepSettings
from monkey.spec.project.influx_settings import InfluxSettings

INFLUX = InfluxSettings("http://a", "b", token="INFLUX_TOKEN")
BASE = Recipe(
    command="python train.py --epochs 5 --lr {lr}",
    code="a" * 64,
    datasets={"digits": "d1"},
    environment={"requirements": "numpy==1.26\nscipy\n", "python": "3.11"},
    env={"OMP_NUM_THREADS": "1"},
    outputs=["model.npz"],
)


def reasons(files: tuple[dict[str, str], dict[str, str]] = ({}, {}), **changed: Any) -> list[tuple[str, str]]:
    return [tuple(reason) for reason in explain_recipe_changes(BASE, replace(BASE, **changed), *files)]


@pytest.mark.parametrize(
    ("changed", "kind", "text"),
    [
        ({"command": "python train.py --epochs 10 --lr {lr}"}, "command", "command changed: 5 → 10"),
        ({"command": BASE.command + " --fast"}, "command", "command changed: + --fast"),
        ({"command": "python train.py --lr {lr}"}, "command", "command changed: - --epochs 5"),
        ({"command": BASE.command.replace(" ", "  ")}, "command", "command changed"),
        ({"command": ["python", "other.py"]}, "command", "command changed: train.py --epochs 5 --lr {lr} → other.py"),
        ({"datasets": {"digits": "d2"}}, "dataset", "dataset changed: digits"),
        ({"datasets": {"faces": "f"}}, "dataset", "dataset changed: +faces, -digits"),
        (
            {"environment": {"requirements": "numpy==2.0\nscipy\n", "python": "3.11"}},
            "requirements",
            "requirements changed: +numpy==2.0, -numpy==1.26",
        ),
        (
            {"environment": {**BASE.environment, "python": "3.12"}},
            "python",
            "python changed: 3.11 → 3.12",
        ),
        ({"environment": {**BASE.environment, "setup": "make\n"}}, "setup", "setup changed: +make"),
        ({"image": "sha256:" + "a1b2" * 16}, "image", "image changed: none → a1b2a1b2a1b2…"),
        ({"env": {"OMP_NUM_THREADS": "2"}}, "env", "env changed: OMP_NUM_THREADS (1 → 2)"),
        ({"env": {}}, "env", "env changed: -OMP_NUM_THREADS"),
        ({"outputs": ["model.npz", "plots/"]}, "outputs", "outputs changed: +plots/"),
    ],
)
def test_each_part_of_a_recipe_has_its_reason(changed: dict[str, Any], kind: str, text: str) -> None:
    assert reasons(**changed) == [(kind, text)]
    assert kind in KEEPABLE_REASONS


def test_outputs_in_another_order_are_another_identity() -> None:
    before = replace(BASE, outputs=["a", "b"])
    assert explain_recipe_changes(before, replace(before, outputs=["b", "a"]), {}, {})[0].text == (
        "outputs changed: another order"
    )


def test_changed_code_names_its_files_changed_ones_first() -> None:
    before = {"a.py": "1", "b.py": "1", "old.py": "1"}
    assert reasons((before, {"a.py": "1", "b.py": "2", "new.py": "1"}), code="b" * 64) == [
        ("code", "code changed: b.py, +new.py, -old.py")
    ]
    many = {f"{letter}.py": "2" for letter in "abcdef"}
    assert reasons((dict.fromkeys(many, "1"), many), code="b" * 64) == [
        ("code", "code changed: a.py, b.py, c.py and 3 more")
    ]
    assert reasons((before, before), code="b" * 64) == [("code", "code changed: rights of its files")]


def test_several_parts_are_several_reasons() -> None:
    assert [kind for kind, _ in reasons(code="b" * 64, image="x", env={})] == ["code", "image", "env"]


def test_a_recipe_that_is_the_same_has_none() -> None:
    assert reasons() == []


def test_long_values_are_cut() -> None:
    assert len(reasons(env={"OMP_NUM_THREADS": "x" * 10_000})[0][1]) < 100


def test_a_rewritten_command_is_not_spelled_out() -> None:
    command = "sh b.sh a c d --epochs=1 x {lr} y"
    assert reasons(command=command)[0][1].startswith("command changed")
    assert len(reasons(command=" ".join(f"w{i}" for i in range(5000)))[0][1]) < 100


def test_parameters_that_came_and_went() -> None:
    assert [reason.text for reason in explain_parameter_changes(["momentum", "wd"], ["seed"])] == [
        "parameter added: momentum, wd",
        "parameter removed: seed",
    ]
    assert explain_parameter_changes([], []) == ()


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"max_retries": 3}, "max_retries 0 → 3"),
        ({"timeout": 7200.0}, "timeout none → 2h"),
        ({"grace": 90.0}, "grace 10s → 1m 30s"),
        ({"fail_fast": True}, "fail_fast false → true"),
        ({"providers": ["local", "aws"]}, "providers local → local, aws"),
        ({"resources": JobResources(cpus=0.5)}, "resources.cpus 1 → 0.5"),
        ({"resources": JobResources(memory=2 << 30)}, "resources.memory none → 2 GiB"),
        ({"resources": JobResources(counted=(("tpu", 2),))}, "resources.tpu none → 2"),
        ({"dataset_files": {"digits": "digits.npz"}}, "dataset_files.digits none → digits.npz"),
        ({"metric": "loss"}, "metric none → loss"),
        ({"take": "best"}, "take last → best"),
        ({"influx": replace(INFLUX, url="http://b")}, "metrics.influxdb.url http://a → http://b"),
        ({"influx": replace(INFLUX, token="")}, "metrics.influxdb.token INFLUX_TOKEN → none"),
        ({"influx": replace(INFLUX, spool=2 << 20)}, "metrics.influxdb.spool none → 2 MiB"),
        ({"log_limit": 100 << 20}, "log_limit none → 100 MiB"),
    ],
)
def test_settings_are_told_as_they_are_written(changed: dict[str, Any], text: str) -> None:
    before = replace(SweepSettings(), influx=INFLUX if "influx" in changed else None)
    (change,) = find_setting_changes(before, replace(before, **changed))
    assert format_setting_change(change) == text


def test_the_same_settings_change_nothing() -> None:
    assert find_setting_changes(SweepSettings(), SweepSettings()) == ()


def test_sizes_and_times() -> None:
    assert [format_size(n) for n in (0, 1, 1023, 1024, 1536, 5 << 30, 3 << 50)] == [
        "0 bytes",
        "1 byte",
        "1023 bytes",
        "1 KiB",
        "1.5 KiB",
        "5 GiB",
        "3072 TiB",
    ]
    assert [format_seconds(s) for s in (0.5, 45, 60, 3661, 86400 * 2)] == ["0.5s", "45s", "1m", "1h 1m 1s", "2d"]
