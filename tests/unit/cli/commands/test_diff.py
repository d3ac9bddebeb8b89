"""`monkey diff` as people type it: what jobs and revisions are called, what is shown, and what never is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from monkey.apply.world.world import World
from monkey.cli.main import run_guarded
from monkey.cli.render.differences.difference_lines import format_difference
from monkey.cli.terminal.text import Terminal
from monkey.protocol.entries import ClaimEnd
from monkey.protocol.record.facts import encode_facts, hash_facts
from monkey.results.differences.difference import Difference, JobsDifference, PartDifference
from monkey.results.differences.value_change import NO_VALUE, ValueChange
from monkey.store.create import create_object
from tests.unit.apply.small_project import Pen, StillFleet, apply, opened, write_project

SPEC = """\
name: small
command: python3 train.py --lr {lr} KIND
parameters:
  lr: VALUES
metric: {name: loss}
env: ENV
code: {include: ['*', keys.py]}
SETTING
"""
TOKEN = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
SIDE = {"sweep": "small", "revision": 1}
HOSTILE = "\x1b]0;owned\x07\x1b[31m\x9b31m\u202e"


def write_spec(root: Path, values: str, env: str, setting: str = "", kind: str = "") -> None:
    text = SPEC.replace("VALUES", values).replace("ENV", env).replace("SETTING", setting).replace("KIND", kind)
    (root / "specs" / "small.yaml").write_text(text)


class _KnowingFleet(StillFleet):
    """One that knows each secret."""

    def check_secrets(self, names: Sequence[str]) -> None:
        assert names == ["KEY"] or not names


async def finish(world: World, job: str, loss: float, host: str, facts: dict[str, Any], **about: Any) -> None:
    """End a job on a host, with facts on record."""
    data = encode_facts(facts)
    await create_object(world.at, world.keys.facts(hash_facts(data)), data)
    pen = Pen(world, f"local/{host}/{job}")
    await pen.begin(job)
    metrics = {"loss": {"last": loss, "min": loss / 2, "max": 9.0}, "same": {"last": 1, "min": 1, "max": 1}}
    await pen.end(job, about.pop("outcome", ClaimEnd.SUCCEEDED), metrics=metrics, facts=hash_facts(data), **about)


async def prepare(root: Path) -> None:
    """Apply two revisions that differ in all that may differ, and end the jobs of lr=2 of both."""
    async with opened(root, _KnowingFleet()) as world:
        first = (await apply(world)).wanted[0].desired.table.ids
        old = {"python": "3.11.9", "lock": ["numpy==2.4.0", "old==1", "same==1"], "variables": {"OMP_NUM_THREADS": "1"}}
        await finish(world, first[1], 4.0, "gpu1", old, usage={"memory_bytes": 2 << 30}, outputs={"a.pt": "a" * 64})
        (root / "train.py").write_text(f"print('hello')\rprint(2)  # {HOSTILE}\n")
        (root / "tool.sh").chmod(0o755)
        (root / "gone.py").unlink()
        (root / "weights.bin").write_bytes(b"\0" * 5_000)
        (root / "keys.py").write_text(f"TOKEN = '{TOKEN}'  # changed\n")
        write_spec(root, "[2, 3]", "{SIZE: '20', NEW: 'x'}", "max_retries: 2\nsecrets: [KEY]", "--more")
        second = (await apply(world)).wanted[0].desired.table.ids
        new = {"python": "3.11.9", "lock": ["numpy==2.4.1", "new==2", "same==1"], "cpu": f"EPYC{HOSTILE}"}
        failed: dict[str, Any] = {"outcome": ClaimEnd.FAILED, "reason": "exit code 1", "exit_code": 1}
        about = {"usage": {"memory_bytes": 3 << 30}, "outputs": {"a.pt": "b" * 64}}
        await finish(world, second[0], 3.0, "gpu2", new, **failed, **about)
        await finish(world, second[1], 1.0, "gpu2", new, usage={"memory_bytes": 3 << 30})
        (root / "ids.json").write_text(json.dumps([*first, *second]))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    write_project(root)
    (root / "monkey.yaml").write_text("project: test\n")
    write_spec(root, "[1, 2]", "{SIZE: '10', KEY: opensesame}")
    for name in ("gone.py", "tool.sh"):
        (root / name).write_text("x = 1\n")
    (root / "keys.py").write_text(f"TOKEN = '{TOKEN}'\n")
    asyncio.run(prepare(root))
    return root


@pytest.fixture(autouse=True)
def jobs(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs lr=1 and lr=2 of the first revision, and lr=2 and lr=3 of the second."""
    monkeypatch.chdir(project)
    found: list[str] = json.loads((project / "ids.json").read_text())
    return found


def diff(capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    assert run_guarded(["diff", *arguments]) == code
    said = capfd.readouterr()
    return said.err if code == 1 else said.out


def read(capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(diff(capfd, *arguments, "--json", code=code))
    return found


def sides(found: dict[str, Any], part: str) -> dict[str, tuple[Any, Any]]:
    return {one["name"]: (one.get("a"), one.get("b")) for one in found.get(part, ())}


def test_two_jobs_show_all_that_differs_and_nothing_that_is_equal(
    capfd: pytest.CaptureFixture[str], jobs: list[str]
) -> None:
    found = read(capfd, jobs[1], f"small/{jobs[2]}")
    assert (found["a"]["revision"], found["b"]["revision"], found["equal_inputs"]) == (1, 2, False)
    assert "parameters" not in found and "data" not in found, "both have lr=2, and no data"
    words = "python3 train.py --lr {lr}"
    assert sides(found, "command") == {"command": (words, f"{words} --more")}
    assert sides(found, "env") == {"SIZE": ("10", "20"), "NEW": (None, "x"), "KEY": ("(secret)", "(secret)")}
    assert sides(found, "lock") == {
        "numpy": ("numpy==2.4.0", "numpy==2.4.1"),
        "new": (None, "new==2"),
        "old": ("old==1", None),
    }
    assert sides(found, "machine").keys() == {"host", "cpu", "variable OMP_NUM_THREADS"}
    steps = {one["name"]: one["difference"] for one in found["metrics"]}
    assert steps == {"loss last": -1.0, "loss best": -0.5}
    assert {one["name"]: one.get("difference") for one in found["usage"]} == {"memory_bytes": 1 << 30}
    assert sides(found, "result")["exit code"] == (0, 1)
    assert sides(found, "outputs") == {"a.pt": ("a" * 64, "b" * 64)}


def test_jobs_that_differ_by_a_parameter_show_it_alone(capfd: pytest.CaptureFixture[str], jobs: list[str]) -> None:
    found = read(capfd, jobs[2], jobs[3])
    assert sides(found, "parameters") == {"lr": (2, 3)} and found.keys().isdisjoint(("code", "env", "lock", "machine"))


def test_two_revisions_show_jobs_space_settings_and_code(capfd: pytest.CaptureFixture[str], jobs: list[str]) -> None:
    found = read(capfd, "small@1", "small")
    assert found["jobs"] == {
        "added": [jobs[3]],
        "removed": [jobs[0]],
        "changed": [{"a": jobs[1], "b": jobs[2]}],
        "same": 0,
    }
    assert sides(found, "space") == {"lr": ([1], [3])} and sides(found, "settings") == {"max_retries": (0, 2)}
    files = {one["path"]: one for one in found["code"]["files"]}
    assert {path: one["status"] for path, one in files.items() if path in ("gone.py", "weights.bin", "tool.sh")} == {
        "gone.py": "removed",
        "weights.bin": "added",
        "tool.sh": "changed",
    }
    assert files["gone.py"]["diff"] == ["@@ -1 +0,0 @@", "-x = 1"]
    assert files["weights.bin"]["reason"] == "binary" and files["weights.bin"]["b"]["size"] == 5_000
    assert (files["tool.sh"]["a"]["kind"], files["tool.sh"]["b"]["kind"]) == ("file", "executable")
    shown = diff(capfd, "small@1", "small@2")
    assert "+ 1 job added" in shown and "~ 1 job changed" in shown and "max_retries 0 → 2" in shown
    assert "weights.bin  added, binary, 4.9 KiB" in shown and "tool.sh  changed, 6 bytes" in shown, shown


@pytest.mark.parametrize("options", [(), ("--json",), ("--all",)])
def test_no_secret_and_nothing_that_a_terminal_obeys_is_shown(
    capfd: pytest.CaptureFixture[str], jobs: list[str], options: tuple[str, ...]
) -> None:
    for pair in ((jobs[1], jobs[2]), ("small@1", "small@2")):
        shown = diff(capfd, *pair, *options)
        assert "opensesame" not in shown and TOKEN not in shown and "it holds a Hugging Face token" in shown
        assert not any(char in shown for char in "\x1b\x07\r")
        if "--json" not in options:
            assert "\x9b" not in shown and "\u202e" not in shown
            assert "+print('hello')␍print(2)  # ␛]0;owned␇␛[31m�31m�" in shown, "lines that differ look so"


def test_equal_inputs_exit_with_0_and_say_so(capfd: pytest.CaptureFixture[str], jobs: list[str]) -> None:
    assert "nothing differs" in diff(capfd, "small", "small@2", code=0)
    assert "Nothing that is recorded differs." in diff(capfd, jobs[2], f"small@2/{jobs[2][:6]}", code=0)
    assert read(capfd, jobs[0], f"small@1/{jobs[0]}", code=0)["equal_inputs"] is True


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (("small@7", "small"), "has no revision 7"),
        (("small", "smal"), "did you mean 'small'"),
        (("small/ffff", "small"), "has no job 'ffff'"),
        (("a/b/c", "small"), "expected a job or a revision, found 'a/b/c'"),
        (("small",), "Missing argument 'B'"),
    ],
)
def test_what_is_not_there_is_named(capfd: pytest.CaptureFixture[str], pair: tuple[str, ...], said: str) -> None:
    assert said in diff(capfd, *pair, code=1)


def test_a_job_beside_a_revision_is_refused(capfd: pytest.CaptureFixture[str], jobs: list[str]) -> None:
    said = diff(capfd, "small", jobs[2], code=1)
    assert f"small is a revision, {jobs[2]} is a job" in said and "SWEEP@3/JOB" in said


def test_code_that_is_gone_or_altered_is_compared_by_hashes(capfd: pytest.CaptureFixture[str], project: Path) -> None:
    sha = read(capfd, "small@1", "small@2")["code"]["a"]
    archive = project / f".monkey/store/code/{sha}.tar.gz"
    data = archive.read_bytes()
    for damage in (archive.unlink, lambda: archive.write_bytes(b"nonsense")):
        damage()
        try:
            shown = diff(capfd, "small@1", "small@2")
        finally:
            archive.unlink(missing_ok=True)
            archive.write_bytes(data)
        assert "compared by hashes alone" in shown and "gone.py  removed" in shown and "+print" not in shown


def test_a_long_difference_is_cut_and_says_how_much(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)

    async def apply_two() -> None:
        async with opened(tmp_path) as world:
            await apply(world)
            (tmp_path / "train.py").write_text("".join(f"line {at}\n" for at in range(5_000)))
            (tmp_path / "wide.json").write_text("x" * 90_000)
            for at in range(150):
                (tmp_path / f"more{at:03d}.py").write_text("x = 1\n" * 20)
            await apply(world)

    asyncio.run(apply_two())
    shown = diff(capfd, "small@1", "small")
    lines = shown.splitlines()
    assert len(lines) < 1_600 and max(map(len, lines)) < 500
    assert (
        "… and 52 more files; --all shows them" in lines and "… 21 more lines of more060.py; --all shows them" in lines
    )
    whole = diff(capfd, "small@1", "small", "--all")
    assert whole.count("\n+line ") == 5_000 and "--all shows" not in whole


def test_values_that_differ_never_look_alike(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path, "name: small\ncommand: 'true'\nparameters: {seconds: [0.1, 0.1000000001], long: [A, B]}\n")
    monkeypatch.chdir(tmp_path)
    spec, words = tmp_path / "specs/small.yaml", "x" * 50
    spec.write_text(spec.read_text().replace("A", f"{words}1").replace("B", f"{words}2"))

    async def apply_once() -> list[str]:
        async with opened(tmp_path) as world:
            return list((await apply(world)).wanted[0].desired.table.ids)

    first, *_, last = asyncio.run(apply_once())
    found = read(capfd, first, last)
    text = "\n".join(format_difference(read_difference(found), Terminal(80), everything=False))
    assert "0.1  0.1000000001" in text and f"- {words}1" in text and f"+ {words}2" in text


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        ("1", 1, '"1"  1'),
        (True, "true", 'true  "true"'),
        (NO_VALUE, "–", '–  "\\u2013"'),
        (NO_VALUE, "", '–  ""'),
        ("a", "a ", 'a  "a "'),
        ("q", "\x1b[31mq", r'q  "\u001b[31mq"'),
        ("ab", "a\u200bb", r'ab  "a\u200bb"'),
        ("é", "e\u0301", r'"\u00e9"  "e\u0301"'),
        ("1", "2", "1  2"),
    ],
)
def test_what_a_terminal_shows_alike_is_quoted(one: Any, other: Any, shown: str) -> None:
    part = PartDifference("parameters", (ValueChange("x", one, other),))
    lines = format_difference(Difference("job", SIDE, SIDE, (part,)), Terminal(None), everything=False)
    assert f"  x  {shown}" in [re.sub(" {2,}", "  ", line) for line in lines]


def test_texts_among_numbers_are_quoted_and_jobs_of_other_parameters_are_not_the_same() -> None:
    part = PartDifference("space", (ValueChange("x", [1, "1", "", "a, b", "a"], NO_VALUE),))
    jobs = JobsDifference((), (), (("a", "b"),), 0, (), ())
    lines = format_difference(Difference("revision", SIDE, SIDE, (part,), jobs=jobs), Terminal(None), everything=False)
    assert '  - x: 1, "1", "", "a, b", a (a parameter of this side alone)' in lines
    assert "  ~ 1 job changed: equal in the parameters that both sides have" in lines


def read_difference(found: dict[str, Any]) -> Difference:
    """Return the difference of parameters that was printed as JSON."""
    changes = tuple(ValueChange(one["name"], one["a"], one["b"]) for one in found["parameters"])
    return Difference("job", found["a"], found["b"], (PartDifference("parameters", changes),))
