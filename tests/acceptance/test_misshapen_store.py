"""What people look at, over a store in which somebody altered one value: words that name the key, never a bug."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from monkey.cli.main import run_guarded
from tests.acceptance.shop import Shop, until

pytestmark = pytest.mark.slow

#: What a value becomes: other types, numbers beyond reach, text that is none, nesting.
VALUES: list[Any] = [
    *(
        None,
        True,
        "",
        "x",
        "../../x",
        "\ud800",
        "\x1b[2J",
        "9" * 5000,
        [],
        [[]],
        {},
        {"a": {}},
        {"x": "0" * 64},
        [None],
    ),
    *(0, -1, 2**63, 10**19, 10**400, 1e308, math.nan, math.inf, -math.inf, "nan", {"last": 10**400}, {"last": "x"}),
    json.loads("[" * 500 + "]" * 500),
]
#: What all bytes of an object become.
BYTES = [b"", b"\xff\xfe", b"[" * 200_000, b"{}", b"null", b"[]", b"0", b'{"kind": "end"', b'{"kind": "claim"}']
VERBS = """
status; status --json; status sweep; list jobs sweep; list sweeps; list instances; info sweep; info JOB; logs sweep
logs JOB; results sweep; results sweep --csv; results sweep --json; results sweep --all; plan; doctor
"""
RICH = """
max_retries: 1
max_concurrent_jobs: 2
metric: {name: loss, goal: minimize}
stop_when: [{metric: loss, is: nan}, {metric: loss, above: 1e9, scope: sweep}]
resources: {cpus: 0.5}
expires: 300d
priority: 3
"""
JOB = """\
import os, sys
from monkey import log
for step in range(3):
    log(step=step, loss=1.0 / (step + 1), note=2 ** 40)
open("result.txt", "w").write(sys.argv[1])
raise SystemExit(sys.argv[1] == "1")
"""


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value that is in a value."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


def mutated(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Return an object's bytes with one thing altered, and what that was."""
    try:
        body = json.loads(data)
    except ValueError:
        body = None
    if not isinstance(body, dict) or rng.random() < 0.06:
        new = rng.choice([*BYTES, data[: len(data) // 2]])
        return repr(new[:20]), new
    path, value = rng.choice(list(places(body))), rng.choice(VALUES)
    if not path:
        return f"all: {value!r:.40}", json.dumps(value).encode()
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return f"{path}: {value!r:.40}", json.dumps(body).encode()


@pytest.fixture
def lived_in(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """Return a project whose sweeps have run: successes, a failure, metrics, orders. This process is at home there."""
    shop.hurry()
    (shop.root / "train.py").write_text(JOB)
    shop.spec(f"command: [python3, train.py, '{{i}}']\n{RICH}", jobs=3)
    shop.spec("command: ['true']\nparameters: {}\noutputs: []\n", name="other")
    shop.run("apply", "--yes", code=1)
    for verb in ("pause", "resume", "retry"):
        shop.run(verb, "sweep")
    shop.run("apply", "--yes", code=1)
    until(lambda: not shop.agents, "the agent leaves")
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, shop.env[name])
    monkeypatch.chdir(shop.root)
    return shop


def test_a_value_altered_in_the_store_is_told_in_words(lived_in: Shop, capfd: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(int(os.environ.get("SEED", "1")))
    count = int(os.environ.get("MUTATIONS", "300"))
    store = lived_in.root / ".monkey" / "store"
    whole = lived_in.root.parent / "whole"
    shutil.copytree(store, whole)
    objects = [path.relative_to(whole) for path in sorted(whole.rglob("*")) if path.is_file() and path.suffix != ".gz"]
    objects = [path for path in objects if "out" not in path.parts]
    revisions = [path for path in objects if path.parts[2:3] == ("sweeps",)]
    job = next(path.parts[3] for path in objects if path.parts[2:3] == ("jobs",))
    verbs, bugs = VERBS.strip().replace("\n", "; ").split("; "), []
    for _ in range(count):
        path = rng.choice(revisions if rng.random() < 0.5 else objects)
        what, data = mutated((whole / path).read_bytes(), rng)
        (store / path).write_bytes(data)
        verb = rng.choice(verbs).replace("JOB", job).split()
        code = run_guarded(verb)
        told = capfd.readouterr()
        if "this is a bug" in told.err or code not in (0, 1, 2):
            bugs.append(f"{' '.join(verb)} over {path}, {what}: {told.err[:200]}")
        shutil.copyfile(whole / path, store / path)
    assert bugs == [], f"{len(bugs)} bugs:\n" + "\n".join(bugs)
