"""Memory that the kernel holds for an agent of the user's systemd, with control groups of version 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.own_kernel import run_script

pytestmark = [pytest.mark.slow, pytest.mark.needs("own-kernel")]

HUNGRY = Path(__file__).parents[1] / "unit/monkey_agent/supervisor/hungry.py"
#: What an agent of a host does: systemd starts it, and again, in the control group that is there already.
SCRIPT = f"""
import json, os, subprocess, sys, time
from pathlib import Path
from monkey_stacks.ssh.remote.keep_alive import name_unit, start_by_systemd, stop_by_systemd
from monkey_stacks.ssh.remote.paths import FleetDirectory

fleet = FleetDirectory("work", "fleet")
agent = fleet.directory / "1"
agent.mkdir(parents=True)
unit = name_unit(fleet, agent)
text = "import os, sys; os.chdir(sys.argv[1]); os.dup2(os.open('out', os.O_WRONLY | os.O_CREAT), 1); "
text += "os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"

def start(place, job):
    (agent / place).mkdir()
    where = str(agent / place)
    start_by_systemd(fleet, agent, [sys.executable, "-c", text, where, {str(HUNGRY)!r}, where, job])

def ask(*words):
    return subprocess.run(["systemctl", "--user", *words, unit], capture_output=True, text=True).stdout.strip()

for place in ("first", "second"):
    start(place, "held = [bytearray(b'x' * (1 << 20)) for i in range(256)]")
    while ask("is-active") == "active":
        time.sleep(0.1)
    print(json.dumps([(agent / place / name).read_text() for name in ("out", "ledger")]))

# Killed, it is started again where its control groups still are.
lives = agent / "lives"
start("killed", f"import time; open({{str(lives)!r}}, 'a').write('x'); time.sleep(1000)")
for count in (1, 2):
    while not lives.exists() or len(lives.read_text()) < count and ask("is-active") != "failed":
        time.sleep(0.1)
    group = Path("/sys/fs/cgroup" + ask("show", "-P", "ControlGroup"))
    print("life", lives.read_text(), sorted(path.name.rpartition("-")[2] for path in group.glob("monkey-*")))
    os.kill(int(ask("show", "-P", "MainPID")), 9)
stop_by_systemd(fleet, agent)
"""


def test_the_kernel_ends_a_job_of_a_unit_and_its_neighbour_goes_on(tmp_path: Path) -> None:
    said = run_script(tmp_path, SCRIPT)
    places = [json.loads(line) for line in said.splitlines() if line.startswith("[")]
    assert len(places) == 2, said
    for told, ledger in places:
        answer = json.loads(told)
        assert answer["told"][0::2] == ["failed", 137, ""], said
        assert answer["told"][1].startswith("needed more than 64 MiB of memory: it held 64 MiB"), answer
        assert answer["told"][3] == "succeeded"
        assert answer["said"][0].startswith("resources.memory: the kernel"), answer
        assert ledger == "went on"
    assert [line for line in said.splitlines() if line.startswith("life")] == [
        f"life {lives} ['1', '2', 'agent']" for lives in ("x", "xx")
    ], said
