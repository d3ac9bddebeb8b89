"""The engine on the real Pulumi, with papers for machines and a ledger as evidence."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey_stacks.engine.engine_outcome import ChangeStage, EngineOutcome, ResourceOp
from monkey_stacks.engine.pulumi_engine import PulumiEngine
from monkey_stacks.engine.state_bucket import _KEPT
from tests import services, sshd
from tests.acceptance.shop import until
from tests.stacks.desk import FLEET, HELD, PROJECT, Desk, Sheet, leftovers, ops

pytestmark = pytest.mark.slow

SECRET = "hunter2-never-in-the-state"


def test_life_of_papers(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPER_SECRET", SECRET)
    a, b = Sheet("a", "first"), Sheet("b", "second")
    assert ops(desk.preview(a, b)) == {"a": "create", "b": "create"}
    assert not desk.stored(), "a preview wrote into the store"
    assert ops(desk.up(a, b)) == {"a": "create", "b": "create"}
    assert desk.written == {"a": "first", "b": "second"}

    # What somebody has set for Pulumi stacks of their own.
    for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_BACKEND_URL", "PULUMI_STACK", "PULUMI_DIY_BACKEND_GZIP"):
        monkeypatch.setenv(name, "1")
    assert ops(desk.up(a, b)) == {"a": "same", "b": "same"}
    assert not desk.preview(a, b).changed

    a, b, c = Sheet("a", "other"), Sheet("b", "second", file="elsewhere"), Sheet("c", "third")
    age(desk)
    before = desk.stored()
    assert ops(desk.preview(a, b, c)) == {"a": "update text", "b": "replace path", "c": "create"}
    assert desk.stored() == before, "a preview wrote into the store"
    desk.seen.clear()
    assert ops(desk.up(a, b, c)) == {"a": "update text", "b": "replace path", "c": "create"}
    assert desk.written == {"a": "other", "elsewhere": "second", "c": "third"}
    kept = [key for key in desk.stored() if "/history/" in key or "/backups/" in key]
    assert len(kept) == 3 * _KEPT, "history and backups grow for ever"
    steps = {(each.change.name, each.stage) for each in desk.seen}
    assert steps == {(name, stage) for name in "abc" for stage in (ChangeStage.BEGAN, ChangeStage.DONE)}

    found = desk.run(lambda engine: engine.resources())
    assert {(each.name, Path(each.id).name, each.interrupted) for each in found} == {
        ("a", "a", False),
        ("b", "elsewhere", False),
        ("c", "c", False),
    }
    assert ops(desk.up(a)) == {"a": "same", "b": "delete", "c": "delete"}
    assert ops(desk.destroy()) == {"a": "delete"}
    assert desk.written == {}
    assert desk.done == {f"create {name}": 1 for name in ("a", "b", "elsewhere", "c")} | {"update a": 1} | {
        f"delete {name}": 1 for name in ("a", "b", "elsewhere", "c")
    }
    assert {key.partition("/")[0] for key in desk.stored()} == {"lock"}, "destroy left something of the state"
    assert not any(SECRET.encode() in data for data in before.values())


def test_what_fails_keeps_nothing_else_from_being_made(desk: Desk) -> None:
    outcome = desk.up(Sheet("a", "first"), Sheet("b", "refuse"), Sheet("c", "third"))
    [failure] = outcome.failures
    assert (failure.name, failure.message) == ("b", f"{desk.papers / 'b'} is not to be written")
    assert desk.written == {"a": "first", "c": "third"}
    with pytest.raises(FleetError, match=r"(?s)1 of 3 could not be changed:.*b: .*is not to be written"):
        outcome.check()
    assert ops(desk.up(Sheet("a", "first"), Sheet("b", "mended"), Sheet("c", "third"))) == {
        "a": "same",
        "b": "create",
        "c": "same",
    }


def test_what_a_replacement_could_not_take_away_goes_first_the_next_time(desk: Desk) -> None:
    desk.up(Sheet("a", "first"))
    stuck = desk.papers / "a.stuck"
    stuck.touch()
    [failure] = desk.up(Sheet("a", "first", file="b")).failures
    assert failure.message == f"{desk.papers / 'a'} sticks"
    assert desk.written == {"a": "first", "b": "first", "a.stuck": ""}
    stuck.unlink()
    # Back to where the old one still lies: were that deleted last, as the engine does, nothing would be left.
    desk.up(Sheet("a", "first")).check()
    assert desk.written == {"a": "first"}
    [known] = desk.run(lambda engine: engine.resources())
    assert (Path(known.id).name, known.interrupted) == ("a", False)


def test_what_a_program_raises_comes_back_as_it_is(desk: Desk) -> None:
    def program() -> None:
        raise FleetError("the program's own", hint="as it says")

    with pytest.raises(FleetError) as raised:
        desk.run(lambda engine: engine.preview(program))
    assert (raised.value.message, raised.value.hint) == ("the program's own", "as it says")


def test_who_runs_pulumi_by_hand_on_the_state_is_not_run_over(desk: Desk) -> None:
    desk.up(Sheet("a", "first"))
    locks = Path(desk.url, f"projects/{PROJECT}/machines/{FLEET}/state/.pulumi/locks/organization/{PROJECT}/{FLEET}")
    locks.mkdir(parents=True)
    theirs = {"pid": 1, "username": "alice", "hostname": "laptop", "timestamp": "2026-01-01T00:00:00Z"}
    (locks / "1.json").write_text(json.dumps(theirs))
    with pytest.raises(FleetError, match=r"Pulumi itself is at work on this state.*locked by 1 lock"):
        desk.up(Sheet("a", "second"))
    assert desk.written == {"a": "first"}


def test_without_the_plugin_that_runs_providers_the_error_says_where_it_is_from(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = desk.base / "bin"
    alone.mkdir()
    # No symbolic link: it would follow that to where the plugin is.
    shutil.copy(str(shutil.which("pulumi")), alone / "pulumi")
    monkeypatch.setenv("PATH", f"{alone}:/usr/bin:/bin")
    with pytest.raises(FleetError, match=r"a plugin of Pulumi's is missing") as raised:
        desk.up(Sheet("a", "first"))
    assert "https://www.pulumi.com/docs/install/" in (raised.value.hint or "")
    (alone / "pulumi").unlink()  # it is large


def test_drift_is_seen_by_who_asks_and_mended(desk: Desk) -> None:
    wanted = desk.program(Sheet("a", "first"), Sheet("b", "second"))

    async def looked(engine: PulumiEngine) -> list[EngineOutcome]:
        plain = await engine.preview(wanted)
        asked = await engine.preview(wanted, refresh=True)
        return [plain, asked, await engine.up(wanted, refresh=True)]

    async def refreshed(engine: PulumiEngine) -> tuple[EngineOutcome, EngineOutcome]:
        async with engine.hold() as session:
            return await session.refresh(), await session.up(wanted)

    desk.run(lambda engine: engine.up(wanted))
    drift(desk)
    plain, asked, mended = desk.run(looked)
    assert ops(plain) == {"a": "same", "b": "same"}
    assert ops(asked) == ops(mended) == {"a": "create", "b": "update text"}
    assert desk.written == {"a": "first", "b": "second"}

    drift(desk)
    found, mended = desk.run(refreshed)
    assert {change.name: change.op for change in found.changed} == {"a": ResourceOp.DELETE, "b": ResourceOp.UPDATE}
    assert ops(mended) == {"a": "create", "b": "update text"}
    assert desk.written == {"a": "first", "b": "second"}


def drift(desk: Desk) -> None:
    (desk.papers / "a").unlink()
    (desk.papers / "b").write_text("scribbled over")


@pytest.mark.parametrize("where", ["here", "on another machine"])
def test_two_at_once_take_turns_and_the_second_counts_again(desk: Desk, where: str) -> None:
    asyncio.run(_begin(desk))
    one = desk.start(Sheet("a", "one", seconds=HELD), Sheet("b", "one"))
    until(lambda: desk.done["create a"], "the first is at work")
    elsewhere = {} if where == "here" else {"XDG_STATE_HOME": str(desk.base / "machine2")}
    two = desk.start(Sheet("b", "two"), Sheet("c", "two"), **elsewhere)
    until(lambda: "waiting for " in desk.said, "the second says that it waits")
    assert ("another process on this machine" in desk.said) == (where == "here")
    assert "create c" not in desk.done
    desk.let_go()
    assert _result(one) == {"a": "create", "b": "create"}
    assert _result(two) == {"a": "delete", "b": "update text", "c": "create"}
    assert desk.written == {"b": "two", "c": "two"}


def test_two_fleets_that_are_changed_at_once_do_not_meet(desk: Desk) -> None:
    async def both(engine: PulumiEngine) -> tuple[EngineOutcome, EngineOutcome]:
        other = replace(engine, fleet="other")
        one, two = Sheet("a", "one", seconds=1.0), Sheet("b", "two", seconds=1.0)
        first, second = await asyncio.gather(engine.up(desk.program(one)), other.up(desk.program(two)))
        await other.destroy()
        return first, second

    first, second = desk.run(both)
    assert (ops(first), ops(second)) == ({"a": "create"}, {"b": "create"})
    assert desk.written == {"a": "one"}


def test_interrupted_in_order_it_finishes_the_step_and_knows_of_it(desk: Desk) -> None:
    async def interrupted(engine: PulumiEngine) -> None:
        task = asyncio.ensure_future(engine.up(desk.program(Sheet("a", "whole", seconds=HELD))))
        while not desk.done["create a"]:  # noqa: ASYNC110 - what is waited for is another process's file
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.sleep(0)
        desk.let_go()
        with pytest.raises(asyncio.CancelledError):
            await task
        [known] = await engine.resources()
        assert known.name == "a"

    desk.run(interrupted)
    assert not leftovers(desk.base)
    desk.destroy()
    assert desk.written == {}


@pytest.mark.parametrize("kind", ["s3", "ssh"])
def test_state_is_in_the_store_wherever_that_is(
    pulumi: None, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    desk = Desk(tmp_path, _url(kind, request, tmp_path))
    a, b = Sheet("a", "first"), Sheet("b", "second")
    assert ops(desk.up(a)) == {"a": "create"}
    state = json.loads(desk.stored()["state/.pulumi/stacks/shop/lab.json"])
    assert "a" in [each["urn"].rpartition("::")[2] for each in state["checkpoint"]["latest"]["resources"]]
    assert ops(desk.preview(a, b)) == {"a": "same", "b": "create"}
    assert ops(desk.destroy()) == {"a": "delete"}
    assert desk.written == {}
    assert {key.partition("/")[0] for key in desk.stored()} == {"lock"}


def age(desk: Desk) -> None:
    """Let the stack have a long past."""
    state = Path(desk.url, f"projects/{PROJECT}/machines/{FLEET}/state/.pulumi")
    for n in range(_KEPT):
        for name in (
            f"history/shop/lab/lab-170000000000000000{n}.history.json",
            f"history/shop/lab/lab-170000000000000000{n}.checkpoint.json",
            f"backups/shop/lab/lab.170000000000000000{n}.json",
        ):
            (state / name).write_text("{}")


def _url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if kind == "s3":
        return f"s3://{services.BUCKET}/{tmp_path.name}?endpoint={request.getfixturevalue('moto')}&region=us-east-1"
    host: sshd.Sshd = request.getfixturevalue("ssh_host")
    return f"ssh://there{tmp_path / 'store'}" if host.port else ""


async def _begin(desk: Desk) -> None:
    from monkey.store.open import open_store

    await (await open_store(desk.url, begin=True)).close()


def _result(process: subprocess.Popen[str]) -> dict[str, str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    found: dict[str, str] = json.loads(out.splitlines()[-1])
    return found
