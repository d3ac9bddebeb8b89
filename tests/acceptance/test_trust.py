"""Two people in one store: agents obey their own user, and those that this user trusts."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.acceptance.shop import Shop, until


def make_users(make_shop: Callable[..., Shop], store: Path) -> tuple[Shop, Shop]:
    """Return the checkouts of two people who share a store."""
    users = make_shop("alice"), make_shop("bob")
    for user in users:
        (user.root / "monkey.yaml").write_text(f"project: shop\nstore: {store}\n")
    return users


def leave_work(user: Shop, text: str = "") -> None:
    """Apply two jobs of the user's, and send the agent away while it holds the first: both are left to run."""
    user.ledger.hold()
    user.spec(f"grace: 1s\n{text}", jobs=2, name=user.root.parent.name)
    user.run("apply", "--detach")
    until(lambda: user.ledger.executions, "a job has begun")
    for agent in user.agents:
        os.kill(agent, signal.SIGTERM)
    until(lambda: not user.agents, "the agent has released its jobs")
    user.ledger.release()


def test_work_of_somebody_else_runs_here_once_their_key_is_trusted(
    make_shop: Callable[..., Shop], tmp_path: Path
) -> None:
    alice, bob = make_users(make_shop, tmp_path / "store")
    alice.spec(name="hers", jobs=2)
    alice.run("apply")
    leave_work(bob)
    began = bob.ledger.executions
    alice.spec(name="more", jobs=2, seconds=0.1)
    alice.run("apply")
    assert alice.ledger.executions == 4 and bob.ledger.executions == began, "his work did not run on her machine"
    said = alice.run("status").stdout
    assert "sweeps/bob/00000001: skipped" in said
    assert alice.json("list", "jobs", "bob") and alice.run("results", "bob"), "she may read what she does not run"
    assert "there is no sweep 'bob'" in alice.run("pause", "bob", code=1).stderr
    offered = re.search(r"`(monkey trust \'ssh-ed25519 [^`]*)`", said)
    assert offered, said
    words = shlex.split(offered[1].replace("NAME", "bob"))
    assert "trusted from now on: bob SHA256:" in alice.run(*words[1:]).stdout
    assert {one["name"] for one in alice.json("status")["sweeps"]} >= {"bob", "hers", "more"}
    alice.spec(name="again", jobs=1, seconds=0.2)
    alice.run("apply", "--detach")
    until(lambda: alice.states("bob") == {"succeeded": 2}, "her machine runs his work")
    alice.run("trust", "--remove", "bob")
    assert "sweeps/bob/00000001: skipped" in alice.run("status").stdout


def test_who_trusts_nobody_yet_replaces_no_newer_commit(make_shop: Callable[..., Shop], tmp_path: Path) -> None:
    """As a CI runner with a new key does that comes late."""
    alice, bob = make_users(make_shop, tmp_path / "store")
    git = ["git", "-C", str(alice.root), "-c", "user.name=a", "-c", "user.email=a@b"]
    (alice.root / ".gitignore").write_text(".monkey/\n")
    subprocess.run([*git, "init", "-q"], check=True)
    for commit, jobs in (("one", 1), ("two", 2)):
        alice.spec(jobs=jobs)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", commit], check=True)
        alice.run("apply")
    shutil.rmtree(bob.root)
    subprocess.run(["git", "clone", "-q", str(alice.root), str(bob.root)], check=True)
    said = bob.run("plan").stdout
    assert "no signer whom you trust applied revision 2: apply signs a new one, which runs here" in said, said
    subprocess.run(["git", "-C", str(bob.root), "reset", "-q", "--hard", "HEAD~1"], check=True)
    assert "which is newer than this one" in bob.run("apply", code=1).stderr
    subprocess.run(["git", "-C", str(bob.root), "pull", "-q"], check=True)
    assert "sweep: revision 3 appended" in bob.run("apply").stdout
    assert "nothing to do" in bob.run("apply").stdout and alice.ledger.executions == 2


def test_secrets_are_named_by_their_owner(make_shop: Callable[..., Shop], tmp_path: Path) -> None:
    alice, bob = make_users(make_shop, tmp_path / "store")
    for user in (alice, bob):
        user.env["TOKEN"] = f"of-{user.root.parent.name}"
    alice.run("trust", json.loads(bob.run("trust", "--json").stdout)["own"]["key"], "--name", "bob")
    leave_work(bob, "secrets: [TOKEN]\n")
    began = bob.ledger.executions
    alice.spec("secrets: [TOKEN]\n", name="hers", jobs=2)
    alice.run("apply")
    assert alice.ledger.executions == 2 and bob.ledger.executions == began, "her own may name any"
    alice.spec(name="slow", jobs=1, seconds=600)
    alice.run("apply", "--detach")
    trouble = "bob: its signer bob may not name secrets of this machine (TOKEN)"
    until(lambda: trouble in alice.run("status").stdout, "her agent says why it leaves his work alone")
    assert bob.ledger.executions == began
    assert "TOKEN" in alice.run("trust", "--secret", "TOKEN").stdout
    until(lambda: alice.states("bob") == {"succeeded": 2}, "the agent that runs hears of it")


def test_entries_that_were_copied_changed_or_not_signed_stop_nothing(
    make_shop: Callable[..., Shop], tmp_path: Path
) -> None:
    alice, bob = make_users(make_shop, tmp_path / "store")
    alice.spec(name="one", jobs=1)
    alice.run("apply")
    alice.spec(name="one", jobs=2, seconds=600)
    alice.run("apply", "--detach")
    for verb in ("pause", "resume", "cancel", "resume"):
        alice.run(verb, "one")
    log = tmp_path / "store/projects/shop/sweeps/one"
    names = sorted(path.name for path in log.iterdir())
    orders = {json.loads((log / name).read_bytes())["kind"]: name for name in names}
    said = (log / orders["cancel"]).read_bytes()
    bob.run("trust")
    forged = [said, said.replace(b"cancel", b"pause"), b'{"kind":"pause"}', json.dumps(json.loads(said)).encode()]
    for at, data in enumerate(forged, len(names) + 1):
        (log / f"{at:08d}").write_bytes(data)
    (tmp_path / "store/projects/shop/sweeps/two").mkdir()
    shutil.copy(log / names[0], tmp_path / "store/projects/shop/sweeps/two/00000001")
    until(lambda: "one" in alice.run("status").stdout and alice.jobs, "its jobs run on")
    status = alice.json("status")
    (one,) = [sweep for sweep in status["sweeps"] if sweep["name"] == "one"]
    assert one["states"].get("cancelled", 0) == one["states"].get("paused", 0) == 0
    told = alice.run("status").stdout
    assert "sweeps/two/00000001: skipped" in told
    assert all(f"sweeps/one/{at:08d}: skipped" in told for at in range(len(names) + 1, len(names) + 4))
    assert "1 more are skipped" in told
