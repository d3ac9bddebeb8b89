"""From failures to a rule and a change of the spec: through the real store, planned again by the real spec."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monkey.apply.world.world import World
from monkey.errors import NotFound
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.status.store_snapshot import SweepView
from monkey.results.causes.failure_report import serialize_failures
from monkey.results.failure_kinds import group_failures, select_failures
from monkey.spec.sweep.expand import expand_spec
from monkey.spec.sweep.load import parse_spec
from tests.unit.apply.small_project import Pen, apply, opened, write_project

HEAD = "name: small\ncommand: python3 train.py {options}\nmetric: {name: loss}\n"
GRID = HEAD + "parameters:\n  batch: [32, 64, 128, 256, 512]\n  model: [s, m]\n  seed: {range: [0, 4]}\n"
DRAWN = HEAD + "method: random\nrun_cap: 40\nparameters:\n  lr: {min: 0.0, max: 1.0}\n  opt: [sgd, adam]\n"
MEMORY = GRID + "resources: {memory: 8GiB}  # of the machine's 64\n"
Fails = Callable[[dict[str, Any]], bool]
OOM = "killed by SIGKILL (out of memory? its largest process had used 7.9 GiB)"


async def run(
    world: World, fails: Fails, machines: Callable[[int], str], **ends: Any
) -> tuple[SweepView, list[str], list[dict[str, Any]]]:
    """Run all jobs; returns the sweep, the jobs that failed, and what is said of failures."""
    table = (await apply(world)).wanted[0].desired.table
    pens: dict[str, Pen] = {}
    lost = []
    for at, (job, parameters) in enumerate(table.rows()):
        name = machines(at)
        pen = pens.setdefault(name, Pen(world, f"local/{name}/1"))
        await pen.begin(job, beat=False)
        if fails({**parameters, "at": at}):
            lost.append(job)
            about = {"reason": "exit code 1", "exit_code": 1, "log_tail": [f"ValueError: {at}"], **ends}
            await pen.end(job, ClaimEnd.FAILED, **about)
        else:
            await pen.end(job)
    view = (await world.reader().read()).sweeps["small"]
    return view, lost, serialize_failures(view)


def explain(
    root: Path, spec: str, fails: Fails, machines: Callable[[int], str] = lambda at: "pen", **ends: Any
) -> tuple[list[str], dict[str, Any]]:
    """Return the failed jobs, and the one kind of failure that there is."""
    write_project(root, spec.replace("{options}", " ".join(f"{{{n}}}" for n in names(spec))))

    async def inside() -> tuple[list[str], dict[str, Any]]:
        async with opened(root) as world:
            _, lost, [kind] = await run(world, fails, machines, **ends)
            return lost, kind

    return asyncio.run(inside())


def names(spec: str) -> list[str]:
    return [line.split(":")[0].strip() for line in spec.splitlines() if line.startswith("  ")]


def plan_again(root: Path, diff: list[str]) -> set[str]:
    """Put the diff into the spec, as a person would; returns the labels of the jobs that it has then."""
    text = (root / "specs" / "small.yaml").read_text()
    for line in (line[1:] for line in diff if line.startswith("-") and not line.startswith("---")):
        text = text.replace(line + "\n", "")
    lines, at = text.splitlines(), 0
    for line in diff:
        if line.startswith(" "):
            at = lines.index(line[1:], at) + 1
        elif line.startswith("+") and not line.startswith("+++"):
            lines.insert(at, line[1:])
            at += 1
    spec = parse_spec("\n".join(lines) + "\n", "specs/small.yaml", root)
    return {str(parameters) for _, parameters in expand_spec(spec)[0].rows()}


def test_values_of_a_grid_are_excluded(tmp_path: Path) -> None:
    lost, kind = explain(tmp_path, GRID, lambda job: job["batch"] >= 256)
    assert kind["jobs"] == lost and len(lost) == 16
    assert kind["rule"]["text"].startswith("16 of 16 with batch >= 256; 0 of 24 elsewhere (p = ")
    assert kind["rule"]["conditions"] == [{"name": "batch", "operator": ">=", "value": 256}]
    assert kind["diff"][:2] == ["--- specs/small.yaml", "+++ specs/small.yaml"]
    assert "+exclude: [{batch: 256}, {batch: 512}]" in kind["diff"]
    left = plan_again(tmp_path, kind["diff"])
    assert len(left) == 24 and not any("256" in job or "512" in job for job in left)


def test_two_conditions_exclude_what_both_hold_for(tmp_path: Path) -> None:
    _, kind = explain(tmp_path, GRID, lambda job: job["batch"] >= 256 and job["model"] == "m")
    assert kind["rule"]["text"].startswith("8 of 8 with batch >= 256 and model == 'm'; 0 of 32 elsewhere")
    assert "+exclude: [{batch: 256, model: m}, {batch: 512, model: m}]" in kind["diff"]
    assert len(plan_again(tmp_path, kind["diff"])) == 32


def test_a_draw_is_narrowed(tmp_path: Path) -> None:
    lost, kind = explain(tmp_path, DRAWN, lambda job: job["lr"] >= 0.6)
    [condition] = kind["rule"]["conditions"]
    assert condition["name"] == "lr" and len(lost) <= kind["rule"]["inside"] <= len(lost) + 1
    [added] = [line for line in kind["diff"] if line.startswith("+ ")]
    assert added == f"+  lr: {{min: 0.0, max: {condition['value']}}}"
    plan_again(tmp_path, kind["diff"])


def test_a_draw_that_fails_with_some_values_of_another_gets_a_condition(tmp_path: Path) -> None:
    _, kind = explain(tmp_path, DRAWN, lambda job: job["lr"] >= 0.4 and job["opt"] == "sgd")
    assert {each["name"] for each in kind["rule"]["conditions"]} == {"lr", "opt"}
    [added] = [line for line in kind["diff"] if line.startswith("+ ")]
    assert added.startswith("+  lr: {when: \"opt != 'sgd'\", else: 0.") and added.endswith(", min: 0.0, max: 1.0}")
    plan_again(tmp_path, kind["diff"])


def test_a_kill_for_want_of_memory_asks_for_more(tmp_path: Path) -> None:
    used = {"memory_bytes": 7.9 * (1 << 30)}
    ends = {"reason": OOM, "exit_code": 137, "usage": used}
    _, kind = explain(tmp_path, MEMORY, lambda job: job["batch"] >= 256, **ends)
    assert kind["rule"] is not None
    assert kind["diff"][-2:] == [
        "-resources: {memory: 8GiB}  # of the machine's 64",
        "+resources: {memory: 16GiB}  # of the machine's 64",
    ]
    _, other = explain(
        tmp_path / "b", MEMORY, lambda job: job["batch"] >= 256, **{**ends, "usage": {"memory_bytes": 1e9}}
    )
    assert any("exclude" in line for line in other["diff"]), "it had asked for enough"
    ends = {"reason": "needed more than 8 GiB of memory: it held 8 GiB when it was ended", "exit_code": 137}
    _, ended = explain(tmp_path / "c", MEMORY, lambda job: job["batch"] >= 256, **ends)
    assert ended["diff"] == kind["diff"]


@pytest.mark.parametrize(
    ("asked", "used", "offered"), [("64MiB", 0, "128MiB"), ("300MiB", 310, "640MiB"), ("1GiB", 1700, "4GiB")]
)
def test_more_memory_is_more_than_it_had_and_than_it_held(tmp_path: Path, asked: str, used: int, offered: str) -> None:
    ends = {"reason": f"needed more than {asked}", "exit_code": 137, "usage": {"memory_bytes": used << 20}}
    _, kind = explain(tmp_path, MEMORY.replace("8GiB", asked), lambda job: job["batch"] >= 256, **ends)
    assert kind["diff"][-1].startswith(f"+resources: {{memory: {offered}}}")


def test_a_machine_is_named_and_no_change_of_the_spec_is_offered(tmp_path: Path) -> None:
    _, kind = explain(tmp_path, GRID, lambda job: job["at"] % 4 == 3, machines=lambda at: f"gpu{at % 4}")
    # Here the seed is the machine, too: whichever is named parts them, but the machine alone has another cause.
    assert kind["rule"]["text"].split(";")[0] in ("10 of 10 with seed >= 3", "10 of 10 with host == 'gpu3'")
    _, kind = explain(tmp_path / "b", GRID, lambda job: job["at"] % 3 == 2, machines=lambda at: f"gpu{at % 3}")
    assert kind["rule"]["text"].startswith("13 of 13 with host == 'gpu2'; 0 of 27 elsewhere")
    assert kind["diff"] == []


def test_signatures_choose_failures(tmp_path: Path) -> None:
    write_project(tmp_path, GRID.replace("{options}", "{batch} {model} {seed}"))

    async def inside() -> None:
        async with opened(tmp_path) as world:
            view, lost, [kind] = await run(world, lambda job: job["seed"] == 1, lambda at: "pen")
            assert select_failures(view, kind["signature"]) == lost == group_failures(view)[0].jobs
            with pytest.raises(NotFound, match=rf"signatures there: {kind['signature']} \(10\)"):
                select_failures(view, "000000")

    asyncio.run(inside())
