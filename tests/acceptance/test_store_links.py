"""Links that somebody put into a store: what lies behind them is neither removed, nor replaced, nor written."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monkey.cli.help import VERBS
from tests.acceptance.shop import PROMPT, Shop, until
from tests.precious import Precious

pytestmark = pytest.mark.slow

#: Seconds since the victim's files were changed: longer than what dead writers left is kept.
AGE = 5 * 24 * 3600.0
#: Where links stand, below the store; JOB is a finished job. One test for each line.
PLACES = (
    "tmp",
    "files; code; projects/shop/queue; projects/shop/agents; projects/shop/idle; probe",
    "projects/shop/jobs/JOB/checkpoints; projects/shop/jobs/JOB/out/00000001/outputs; projects/shop/facts",
    "projects/shop/jobs/JOB/out; projects/shop/shipments; projects/shop/permits; projects/shop/stops",
    "projects/shop/jobs/JOB; projects/shop/sweeps/other; projects/shop/notices; projects/shop/adoptions",
    "projects",
)
#: Each verb with arguments that make it look at the store, and write there if it can.
CALLS = """
init; validate; schema; plan; apply --yes --detach; run --detach -- true; sync --once REMOTE; push; status
list jobs sweep; info JOB; history sweep; diff sweep sweep; logs JOB; results sweep; compare sweep sweep; metrics sweep
plot sweep; web --no-browser; report sweep; fetch sweep -o fetched; notify; verify sweep; rerun --check --detach JOB
cancel other; pause sweep; resume sweep; retry sweep; extend sweep 6h; rollback other; destroy --yes; doctor; trust
backfill sweep; audit; completion bash; apply --yes
agent --store STORE --project shop --fleet local --idle-timeout 0
"""
#: Verbs that serve until they are stopped.
SERVING = ("web",)
#: Verbs that refuse to work without a server that is not here, and what they say.
REFUSING = {"notify": "expected a project with a forge", "backfill": "names no InfluxDB"}
#: Fails the first time, and saves something each time.
JOB = """\
import os, sys, pathlib
import monkey
monkey.log("loss", 0.5, step=1)
mark = pathlib.Path(sys.argv[1], sys.argv[2])
pathlib.Path(os.environ["MONKEY_CHECKPOINT_DIR"], "thesis.tex").write_text("a checkpoint")
pathlib.Path("thesis.tex").write_text("an output")
first = not mark.exists()
mark.touch()
raise SystemExit(first)
"""


def list_calls(**values: object) -> list[list[str]]:
    """Return each verb with its arguments; `values`: what stands in them for a name in capitals."""
    filled = CALLS
    for name, value in values.items():
        filled = filled.replace(name, str(value))
    return [words.split() for line in filled.strip().splitlines() for words in line.split("; ")]


def test_every_verb_is_called() -> None:
    assert {words[0] for words in list_calls()} == {*itertools.chain.from_iterable(VERBS.values())}


@pytest.fixture
def lived_in(shop: Shop, tmp_path: Path) -> Shop:
    """Return a project whose sweeps have run, and failed once."""
    (tmp_path / "marks").mkdir()
    (shop.root / "data.csv").write_text("1,2\n")
    (shop.root / "save.py").write_text(JOB)
    shop.hurry()
    words = f"command: [python3, save.py, '{tmp_path}/marks', '{{i}}']\ndatasets: {{data: data.csv}}\nmax_retries: 1\n"
    shop.spec(f"{words}outputs: [thesis.tex]\nmetric: {{name: loss, goal: minimize}}\n", jobs=3)
    for seconds in (1, 2):
        shop.spec(f"command: ['true']\nparameters: {{}}\noutputs: []\ntimeout: {seconds}m\n", name="other")
        shop.run("apply", "--yes")
    until(lambda: not shop.agents, "the agent leaves")
    return shop


@pytest.fixture
def remote(lived_in: Shop, store: Path, tmp_path: Path) -> Path:
    """Return a repository whose commits go into the same store."""
    remote = tmp_path / "remote"
    with (lived_in.root / "monkey.yaml").open("a") as settings:
        settings.write(f"store: {store}\n")
    shutil.copytree(lived_in.root, remote, ignore=shutil.ignore_patterns(".monkey"))
    commit_all(remote)
    return remote


def commit_all(root: Path) -> None:
    """Make a repository of all that is in a directory."""
    git = ["git", "-C", str(root), "-c", "user.name=m", "-c", "user.email=m@x"]
    for words in (["init", "-q", "-b", "main"], ["add", "-f", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True)


def put_link(place: Path, victim: Path) -> None:
    """Put a link to the victim's directory in place of whatever is there."""
    if place.is_dir():
        shutil.rmtree(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(victim)


def call(shop: Shop, words: list[str], code: int | None = None) -> str:
    """Run a verb to its end, and return what it printed; `code`: what it must exit with (None: anything).

    One that serves is stopped once it has said where, or has ended by itself.
    """
    if words[0] not in SERVING:
        done = shop.run(*words, code=code)
        return done.stdout + done.stderr
    process = shop.start(*words)
    said = str(process.stdout.readline())
    process.terminate()
    process.communicate()
    return said


def test_every_verb_does_its_work_in_a_store_without_links(lived_in: Shop, store: Path, remote: Path) -> None:
    job = lived_in.json("list", "jobs", "sweep")[0]["job"]
    write_third(lived_in)
    for words in list_calls(JOB=job, STORE=store, REMOTE=remote):
        said = call(lived_in, words, code=1 if words[0] in REFUSING else 0)
        assert REFUSING.get(words[0], "") in said
        assert words[0] not in SERVING or "http://" in said, said


def write_third(shop: Shop) -> None:
    """Write a spec that is not yet applied."""
    shop.spec("command: [python3, save.py, /tmp, new]\nparameters: {}\noutputs: [thesis.tex]\n", name="third")


@pytest.mark.parametrize("places", PLACES)
def test_what_lies_behind_a_link_in_a_store_stays_whatever_verb_runs(
    lived_in: Shop, store: Path, remote: Path, tmp_path: Path, places: str
) -> None:
    shop = lived_in
    job = shop.json("list", "jobs", "sweep")[0]["job"]
    assert "checkpoints" in {path.name for path in (store / "projects/shop/jobs" / job).iterdir()}
    victims = []
    for number, place in enumerate(places.replace("JOB", job).split("; ")):
        victims.append(Precious(tmp_path / "victims" / str(number), AGE))
        put_link(store / place, victims[-1].root)
    write_third(shop)
    for words in list_calls(JOB=job, STORE=store, REMOTE=remote):
        call(shop, words)
        for victim in victims:
            try:
                victim.check()
            except AssertionError as exc:
                raise AssertionError(f"by {words}") from exc
    shop.kill_all()
    for victim in victims:
        victim.check()


def test_a_doctor_names_what_monkey_did_not_put_into_a_store(lived_in: Shop, store: Path, tmp_path: Path) -> None:
    assert "All is well." in lived_in.run("doctor").stdout
    job = lived_in.json("list", "jobs", "sweep")[0]["job"]
    victim = Precious(tmp_path / "victim", AGE)
    old = store / "tmp" / "dead.1"
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    links = ("projects/shop/agents/local", "projects/shop/facts", f"projects/shop/jobs/{job}/checkpoints", "code")
    for place in links:
        put_link(store / place, victim.root)
    os.mkfifo(store / "projects/shop/jobs" / job / "00000009")
    with (store / "projects/shop/bell").open("wb") as file:
        file.truncate(1 << 40)
    said = lived_in.run("doctor", code=1).stdout
    for place in links:
        assert f"'{place}' in the store is a link to '{victim.root}'" in said, said
    assert f"'projects/shop/jobs/{job}/00000009' in the store is no file" in said
    assert "projects/shop/bell: it is too large to be read" in said
    assert old.exists()
    victim.check()


def test_an_apply_whose_agents_cannot_beat_says_why(shop: Shop, store: Path, tmp_path: Path) -> None:
    shop.hurry()
    shop.spec()
    shop.run("apply", "--yes", "--detach")
    until(lambda: not shop.agents, "the agent leaves")
    victim = Precious(tmp_path / "victim", AGE)
    put_link(store / "projects/shop/agents/local", victim.root)
    shop.spec(name="next", jobs=5)
    done = shop.run("apply", "--yes", code=1, patience=PROMPT)
    assert "'projects/shop/agents/local' in it is a link" in done.stderr
    victim.check()


def test_jobs_that_a_link_keeps_from_being_claimed_are_explained(shop: Shop, store: Path, tmp_path: Path) -> None:
    shop.hurry()
    shop.spec()
    shop.run("apply", "--yes")
    until(lambda: not shop.agents, "the agent leaves")
    victim = Precious(tmp_path / "victim", AGE)
    put_link(store / "projects/shop/jobs", victim.root)
    shop.spec(name="next", jobs=5)
    shop.run("apply", "--yes", "--detach")
    until(lambda: "'projects/shop/jobs' in it is a link" in shop.run("status").stdout, "status tells of it")
    victim.check()


def test_a_job_whose_end_is_kept_out_by_a_link_fails_with_it(shop: Shop, store: Path, tmp_path: Path) -> None:
    shop.hurry()
    shop.spec(jobs=1)
    shop.run("apply", "--yes")
    until(lambda: not shop.agents, "the agent leaves")
    victim = Precious(tmp_path / "victim", AGE)
    put_link(store / "projects/shop/facts", victim.root)
    shop.spec("parameters: {i: [7]}\n", name="next")
    shop.run("apply", "--yes", code=1, patience=PROMPT)
    (row,) = shop.json("list", "jobs", "next")
    assert row["state"] == "failed"
    assert "'projects/shop/facts' in it is a link" in row["reason"]
    victim.check()


def test_a_job_whose_checkpoints_are_behind_a_link_loses_nothing_there(shop: Shop, store: Path, tmp_path: Path) -> None:
    """The link is put while the job runs, which fails once, and succeeds: its checkpoints are no longer needed then."""
    gate = tmp_path / "gate"
    (tmp_path / "marks").mkdir()
    script = JOB.replace("first =", f"import time\nwhile not os.path.exists('{gate}'): time.sleep(0.05)\nfirst =")
    (shop.root / "save.py").write_text(script)
    shop.hurry()
    lines = "checkpoint_every: 1s\nmax_retries: 3\noutputs: [thesis.tex]\n"
    shop.spec(f"command: [python3, save.py, '{tmp_path}/marks', '{{i}}']\n{lines}", jobs=2)
    shop.run("apply", "--yes", "--detach")
    jobs = sorted(row["job"] for row in shop.json("list", "jobs", "sweep"))
    place = store / "projects/shop/jobs" / jobs[0] / "checkpoints"
    until(lambda: list(place.glob("*/0*")), "a whole checkpoint is there")
    victim = Precious(tmp_path / "victim", AGE)
    put_link(place, victim.root)
    gate.touch()

    def find(job: str) -> dict[str, Any]:
        return next(row for row in shop.json("list", "jobs", "sweep") if row["job"] == job)

    until(lambda: find(jobs[0])["state"] == "failed", "the job fails as often as it may")
    assert "checkpoints' in it is a link" in find(jobs[0])["reason"]
    until(lambda: find(jobs[1])["state"] == "succeeded", "the other job ends")
    victim.check()
    place.unlink()
    shop.run("retry", "sweep")
    shop.run("apply", "--yes")
    assert find(jobs[0])["state"] == "succeeded"
    victim.check()


@contextlib.contextmanager
def clone_of(origin: Path, to: Path) -> Iterator[Path]:
    """Yield a clone of a repository that holds all of a directory."""
    commit_all(origin)
    subprocess.run(["git", "clone", "-q", str(origin), str(to)], check=True)
    yield to


@pytest.mark.parametrize("place", ["s", ".monkey/store", "behind"])
def test_a_repository_brings_no_store(
    lived_in: Shop, store: Path, tmp_path: Path, make_shop: Callable[..., Shop], place: str
) -> None:
    origin = tmp_path / "origin"
    real = "hidden/deep" if place == "behind" else place
    (origin / real).parent.mkdir(parents=True)
    shutil.copytree(store, origin / real)
    if place == "behind":
        (origin / place).symlink_to(real)
    shutil.copytree(lived_in.root / "specs", origin / "specs")
    (origin / "monkey.yaml").write_text(f"project: shop\nstore: {place}\n")
    victim = Precious(tmp_path / "victim", AGE)
    shutil.rmtree(origin / real / "tmp")
    (origin / real / "tmp").symlink_to(victim.root)
    reader = make_shop("reader")
    shutil.rmtree(reader.root)
    with clone_of(origin, reader.root):
        for words in list_calls(JOB="sweep", REMOTE=origin):
            if words[0] not in ("init", "web", "agent"):
                call(reader, words)
                victim.check()
        for verb in ("doctor", "status", "plan", "apply"):
            done = reader.run(verb, code=1)
            said = done.stdout + done.stderr
            assert f"git tracks '{real}/" in said, said
            assert f"git rm -r --cached {real}" in said, said


def test_a_submodule_brings_no_store(
    lived_in: Shop, store: Path, tmp_path: Path, make_shop: Callable[..., Shop]
) -> None:
    inner = tmp_path / "inner"
    shutil.copytree(store, inner / "s")
    origin = tmp_path / "origin"
    shutil.copytree(lived_in.root / "specs", origin / "specs")
    (origin / "monkey.yaml").write_text("project: shop\nstore: sub/s\n")
    allowed = ["-c", "protocol.file.allow=always"]
    with clone_of(inner, tmp_path / "unused"):
        subprocess.run(["git", "init", "-q", str(origin)], check=True)
        words = ["git", "-C", str(origin), *allowed, "submodule", "--quiet", "add", str(inner), "sub"]
        subprocess.run(words, check=True)
    reader = make_shop("reader")
    shutil.rmtree(reader.root)
    with clone_of(origin, tmp_path / "plain"):
        words = ["git", *allowed, "clone", "-q", "--recurse-submodules", str(origin), str(reader.root)]
        subprocess.run(words, check=True)
    done = reader.run("status", code=1)
    assert "git tracks 'sub/s/" in done.stdout + done.stderr
