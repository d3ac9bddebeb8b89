"""What a machine makes ready for its jobs, by the real agent: datasets and secrets."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.shop import Shop, until
from tests.trusting import trust

pytestmark = pytest.mark.slow

SECRET = "hunter2-is-no-passw0rd"
#: What agents use, and jobs do not get: where metrics are sent, and nobody listens.
ELSEWHERE = "influx-4c1d9c5b7e2a"
NOWHERE = "metrics: {influxdb: {url: http://127.0.0.1:1, bucket: b, token: INFLUX_TOKEN}}\n"


def holders(value: str, *roots: Path) -> list[Path]:
    """Return the files that hold a text."""
    files = [path for root in roots for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if value.encode() in path.read_bytes()]


def command_line(pid: int) -> bytes:
    """Return a process's command line, b"" if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_secret_reaches_its_jobs_and_nothing_else(shop: Shop, tmp_path: Path) -> None:
    shop.hurry()
    shop.env["TOKEN"] = SECRET
    shop.env["INFLUX_TOKEN"] = ELSEWHERE
    trust("http://127.0.0.1:1", env=shop.env)
    (shop.root / "monkey.yaml").write_text(f"project: shop\n{NOWHERE}")
    go = tmp_path / "go"
    tell = 'echo token=$TOKEN influx=$INFLUX_TOKEN; printf %s "$TOKEN" | wc -c; exit 1'
    show = f"while ! [ -e {go} ]; do sleep 0.05; done; {tell}"
    shop.spec(f"command: [sh, -c, '{show}', sh, '{{i}}']\nsecrets: [TOKEN]\n", jobs=1, name="asks")
    shop.spec(f"command: [sh, -c, '{show}; echo', sh, '{{i}}']\n", jobs=1, name="other")
    saved = shop.root / "plan.json"
    planned = shop.run("plan", "-o", str(saved))
    applying = shop.start("apply", str(saved))
    until(lambda: len(shop.processes("sh -c while")) == 2, "both jobs run")
    lines = [command_line(int(process.name)) for process in Path("/proc").glob("[0-9]*")]
    assert any(b"monkey_agent.command_line" in line for line in lines)
    assert not any(SECRET.encode() in line or ELSEWHERE.encode() in line for line in lines)
    assert not holders(SECRET, shop.root.parent) and not holders(ELSEWHERE, shop.root.parent)
    go.touch()
    out, err = applying.communicate(timeout=120)
    told = shop.run("logs", "asks").stdout
    assert told.split() == ["token=***", "influx=", str(len(SECRET))]
    assert "token= influx=\n0\n" in shop.run("logs", "other").stdout
    info = shop.run("info", "asks").stdout
    until(lambda: not shop.agents, "the agent has left")
    said = planned.stdout + out + err + info + shop.agent_log + saved.read_text()
    assert SECRET not in said and ELSEWHERE not in said
    assert not holders(SECRET, shop.root.parent) and not holders(ELSEWHERE, shop.root.parent)
    # The test would see it.
    (shop.root / "here").write_text(SECRET)
    assert holders(SECRET, shop.root)


#: Writes the command line and the variables of the processes that a job comes from, as far as it may read them.
SNOOP = """\
import json, os
pid, found = os.getppid(), []
while pid > 1:
    line, env = open(f"/proc/{pid}/cmdline").read(), None
    try:
        env = open(f"/proc/{pid}/environ", errors="replace").read()
    except OSError as exc:
        env = f"errno {exc.errno}"
    found.append([line, env])
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
open("found.json", "w").write(json.dumps(found))
"""


def test_a_job_cannot_read_the_variables_of_agent_and_supervisor(
    make_shop: Callable[..., Shop], require: Callable[[str], str]
) -> None:
    require("unprivileged")
    shop = make_shop("snoop", user=54324 if os.geteuid() == 0 else None)
    shop.env["TOKEN"] = SECRET
    (shop.root / "snoop.py").write_text(SNOOP)
    shop.spec("command: [python3, snoop.py, '{i}']\noutputs: [found.json]\n", jobs=1, name="other")
    shop.spec(
        "command: [sh, -c, 'test -n \"$TOKEN\"', sh, '{i}']\nsecrets: [TOKEN]\noutputs: []\n", jobs=1, name="asks"
    )
    shop.run("apply")
    shop.run("fetch", "other", "-o", "here")
    [file] = (shop.root / "here").rglob("found.json")
    found = [(line, env) for line, env in json.loads(file.read_text()) if "monkey_agent" in line]
    lines = [line for line, _ in found]
    assert sum("supervisor.py" in line for line in lines) == 2, "the supervisor and its guard"
    assert any("monkey_agent.command_line" in line for line in lines), lines
    assert {env for _, env in found} <= {"errno 1", "errno 13"}


def test_a_plan_whose_secret_nobody_here_knows_is_refused(shop: Shop) -> None:
    shop.spec("secrets: [NOBODY_KNOWS]\n", jobs=2)
    shop.spec(jobs=1, name="other")
    (shop.root / "monkey.yaml").write_text(f"project: shop\n{NOWHERE}")
    trust("http://127.0.0.1:1", env=shop.env)
    said = shop.run("plan", code=1).stderr
    influx = "monkey.yaml:2:65: provider 'local': the secret is not on this machine: INFLUX_TOKEN"
    assert said.count(influx) == 1  # though two sweeps are sent there
    shop.env["INFLUX_TOKEN"] = ELSEWHERE
    said = shop.run("plan", code=1).stderr
    assert "INFLUX_TOKEN" not in said
    assert "specs/sweep.yaml:5:11: provider 'local': the secret is not on this machine: NOBODY_KNOWS" in said
    assert ".config/monkey/secrets (mode 0600)" in said
    file = Path(shop.env["HOME"]) / ".config/monkey/secrets"
    file.parent.mkdir(parents=True)
    file.write_text(f"NOBODY_KNOWS={SECRET}\n")
    file.chmod(0o644)
    assert "chmod 600" in shop.run("apply", code=1).stderr
    file.chmod(0o600)
    shop.run("apply")
    assert shop.states() == {"succeeded": 2}
    file.unlink()
    shop.run("plan")  # with nothing left to run, nothing need be known


def test_a_dataset_that_a_job_alters_is_mended_for_the_next_without_its_source(shop: Shop) -> None:
    data = shop.root / "data"
    data.mkdir()
    for i in range(300):
        (data / f"{i}.txt").write_text(str(i))
    alter = "f=$MONKEY_DATASET_DATA/7.txt; cat $f; chmod u+w $f; echo altered > $f"
    shop.spec(
        f"command: [sh, -c, '{alter}', sh, '{{i}}']\ndatasets: {{data: data}}\nmax_concurrent_jobs: 1\noutputs: []\n",
        jobs=4,
    )
    shop.run("push")
    shop.run("apply")
    shutil.move(data, shop.root.parent / "away")
    assert sorted(line.split()[-1] for line in shop.run("logs", "sweep").stdout.splitlines()) == ["7"] * 4
    (tree,) = (shop.root.parent / "cache" / "monkey" / "datasets" / "trees").glob("*.dir")
    assert sum(path.is_file() for path in tree.iterdir()) == 300
