"""A job that never stops saving, and agents that are killed, each on a machine of its own: what comes back is whole."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.ledger import whole_lines
from tests.acceptance.shop import MONKEY, Shop, until

#: Megabytes of the checkpoint, and how often an agent is killed: a few times, or for minutes with MONKEY_LONG=1.
SIZE, KILLS = (200, 20) if "MONKEY_LONG" in os.environ else (20, 6)


class Hall:
    """Machines, one after the other: each has a state directory and a cache of its own, and the store in common."""

    def __init__(self, shop: Shop, base: Path) -> None:
        self.shop, self.base, self.count = shop, base, 0
        self.place = ""
        self.agent: subprocess.Popen[str] | None = None
        self.ledger = base / "saver.ledger"

    def apply(self, how: str, every: str, *, steps: int = 100_000) -> None:
        """Apply a sweep of one job; the agent that this starts is ended before it has begun anything for long."""
        shutil.copy(Path(__file__).with_name("saver.py"), self.shop.root / "saver.py")
        self.shop.spec(f"""\
command: [python3, saver.py, "{self.ledger}", "{SIZE}", "{how}", "{steps}"]
parameters: {{i: [0]}}
outputs: []
checkpoint_every: {every}
""")
        self.shop.run("apply", "--detach")
        (lives,) = until(lambda: list(Path(self.shop.state).rglob("lives")), "the first agent begins")
        self.place = lives.parents[2].name
        self._lives = lives.read_text()

    def start(self) -> None:
        """Start an agent on the next machine. It is told that those before are dead, so that it need not wait."""
        self.count += 1
        name, state = f"machine{self.count}", self.base / f"state{self.count}"
        home = state / "monkey" / self.place / "local" / name
        home.mkdir(parents=True)
        (home / "lives").write_text(self._lives)
        env = {**self.shop.env, "XDG_STATE_HOME": str(state), "XDG_CACHE_HOME": str(self.base / f"cache{self.count}")}
        post = ["--store", str(self.shop.root / ".monkey/store"), "--project", "shop", "--name", name]
        with (self.base / "agents.log").open("a") as log:
            self.agent = subprocess.Popen(
                [*MONKEY, "agent", *post, "--idle-timeout", "1"],
                env=env,
                cwd=self.shop.root,
                stderr=log,
                stdin=subprocess.DEVNULL,
                text=True,
            )
        until(lambda: (home / "lives").read_text() != self._lives, "the agent begins")
        self._lives = (home / "lives").read_text()

    def kill(self) -> None:
        """kill -9 the agent, and take its machine away."""
        assert self.agent is not None
        self.agent.kill()
        self.agent.wait()
        until(lambda: not self.alive, "its jobs die with it")
        shutil.rmtree(self.base / f"state{self.count}")

    @property
    def alive(self) -> list[int]:
        """The job's processes."""
        found = []
        for line in self.lines:
            if line["pid"] not in found and str(self.ledger) in _command(line["pid"]):
                found.append(line["pid"])
        return found

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The ledger."""
        return [json.loads(line) for line in whole_lines(self.ledger)]

    def of(self, what: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["what"] == what]

    def lists(self) -> list[Path]:
        """The checkpoints in the store."""
        found = self.shop.root.glob(".monkey/store/projects/shop/jobs/*/checkpoints/*/*")
        return sorted(path for path in found if path.is_file())


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@pytest.fixture
def hall(shop: Shop, tmp_path: Path) -> Iterator[Hall]:
    made = Hall(shop, tmp_path)
    yield made
    if made.agent is not None and made.agent.poll() is None:
        made.agent.send_signal(signal.SIGKILL)
        made.agent.wait()
    until(lambda: not made.alive, "nothing is left")


def _attempts(lines: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the ledger by execution."""
    found: list[list[dict[str, Any]]] = []
    for line in lines:
        if line["what"] in ("fresh", "restored"):
            found.append([])
        found[-1].append(line)
    return found


def check(hall: Hall) -> list[int]:
    """Hold each restore against the ledger, and return the steps that were gone on from."""
    steps, begun = [], 0
    for lines in _attempts(hall.lines):
        first, *rest = lines
        assert first["what"] == "fresh" or first["whole"], f"a checkpoint that does not verify was restored: {first}"
        begun_from = first.get("step", 0)
        assert begun_from <= begun, "what was never saved was restored"
        made = [line["step"] for line in rest if line["what"] == "step"]
        assert made == list(range(begun_from + 1, begun_from + 1 + len(made))), "it did not go on from its checkpoint"
        begun = max([begun, *made])
        steps.append(begun_from)
    assert not hall.of("overlap")
    assert steps == sorted(steps), "a newer checkpoint gave way to an older one"
    return steps


@pytest.mark.slow
@pytest.mark.parametrize(("how", "kills"), [("aside", KILLS), ("in-place", KILLS // 3)])
def test_each_restore_verifies_under_another_agent(hall: Hall, how: str, kills: int) -> None:
    hall.apply(how, every="1s")
    until(lambda: hall.of("saved"), "the job saves under the first agent")
    hall.shop.kill_all()
    dice = random.Random(4)
    for _ in range(kills):
        before, executions = len(hall.lists()), len(_attempts(hall.lines))
        newest = hall.lists()[-1:]
        hall.start()
        until(lambda executions=executions: len(_attempts(hall.lines)) > executions, "another agent goes on")
        if dice.random() < 0.8:  # now and then it is killed before it could save anything
            until(lambda newest=newest: hall.lists()[-1:] != newest, f"a checkpoint follows {before} others")
        time.sleep(dice.uniform(0, 1.5))  # the moment of the kill is any
        hall.kill()
    Path(f"{hall.ledger}.enough").touch()
    hall.start()
    until(lambda: hall.of("end"), "it ends")
    assert hall.agent is not None and hall.agent.wait(60) == 0
    steps = check(hall)
    assert len(steps) == kills + 2
    assert len(set(steps)) > kills * 0.5, f"it hardly got on: {steps}"
    assert not hall.lists(), "a job that has succeeded needs no checkpoint"
    assert hall.shop.states() == {"succeeded": 1}


def test_an_agent_that_leaves_saves_what_the_next_machine_goes_on_from(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.acceptance.test_checkpoints.SIZE", 2)
    hall.apply("aside", every="1h")
    until(lambda: hall.of("saved"), "the job saves")
    (first,) = hall.shop.agents
    os.kill(first, signal.SIGTERM)
    until(lambda: not hall.shop.agents, "the agent leaves")
    assert len(hall.lists()) == 1
    last = hall.of("saved")[-1]["step"]
    Path(f"{hall.ledger}.enough").touch()
    hall.start()
    until(lambda: hall.of("end"), "it goes on at once, and ends")
    steps = check(hall)
    assert steps[0] == 0 and last - 3 <= steps[1] <= last + 1
    assert hall.agent is not None and hall.agent.wait(60) == 0
