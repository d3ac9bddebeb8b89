"""Jobs with an image where no runtime works: they stay queued, and people are told why."""

from __future__ import annotations

import os
from pathlib import Path

from tests.acceptance.shop import Shop, until

SPEC = """\
command: ["sh", "-c", "echo it ran; echo {i} >> $MONKEY_OUTPUT_DIR/x"]
environment: {image: "localhost:1/lab/tools@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"}
parameters: {i: {range: [0, 3]}}
"""
#: A runtime whose containers are this machine itself; podman's words up to the command are its own.
RUNTIME = """\
#!/bin/sh
case $1 in
run) while [ "${1#--entrypoint}" = "$1" ]; do shift; done; shift 2; exec /bin/sh "$@";;
image) echo 1;;
esac
"""


def hide_runtimes(shop: Shop, directory: Path) -> None:
    """Leave the shop's machine without any runtime."""
    directory.mkdir()
    hidden = {"podman", "docker", "apptainer", "singularity", "ch-run"}
    for place in ("/usr/local/bin", "/usr/bin", "/bin"):
        for program in Path(place).iterdir():
            if program.name not in hidden and not os.path.lexists(directory / program.name):
                (directory / program.name).symlink_to(program)
    shop.env["PATH"] = f"{shop.env['PATH'].partition(':')[0]}:{directory}"


def count_entries(shop: Shop, store: Path) -> list[int]:
    """Return the entries in the log of each job of the sweep, as the store has them."""
    logs = [store / "projects/shop/jobs" / job["job"] for job in shop.json("list", "jobs", "sweep")]
    return [len([path for path in log.glob("*") if path.name.isdigit()]) for log in logs]


def test_jobs_whose_image_cannot_be_run_here_stay_queued_and_no_attempt_is_made(
    shop: Shop, store: Path, tmp_path: Path
) -> None:
    hide_runtimes(shop, tmp_path / "programs")
    shop.spec(SPEC)
    shop.spec("", jobs=2, name="plain")
    said = shop.run("apply", code=1)
    why = "its image cannot be run: this machine has none of apptainer, singularity, podman"
    assert f"nothing can go on: sweep: {why}" in said.stderr + said.stdout
    assert shop.states("plain") == {"succeeded": 2}, "others are not held up"
    assert shop.states() == {"queued": 3}
    assert count_entries(shop, store) == [0, 0, 0], "no claim was appended"
    until(lambda: not any(agent["alive"] for agent in shop.json("status")["agents"]), "the agent left", step=0.5)
    told = shop.run("status").stdout
    assert f"left: sweep: {why}" in told and "(hint: install one of them)" in told, told
    (tmp_path / "programs" / "podman").write_text(RUNTIME)
    (tmp_path / "programs" / "podman").chmod(0o755)
    shop.run("apply")
    assert shop.states() == {"succeeded": 3}
    assert count_entries(shop, store) == [2, 2, 2], "a claim and an end"
    assert "cannot be run" not in shop.run("status").stdout


def test_jobs_that_a_broken_runtime_cannot_start_stay_queued_and_none_fails(
    shop: Shop, store: Path, tmp_path: Path
) -> None:
    hide_runtimes(shop, tmp_path / "programs")
    podman = tmp_path / "programs" / "podman"
    podman.write_text(RUNTIME.replace("run) ", "run) echo 'Error: no control groups here' >&2; exit 125; "))
    podman.chmod(0o755)
    shop.spec(SPEC)
    shop.run("apply", "--detach")
    why = "its image cannot be run: podman could not start the container (exit code 125): Error: no control groups here"
    until(lambda: f"sweep: {why}" in shop.run("status").stdout, "people are told", step=0.5)
    shop.spec("", jobs=2, name="plain")
    shop.run("apply", "--detach")
    until(lambda: shop.states("plain") == {"succeeded": 2}, "others are not held up", step=0.5)
    assert sum(count_entries(shop, store)) >= 2, "a claim, and a release"
    assert "failed" not in shop.states()
    shop.kill_all()
    podman.write_text(RUNTIME)
    shop.run("apply")
    assert shop.states() == {"succeeded": 3}
    assert "cannot be run" not in shop.run("status").stdout
