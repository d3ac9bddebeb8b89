"""Sweeps on pilots of a real Slurm: asked for here, and from elsewhere by SSH; ended, counted and taken away."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until
from tests.acceptance.slurm_desk import describe, list_files, overlaps, say, sweep
from tests.local_slurm import LocalSlurm
from tests.sshd import Sshd

pytestmark = [pytest.mark.slow, pytest.mark.needs("slurm")]


def test_a_sweep_runs_on_pilots_and_nothing_is_left_of_them(desk: Shop, slurm: LocalSlurm, tmp_path: Path) -> None:
    sweep(desk, jobs=6)
    planned = say(desk, "plan")
    assert "machines 0 → 2" in planned and "the next would start at" in planned
    assert "partition all: 2 nodes" in planned
    say(desk, "apply", "-y")
    assert sum(desk.ledger.begins.values()) == 6 and not overlaps(desk)
    assert say(desk, "audit").strip() == "Nothing is astray."
    looked = say(desk, "doctor")
    assert "cluster: the default partition, 2 CPUs" in looked and "ulumi" not in looked
    say(desk, "destroy", "-y")
    assert slurm.queue() == [] and list_files(tmp_path) == []
    assert "no machines" in say(desk, "list", "instances")


def test_two_that_apply_at_once_ask_for_no_more_pilots_than_one(desk: Shop, slurm: LocalSlurm) -> None:
    sweep(desk, jobs=8)
    desk.ledger.hold()
    both = [desk.start("apply", "-y", "--detach") for _ in range(2)]
    for each in both:
        each.communicate(timeout=120)
    assert len(slurm.queue()) == 2
    shown = say(desk, "list", "instances")
    assert shown.count(" left") == 2, "each with the time that it has"
    desk.ledger.release()
    until(lambda: desk.states() == {"succeeded": 8}, "all end", step=1.0)
    assert not overlaps(desk)


def test_a_forgotten_fleet_is_found_and_taken_away(desk: Shop, slurm: LocalSlurm, tmp_path: Path) -> None:
    sweep(desk, jobs=4)
    desk.ledger.hold()
    say(desk, "apply", "-y", "--detach")
    (desk.root / "monkey.yaml").write_text(f"project: shop\nstore: {tmp_path / 'store'}\n")
    assert "no longer names its provider" in say(desk, "audit", code=1)
    say(desk, "destroy", "-y")
    assert slurm.queue() == []
    until(lambda: not list_files(tmp_path), "pilots that were cancelled clear their scratch")


def test_a_pilot_that_is_cancelled_gives_its_jobs_back_and_does_not_come_again(
    desk: Shop, slurm: LocalSlurm, tmp_path: Path
) -> None:
    describe(desk, tmp_path, pilots=1)
    sweep(desk, jobs=2)
    desk.ledger.hold()
    say(desk, "apply", "-y", "--detach")
    until(lambda: sum(desk.ledger.begins.values()) == 2, "both begin")
    slurm.run("scancel", "-u", "root")
    until(lambda: not slurm.queue(), "it is gone for good")
    assert desk.states() == {"queued": 2}, "no job failed by the signal"
    desk.ledger.release()
    say(desk, "apply", "-y")
    assert desk.states() == {"succeeded": 2} and not overlaps(desk)


def test_a_pilot_that_is_taken_back_is_queued_again(desk: Shop, slurm: LocalSlurm, tmp_path: Path) -> None:
    describe(desk, tmp_path, pilots=1)
    sweep(desk, jobs=1)
    desk.ledger.hold()
    say(desk, "apply", "-y", "--detach")
    until(lambda: desk.ledger.begins, "it begins")
    for pid in (tmp_path / "scratch").glob("*/pids/*"):
        os.kill(int(pid.read_text()), signal.SIGTERM)  # as at the end of its time, and as Slurm does to steps
    until(lambda: "BeginTime" in slurm.run("squeue", "-h", "-o", "%r"), "Slurm has it again", step=0.5)
    assert "it comes again" in say(desk, "list", "instances")
    assert desk.states() == {"queued": 1}


def test_nothing_secret_is_in_what_slurm_keeps(desk: Shop, slurm: LocalSlurm, tmp_path: Path) -> None:
    sweep(desk, jobs=1, more="secrets: [TOKEN]\n")
    desk.env["TOKEN"] = "tell-nobody-of-it"
    desk.ledger.hold()
    say(desk, "apply", "-y", "--detach")
    job = slurm.run("squeue", "-h", "-o", "%i").split()[0].partition("_")[0]
    kept = slurm.run("scontrol", "show", "job", "-d", job) + slurm.run("scontrol", "write", "batch_script", job, "-")
    assert "tell-nobody" not in kept and "#!/bin/bash" in kept
    holders = [
        path for path in (tmp_path / "work").rglob("*") if path.is_file() and b"tell-nobody" in path.read_bytes()
    ]
    assert [path.name for path in holders] == ["secrets"]
    assert stat.S_IMODE(holders[0].stat().st_mode) == 0o600
    desk.ledger.release()
    until(lambda: desk.states() == {"succeeded": 1}, "it ends", step=1.0)


def test_what_slurm_refuses_and_what_would_wait_for_ever_is_told_before(desk: Shop, tmp_path: Path) -> None:
    sweep(desk, jobs=1)
    base = f"store_path: {tmp_path / 'store'}\n    "
    describe(desk, tmp_path, more=f"{base}partition: nowhere")
    assert "sbatch refuses it (invalid partition specified: nowhere" in say(desk, "plan")
    describe(desk, tmp_path, more=f"{base}partition: tiny")
    planned = say(desk, "plan")
    assert "time: 10m is more than MaxTime 00:03:00 of partition tiny" in planned
    assert "MaxTime 00:03:00" in say(desk, "apply", "-y", code=1)
    describe(desk, tmp_path, time="2m", more=f"{base}partition: tiny")
    sweep(desk, jobs=1, more="timeout: 1h\n")
    assert "jobs of up to 1h do not fit pilots of 2m" in say(desk, "plan")


def test_a_directory_of_this_machine_is_no_store_for_nodes(desk: Shop, tmp_path: Path) -> None:
    describe(desk, tmp_path, more="qos: normal")
    sweep(desk, jobs=1)
    assert "cluster's nodes cannot reach the store" in say(desk, "plan", code=1)


@pytest.mark.needs("sshd")
def test_a_sweep_is_asked_for_from_elsewhere_by_ssh(desk: Shop, slurm: LocalSlurm, tmp_path: Path) -> None:
    server = Sshd(tmp_path / "ssh", f"SetEnv SLURM_CONF={slurm.environment['SLURM_CONF']}")
    server.start()
    try:
        del desk.env["SLURM_CONF"]
        desk.env["MONKEY_SSH_CONFIG"] = str(write_client(server))
        describe(desk, tmp_path, more=f"login: there\n    store_path: {tmp_path / 'store'}")
        sweep(desk, jobs=6)
        assert "queued as job" in say(desk, "apply", "-y")
        assert sum(desk.ledger.begins.values()) == 6 and not overlaps(desk)
        say(desk, "destroy", "-y")
        assert slurm.queue() == [] and list_files(tmp_path) == []
    finally:
        server.stop()


def write_client(server: Sshd) -> Path:
    """Write a configuration of a client that finds the server's key, whatever HOME is."""
    path = server.home / "client"
    known = f"  UserKnownHostsFile {server.known_hosts}\n"
    path.write_text((server.home / ".ssh" / "config").read_text() + known)
    return path


def test_waiting_asks_slurm_seldom(desk: Shop, slurm: LocalSlurm, tmp_path: Path) -> None:
    counter = tmp_path / "asked"
    programs = tmp_path / "programs"
    programs.mkdir()
    real = subprocess.run(["which", "squeue"], capture_output=True, text=True, check=True).stdout.strip()
    (programs / "squeue").write_text(f'#!/bin/sh\necho x >> {counter}\nexec {real} "$@"\n')
    (programs / "squeue").chmod(0o755)
    desk.env["PATH"] = f"{programs}:{desk.env['PATH']}"
    sweep(desk, jobs=2)
    desk.ledger.hold()
    began = time.monotonic()
    applying = desk.start("apply", "-y")
    until(lambda: sum(desk.ledger.begins.values()) == 2, "both begin")
    asked = len(counter.read_text().split())
    until(lambda: time.monotonic() - began > 15, "somebody waits for a while")
    assert len(counter.read_text().split()) <= asked + 1
    desk.ledger.release()
    applying.communicate(timeout=120)
    assert desk.states() == {"succeeded": 2}
