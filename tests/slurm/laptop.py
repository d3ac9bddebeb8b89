"""A laptop that knows the cluster's login node by SSH, a project on it, and what that leaves on the cluster."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.acceptance.ledger import NOTED, Ledger
from tests.acceptance.shop import Shop, until
from tests.acceptance.site import LEDGER, left_on
from tests.slurm.cluster import Cluster, Query

#: A job that counts in its checkpoint until a certain attempt, and notes each step beside the ledger.
WALKER = """\
import os, sys, time
from pathlib import Path

ledger, last = sys.argv[1], int(sys.argv[2])
job, attempt = os.environ["MONKEY_JOB"], int(os.environ["MONKEY_ATTEMPT"])
state = Path(os.environ["MONKEY_CHECKPOINT_DIR"], "step")
step = int(state.read_text()) if state.exists() else 0


def note():
    with open(f"{ledger}/steps", "a") as file:
        file.write(f"{job} {attempt} {step}\\n")


note()
while attempt < last:
    time.sleep(0.5)
    step += 1
    state.with_name("aside").write_text(str(step))
    state.with_name("aside").replace(state)
    note()
Path(os.environ["MONKEY_OUTPUT_DIR"], "result.txt").write_text(str(step))
"""
#: A job that never ends, and saves nothing.
STUBBORN = "import time\nwhile True:\n    time.sleep(1)\n"


class Laptop:
    """A project whose store is on the cluster's shared file system; its jobs keep the ledger there, too."""

    def __init__(self, shop: Shop, cluster: Cluster, config: Path, number: int) -> None:
        """Make the project; `config` is the laptop's ssh_config."""
        self.shop, self.cluster = shop, cluster
        self.url = f"ssh://twin1/~/stores/{number}"
        shop.env["MONKEY_SSH_CONFIG"] = str(config)
        # What nodes are sent is built once.
        shop.env["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"]
        (shop.root / "noted.py").write_text(NOTED)
        (shop.root / "walker.py").write_text(WALKER)
        (shop.root / "stubborn.py").write_text(STUBBORN)
        self.ledger = Ledger(cluster.home / "ledger")
        self._before = self.left()
        #: Spans of time in which a person ran a command: what Slurm is asked then is apart.
        self._commands: list[tuple[float, float]] = []

    def providers(self, **fleets: Mapping[str, Any]) -> None:
        """Write monkey.yaml: these fleets of pilots, each with what differs from two pilots of two CPUs."""
        usual = {"type": "slurm", "login": "twin1", "time": "10m", "pilots": 2, "cpus": 2, "memory": "300MiB"}
        usual |= {"idle_timeout": "3s", "partition": "low"}
        told = {
            "project": "shop",
            "store": self.url,
            "providers": {name: {**usual, **of} for name, of in fleets.items()},
        }
        (self.shop.root / "monkey.yaml").write_text(json.dumps(told))

    def sweep(self, name: str, fleet: str, *, jobs: int, command: str = "", cpus: float = 1) -> None:
        """Write a spec whose jobs keep the ledger; `command` is a program of the project with its arguments."""
        words = f"noted.py {LEDGER} result.txt {command}" if command else f"job.py {LEDGER} 0.05"
        outputs = "[]" if command.startswith("stubborn") else "[result.txt]"
        text = f"command: python3 {words} {{i}} {name}\nprovider: {fleet}\noutputs: {outputs}\ncheckpoint_every: 5s\n"
        text += f"resources: {{cpus: {cpus}}}\n"
        self.shop.spec(text, jobs=jobs, name=name)

    def say(self, *words: str, code: int = 0) -> str:
        """Run a verb to its end; return what it says on both outputs."""
        with self._counted():
            done = self.shop.run(*words, code=code)
        return done.stdout + done.stderr

    def apply_twice(self, *words: str) -> str:
        """Apply by two people at once; return what both are told."""
        with self._counted():
            both = [self.shop.start("apply", "-y", "--detach", *words, stderr=subprocess.STDOUT) for _ in range(2)]
            said = [each.communicate(timeout=120)[0] for each in both]
        assert [each.returncode for each in both] == [0, 0], said
        return "".join(said)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        began = time.time()
        try:
            yield
        finally:
            self._commands.append((began, time.time()))

    def list_queries(self, since: float) -> list[Query]:
        """Return what Slurm was asked since then, by programs of this project that no person had just called."""
        found = self.cluster.list_queries(since)
        return [each for each in found if not any(began <= each.at <= end for began, end in self._commands)]

    def states(self, sweep: str) -> dict[str, int]:
        """Return how many jobs of a sweep are in each state that any is in. Slurm is not asked for that."""
        return self.shop.states(sweep)

    def await_states(self, sweep: str, patience: float = 120.0, **wanted: int) -> None:
        """Wait until a sweep's jobs are in these states."""
        self.await_(lambda: self.states(sweep) == wanted, f"{sweep}: {wanted}", patience, step=1.0)

    def await_(self, what: Callable[[], Any], message: str, patience: float = 120.0, step: float = 0.02) -> None:
        """Wait until it is true; if it never is, say what the queue has, and what pilots said."""
        try:
            until(what, message, patience, step)
        except AssertionError as exc:
            logs = (self.cluster.home / ".monkey/pilots").glob("*/logs/*")
            said = "\n".join(f"{path.parent.parent.name}/{path.name}: {path.read_text()[-2000:]}" for path in logs)
            queue = "\n".join(self.cluster.queue())
            raise AssertionError(f"{exc}\n{queue}\n{self.say('status')}\n{said}") from exc

    def begun(self, jobs: int, *, besides: Iterable[str] = ()) -> set[str]:
        """Wait until so many different jobs have begun, by the ledger; return them. `besides`: jobs not to count."""
        others = set(besides)
        self.await_(lambda: len(set(self.ledger.begins) - others) >= jobs, f"{jobs} jobs begin")
        return set(self.ledger.begins) - others

    def begun_again(self, jobs: Iterable[str], times: int) -> None:
        """Wait until these jobs have begun so often."""
        self.await_(lambda: all(self.ledger.begins[job] == times for job in jobs), f"they begin for the {times}. time")

    def pilots(self, fleet: str) -> list[tuple[str, str]]:
        """Return state and node of each pilot of a fleet, by the controller's own count."""
        rows = (line.split("|") for line in self.cluster.queue("%j|%T|%N"))
        return [(state, node) for name, state, node in rows if name.startswith(f"monkey-shop-{fleet}-")]

    def steps(self) -> dict[str, dict[int, list[int]]]:
        """Return job → attempt → the steps that it noted."""
        found: dict[str, dict[int, list[int]]] = {}
        for line in (self.ledger.directory / "steps").read_text().splitlines():
            job, attempt, step = line.split()
            found.setdefault(job, {}).setdefault(int(attempt), []).append(int(step))
        return found

    def check_walk(self, lives: int) -> None:
        """Have the walker lived so often, and each life begun from the checkpoint of the one before."""
        [walked] = self.steps().values()
        assert sorted(walked) == list(range(1, lives + 1)), walked
        assert all(0 < walked[life][0] <= walked[life - 1][-1] for life in range(2, lives + 1)), walked
        assert all(walked[life][0] < walked[life][-1] for life in range(1, lives)), "each gets on"
        assert not self.ledger.overlaps

    def check_queries(self, since: float, least: int = 2) -> None:
        """Have a program that waits asked Slurm at most once in half a minute, by its own log.

        It asked before that: for the plan, to count the pilots as it submits some, and whether they came. What it asks
        while a person's command runs cannot be told from that, and is not counted.
        """
        asked = [query.at for query in self.list_queries(since)]
        assert len(asked) >= least, asked
        assert all(later - earlier >= 29 for earlier, later in itertools.pairwise(asked[2:])), asked

    def left(self) -> dict[str, Any]:
        """Return all that the user has on the nodes, but for the ledger and the store."""
        return {node.name: left_on(node) for node in self.cluster.nodes}

    def destroy(self) -> None:
        """Take all away, and have nothing left on the cluster."""
        self.say("destroy", "-y")
        assert not self.cluster.queue()
        until(
            lambda: self.left() == self._before,
            f"nothing is left but {self._before}, found {self.left()}",
            15,
            step=1.0,
        )

    def close(self) -> None:
        """Leave the cluster as it was, whatever a story did."""
        self.cluster.cancel_all()
        self.cluster.login.within("rm", "-rf", LEDGER, f"{Path(LEDGER).parent}/stores")
