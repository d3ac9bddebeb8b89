"""`monkey verify`: whatever is altered, cut short or removed in the store is named, and the exit code says so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from monkey.signing.entry_signers import load_user_signers
from monkey.signing.signed_entry import EntryPlace
from tests.acceptance.shop import Shop

TRAIN = """\
import sys, monkey
for step in range(20):
    monkey.log({"loss": 1 / (step + 1), "lr": float(sys.argv[1])}, step=step)
open("result.txt", "w").write("result of " + sys.argv[1])
"""
SPEC = """\
command: [python3, train.py, '{i}']
outputs: [result.txt]
datasets: {faces: {path: faces}}
"""
#: Kind of evidence to where its objects are in the store.
PLACES = {
    "code": "code/*.tar.gz",
    "data": "files/md5/??/*[0-9a-f]",
    "outputs": "projects/shop/jobs/*/out/*/outputs/result.txt",
    "facts": "projects/shop/facts/*",
    "record": "projects/shop/jobs/*/out/*/metrics/*",
}


def write_sweep(shop: Shop) -> None:
    (shop.root / "train.py").write_text(TRAIN)
    (shop.root / "faces").mkdir()
    for name in ("a", "b"):
        (shop.root / "faces" / name).write_text(f"face {name} " * 20)
    shop.spec(SPEC, jobs=3)


@contextmanager
def kept(path: Path) -> Iterator[Path]:
    """Put an object back in the end, as it was."""
    data = path.read_bytes()
    path.unlink()  # a new file in its place: nothing else that may be linked to it is altered
    path.write_bytes(data)
    try:
        yield path
    finally:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def alter(path: Path) -> None:
    """Change bytes in the middle, and not how many there are: "result" becomes another, a number another."""
    data = bytearray(path.read_bytes())
    at = data.index(b"0.5") if b"0.5" in data else len(data) // 2
    data[at] ^= 1
    path.write_bytes(bytes(data))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def verify(shop: Shop, what: str = "sweep", code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = shop.json("verify", what, code=code)
    assert found["ok"] is (code == 0)
    return found


def test_each_kind_of_object_is_named_when_it_is_altered_cut_short_or_removed(shop: Shop, store: Path) -> None:
    write_sweep(shop)
    shop.run("apply")
    checked = verify(shop)["checked"]
    assert checked == {"code": 1, "data": 3, "outputs": 3, "facts": 1, "record": 3}
    assert "sweep: all as recorded (3 jobs:" in shop.run("verify", "sweep").stdout
    ways: tuple[Callable[[Path], None], ...] = (alter, cut, Path.unlink)
    for kind, place in PLACES.items():
        for way in ways if kind in ("data", "record") else ways[:: 2 if kind == "outputs" else 1]:
            with kept(sorted(store.glob(place))[0]) as path:
                way(path)
                (wrong,) = verify(shop, code=1)["wrong"]
                assert wrong["kind"] == kind and path.relative_to(store).as_posix().startswith(wrong["key"]), wrong
                missing = "no metric file" if kind == "record" else "missing"
                assert (wrong["found"] == missing) is (way is Path.unlink), wrong
    assert verify(shop)["checked"] == checked


def test_several_things_at_once_are_listed_by_kind_with_what_to_do(shop: Shop, store: Path) -> None:
    write_sweep(shop)
    shop.run("apply")
    listing = next(store.glob("files/md5/??/*.dir"))
    outputs = sorted(store.glob(PLACES["outputs"]))
    outputs[0].unlink()
    outputs[1].write_text("another")
    cut(listing)
    done = shop.run("verify", "sweep", code=1)
    assert "outputs: 2 of 3 not as recorded" in done.stdout and "hint: restore" in done.stdout
    assert "data: 1 of 1 not as recorded" in done.stdout, "what the listing names is not known any more"
    assert "hint: run `monkey push`" in done.stdout and "sweep: 3 things not as recorded" in done.stdout
    job = outputs[2].parents[3].name
    assert {one["kind"] for one in verify(shop, job, code=1)["wrong"]} == {"data"}, "others' outputs are not this job's"
    shop.run("push")
    assert verify(shop, job)["checked"]["outputs"] == 1, "push sent what was named"


def test_a_revision_that_was_changed_is_named(shop: Shop, store: Path) -> None:
    write_sweep(shop)
    shop.run("apply")
    revision = store / "projects/shop/sweeps/sweep/00000001"
    with kept(revision):
        written = json.loads(revision.read_bytes())
        written["table"]["columns"]["i"]["values"][0] = 1000
        signature = written.pop("signature")
        revision.write_text(json.dumps({**written, "signature": signature}, separators=(",", ":")))
        said = shop.run("verify", "sweep", code=1).stderr
        assert "sweeps/sweep/00000001: skipped" in said and "its signature does not fit" in said
        # By somebody who is trusted: the parameters are compared with the jobs' ids, too.
        place = EntryPlace(json.loads((store / "format").read_text())["id"], "shop", "sweep", 1, "")
        body = json.dumps(written, separators=(",", ":"), ensure_ascii=False).encode()
        revision.write_bytes(load_user_signers(environ=shop.env).sign(place, body))
        (wrong,) = verify(shop, code=1)["wrong"]
        assert wrong["key"].endswith("sweeps/sweep/00000001") and "the parameters" in wrong["expected"]


def test_the_log_of_a_job_is_held_against_its_files_and_the_journal(shop: Shop, store: Path) -> None:
    write_sweep(shop)
    shop.run("apply")
    job = shop.json("results", "sweep")[0]["job"]
    end = store / "projects/shop/jobs" / job / "00000002"
    entry = json.loads(end.read_bytes())
    with kept(end):
        metrics = {**entry["metrics"], "loss": {**entry["metrics"]["loss"], "min": 0.001}}
        end.write_text(json.dumps({**entry, "metrics": metrics}))
        first, second = verify(shop, job, code=1)["wrong"]
        assert {first["kind"], second["kind"]} == {"record"}
        assert "loss: min 0.001" in (first["expected"], second["expected"])
        assert any("a journal" in one["found"] for one in (first, second))
    for change in ({"outcome": "failed", "reason": "exit code 1"}, {"seconds": 7777.0}):
        with kept(end):
            end.write_text(json.dumps({**entry, **change}))
            (wrong,) = verify(shop, job, code=1)["wrong"]
            assert "a journal" in wrong["found"], change
    for spoil in (cut, Path.unlink):
        with kept(end):
            spoil(end)
            (wrong,) = verify(shop, job, code=1)["wrong"]
            assert (
                wrong["key"] == f"projects/shop/jobs/{job}/00000002"
                and wrong["expected"] == "an entry of the job's log"
            )
    with kept(end):
        end.write_text(json.dumps({**entry, "outputs": {"../../x": "0" * 64}, "facts": "../../../etc/passwd"}))
        found = verify(shop, job, code=1)["wrong"]
        assert {"outputs", "facts"} <= {one["kind"] for one in found}
        assert "not known: facts" in shop.run("info", job).stdout, "info shows it, and survives"
    assert verify(shop, job)["jobs"] == {"ended": 1, "unfinished": 0}


def test_adopted_results_are_verified_with_the_code_that_they_came_from(shop: Shop, store: Path) -> None:
    write_sweep(shop)
    shop.run("apply")
    (shop.root / "train.py").write_text(TRAIN + "# a comment\n")
    shop.run("apply", "--keep-stale", "code")
    assert shop.json("plan")["sweeps"][0]["jobs"]["kept"] == 3
    found = verify(shop)
    assert found["checked"] == {"code": 2, "data": 3, "outputs": 3, "facts": 1, "record": 3}
    sorted(store.glob(PLACES["outputs"]))[0].unlink()
    (wrong,) = verify(shop, code=1)["wrong"]
    assert wrong["kind"] == "outputs" and wrong["job"] in wrong["key"]


@pytest.mark.slow
def test_jobs_that_failed_or_have_not_ended_are_told_apart(shop: Shop, store: Path) -> None:
    shop.spec("command: ['sh', '-c', 'echo x > result.txt; exit $1', sh, '{i}']\n", jobs=3)
    shop.run("apply", code=1)
    found = verify(shop)
    assert found["jobs"] == {"ended": 3, "unfinished": 0} and found["checked"]["outputs"] == 3
    shutil.rmtree(next(iter(store.glob("projects/shop/jobs/*/out"))))
    assert [one["kind"] for one in verify(shop, code=1)["wrong"]] == ["outputs"]
    assert "there is no sweep or job" in shop.run("verify", "nothing", code=1).stderr
