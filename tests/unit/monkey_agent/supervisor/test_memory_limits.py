"""A job that takes more memory than it asked for ends alone: by the kernel, or by the supervisor's looks."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from monkey.processes.process_tree import HAS_PROC
from monkey_agent.execution.exit_reasons import explain_exit
from monkey_agent.machine import MachineClock
from monkey_agent.supervisor.shared_state import EXCEEDED, OWN
from monkey_agent.supervisor.supervisor_client import SupervisorClient

HUNGRY = Path(__file__).with_name("hungry.py")
#: Takes 1 MiB after the other, and would stop at 256.
TAKES = "import time; held = []\nfor i in range(256): held.append(bytearray(b'x' * (1 << 20))); time.sleep(.002)\n"
#: A child of it does, and it would go on without the child.
CHILD_TAKES = f"import os, time\nif not os.fork():\n exec({TAKES!r}); os._exit(0)\nos.wait(); time.sleep(60)"
#: Five processes have the same 40 MiB.
SHARES = """
import os, time
held = b"x" * (40 << 20)
for i in range(4):
    if not os.fork():
        time.sleep(0.5)
        os._exit(0)
for i in range(4): os.wait()
"""

pytestmark = pytest.mark.skipif(not HAS_PROC, reason="needs /proc")


@pytest.fixture(params=["as we are", pytest.param("without control groups", marks=pytest.mark.needs("mount"))])
def who(request: pytest.FixtureRequest) -> list[str]:
    """Return what an agent's command line begins with."""
    if request.param == "as we are":
        return []
    hidden = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
    return ["unshare", "--mount", "--map-root-user", "sh", "-c", hidden, "sh"]


def run_agent(who: list[str], place: Path, command: str) -> dict[str, Any]:
    """Run the agent, and return what it printed."""
    done = subprocess.run([*who, sys.executable, HUNGRY, place, command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("command", [TAKES, CHILD_TAKES], ids=["itself", "a child"])
def test_a_job_that_takes_too_much_ends_alone(who: list[str], tmp_path: Path, command: str) -> None:
    answer = run_agent(who, tmp_path, command)
    ending, reason, code, *neighbour = answer["told"]
    assert ending == "failed"
    assert reason.startswith("needed more than 64 MiB of memory: it held "), answer
    held = float(reason.split("it held ")[1].split(" MiB")[0])
    assert 63 < held < 128, reason
    assert code == 137
    assert neighbour == ["succeeded", ""]
    assert (tmp_path / "ledger").read_text() == "went on"
    assert len(answer["said"]) == 1, "it is said once how memory is held"
    assert answer["said"][0].startswith("resources.memory: " + ("no control group" if who else "")), answer


def test_memory_that_processes_share_counts_once(who: list[str], tmp_path: Path) -> None:
    assert run_agent(who, tmp_path, SHARES)["told"] == ["succeeded", "", 0, "succeeded", ""]


def test_a_successor_knows_that_a_job_took_too_much(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = SupervisorClient(tmp_path, MachineClock())
        how = await client.exited("job.1", (EXCEEDED, -9, 2.0, 65 << 10)).ended
        reason, _, hint = explain_exit(how, 64 << 20).partition(" (hint: ")
        assert reason == "needed more than 64 MiB of memory: it held 65 MiB when it was ended"
        assert hint.startswith("set `resources: {memory: 192MiB}`")
        how = await client.exited("job.1", (OWN, 3, 2.0, 65 << 10)).ended
        assert explain_exit(how, 64 << 20) == "exit code 3"

    asyncio.run(scenario())
