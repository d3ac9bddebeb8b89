"""What a hostile machine, a hostile job or bad luck can do: always a clear word, nothing hanging, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.shop import MONKEY, PROMPT, Shop, until

NOBODY = 65534


def one_job(shop: Shop, *command: str, more: str = "") -> None:
    """Write a spec of a single job."""
    shop.spec(f"command: {json.dumps(list(command))}\nparameters: {{}}\noutputs: []\n{more}")


def test_command_not_found_is_the_job_s_reason(shop: Shop) -> None:
    one_job(shop, "no-such-program", "--lr", "1")
    done = shop.run("apply", code=1)
    assert "1 job failed" in done.stdout and "no-such-program" in done.stdout


def test_job_that_ignores_term_is_killed_after_its_grace(shop: Shop) -> None:
    script = "trap '' TERM INT HUP; echo ready; while :; do sleep 0.1; done"
    one_job(shop, "sh", "-c", script, more="grace: 1s\ntimeout: 1s\n")
    began = time.monotonic()
    done = shop.run("apply", code=1)
    assert time.monotonic() - began < PROMPT
    assert "timed out" in done.stdout
    until(lambda: not shop.processes("echo ready"), "it is gone")


def test_child_that_daemonises_is_cleaned_up(shop: Shop) -> None:
    one_job(shop, "sh", "-c", "setsid sleep 987 </dev/null >/dev/null 2>&1 & echo started")
    shop.run("apply")
    until(lambda: not shop.processes("sleep 987"), "what the job left behind is gone")


@pytest.mark.slow
def test_gigabyte_of_output_harms_nobody(shop: Shop) -> None:
    one_job(shop, "sh", "-c", "head -c 200000000 /dev/zero | tr '\\0' 'x'; echo end")
    shop.run("apply", patience=300)
    (job,) = shop.json("list", "jobs")
    follow = shop.start("logs", job["job"], text=False)
    out, _ = follow.communicate(timeout=120)
    assert out.endswith(b"end\n")


def test_binary_output_is_kept_and_shown_harmlessly(shop: Shop) -> None:
    one_job(shop, "sh", "-c", r"printf '\377\376\000\033]0;title\007bad'; exit 1")
    done = shop.run("apply", code=1)
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout and "bad" in done.stdout


@pytest.mark.slow
def test_store_of_a_newer_layout_is_left_alone(shop: Shop) -> None:
    shop.spec(jobs=1)
    shop.run("apply")
    shop.kill_all()  # its agent's heartbeats come and go, and are no part of this
    store = shop.root / ".monkey" / "store"
    path = store / "format"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    before = sorted(store.rglob("*"))
    for verb in (["apply"], ["plan"], ["status"], ["results"], ["logs", "sweep"], ["cancel", "sweep"]):
        done = shop.run(*verb, code=1)
        assert "layout 99" in done.stderr and "`git pull` in its clone" in done.stderr
    assert sorted(store.rglob("*")) == before


@pytest.mark.slow
def test_entry_cut_short_is_reported_by_its_key(shop: Shop) -> None:
    shop.hurry()
    shop.spec(jobs=2, seconds=0)
    shop.run("apply")
    until(lambda: not shop.agents, "the agent leaves")
    entry = sorted(shop.root.glob(".monkey/store/projects/shop/sweeps/sweep/*"))[-1]
    torn = entry.with_name("00000002")
    torn.write_bytes(entry.read_bytes()[:40])
    for verb in ("status", "plan"):
        assert "sweeps/sweep/00000002: skipped" in shop.run(verb).stdout
    assert "sweeps/sweep/00000002: skipped" in shop.run("doctor", code=None).stdout
    shop.spec(jobs=3, seconds=0)
    shop.run("apply")
    assert json.loads(entry.with_name("00000003").read_text())["kind"] == "revision" and shop.ledger.executions == 3


@pytest.mark.slow
def test_unwritable_places_are_named(make_shop: Callable[..., Shop], require: Callable[[str], str]) -> None:
    require("unprivileged")
    shop = make_shop("nobody", user=NOBODY if os.geteuid() == 0 else None)
    shop.spec(jobs=1)
    shop.root.chmod(0o555)
    if shop.user is not None:
        subprocess.run(["chown", "0", str(shop.root)], check=True)
    done = shop.run("apply", code=1)
    assert "permission denied" in done.stderr.lower() and str(shop.root) in done.stderr
    assert shop.run("plan").stdout.startswith("sweep")
    assert "Permission denied" in shop.run("init", "new", code=1).stderr
    shop.root.chmod(0o777)
    Path(shop.state).mkdir()
    Path(shop.state).chmod(0o555)
    done = shop.run("apply", code=1)
    assert "XDG_STATE_HOME" in done.stderr
    Path(shop.state).chmod(0o777)
    shop.run("apply")
    assert shop.ledger.executions == 1


def test_no_home_at_all(make_shop: Callable[..., Shop], require: Callable[[str], str]) -> None:
    """As an account that exists nowhere, in an environment that says nothing."""
    require("unprivileged")
    shop = make_shop("homeless", user=54321 if os.geteuid() == 0 else None)
    for name in ("HOME", "XDG_CACHE_HOME", "LANG"):
        shop.env.pop(name, None)
    shop.spec(jobs=2)
    try:
        shop.run("apply")
    finally:
        shop.kill_all()
        shutil.rmtree(f"/tmp/monkey-{shop.user}", ignore_errors=True)
    assert shop.ledger.executions == 2


@pytest.mark.parametrize("owner", ["another", "own"])
def test_without_a_home_a_place_in_tmp_that_others_can_change_is_refused(
    make_shop: Callable[..., Shop], require: Callable[[str], str], owner: str
) -> None:
    """Code in that place would run as this account."""
    require("unprivileged")
    # The other case runs at the same time, and the place is named after the account.
    user = {"another": 54330, "own": 54340}[owner] if os.geteuid() == 0 else None
    if owner == "another" and user is None:
        pytest.skip("only root can make a directory that is another's")
    shop = make_shop("claimed", user=user)
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        shop.env.pop(name, None)
    shop.spec(jobs=1)
    place = Path(f"/tmp/monkey-{user or os.getuid()}")
    assert not place.exists()
    place.mkdir()
    try:
        if user is not None:
            os.chown(place, user + (owner == "another"), -1)
        place.chmod(0o777 if owner == "own" else 0o755)
        said = shop.run("apply", code=1).stderr
        assert f"expected {place} to be a directory of this account" in said and "XDG_CACHE_HOME" in said
        assert not list(place.iterdir())
    finally:
        shop.kill_all()
        shutil.rmtree(place, ignore_errors=True)
    assert shop.ledger.executions == 0


def test_the_cache_is_its_users_alone(shop: Shop) -> None:
    shop.spec(jobs=1)
    cache = Path(shop.env["XDG_CACHE_HOME"]) / "monkey"
    cache.mkdir(parents=True, exist_ok=True)
    cache.chmod(0o755)
    shop.run("apply")
    assert list((cache / "code").iterdir()) and cache.stat().st_mode & 0o777 == 0o700


def mounting(shop: Shop, script: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script that may mount what it likes: nobody else sees it."""
    return subprocess.run(
        ["unshare", "--mount", "--map-root-user", "bash", "-c", script],
        cwd=shop.root,
        env={**shop.env, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.slow
def test_full_disk_is_said_and_nothing_is_lost(
    make_shop: Callable[..., Shop], require: Callable[[str], str], tmp_path: Path
) -> None:
    """In a mount namespace of its own: a store on a disk of 4 MB, filled, then freed."""
    require("mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    shop = make_shop("full")
    (shop.root / "monkey.yaml").write_text(f"project: shop\nstore: {disk}/store\n")
    shop.spec(jobs=4)
    monkey = " ".join(MONKEY)
    script = f"""
    mount -t tmpfs -o size=4m none {disk} || exit 99
    {monkey} plan >/dev/null || exit 1
    head -c 5000000 /dev/zero > {disk}/ballast 2>/dev/null
    mkdir -p {disk}/store
    {monkey} apply && exit 2
    rm {disk}/ballast
    {monkey} apply || exit 3
    {monkey} results --json
    """
    done = mounting(shop, script)
    assert done.returncode == 0, done.stdout + done.stderr + shop.agent_log
    assert "no space left" in done.stderr.lower()
    assert "Traceback" not in done.stderr
    assert shop.ledger.executions == 4 and not shop.ledger.overlaps


@pytest.mark.slow
def test_a_machine_with_a_full_disk_leaves_jobs_alone(
    make_shop: Callable[..., Shop], require: Callable[[str], str], tmp_path: Path
) -> None:
    """The agent's disk is filled, in a mount namespace of its own: none of what is queued fails there for it."""
    require("mount")
    disk = tmp_path / "disk"
    disk.mkdir()
    shop = make_shop("crowded")
    shop.spec("max_retries: 0\n", jobs=6, seconds=0.5)
    monkey = " ".join(MONKEY)
    script = f"""
    mount -t tmpfs -o size=40m none {disk} || exit 99
    {monkey} plan > /dev/null
    head -c 50000000 /dev/zero > {disk}/ballast 2> /dev/null
    {monkey} apply --detach --yes || exit 1
    until {monkey} status | grep 'disk is full'; do sleep 0.1; done
    {monkey} status --json
    rm {disk}/ballast
    {monkey} apply --yes || exit 2
    """
    done = mounting(shop, script, XDG_CACHE_HOME=str(disk / "cache"))
    assert done.returncode == 0, done.stdout + done.stderr + shop.agent_log
    assert f"0 bytes free at {disk}/cache" in done.stdout
    assert shop.ledger.executions == 6 and not shop.ledger.overlaps


def test_project_s_own_modules_do_not_become_part_of_monkey(shop: Shop) -> None:
    for name in ("json.py", "random.py", "monkey.py", "asyncio.py"):
        (shop.root / name).write_text("raise SystemExit('imported the wrong one')\n")
    shop.spec("command: ['true']\nparameters: {}\noutputs: []\n")
    script = Path(sys.executable).parent / "monkey"
    done = subprocess.run([script, "apply"], cwd=shop.root, env=shop.env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr + shop.agent_log
