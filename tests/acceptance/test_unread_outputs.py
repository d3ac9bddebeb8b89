"""Jobs that leave what their own user cannot read: none of it is lost in silence, and none counts as kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.shop import Shop

#: Leaves a directory or a file without any right; `m` says where.
JOB = """\
import os, sys
m, out = sys.argv[1], os.environ["MONKEY_OUTPUT_DIR"]
places = {
    "outputs": out,
    "below": out + "/run/ckpt",
    "named": "run",
    "work": ".",
    "metrics": os.environ["MONKEY_METRICS_DIR"],
    "workspace": os.path.dirname(out),
    "elsewhere": "cache",
}
place = places.get(m, out)
os.makedirs(place, exist_ok=True)
with open(place + "/weights.jsonl", "w") as file:
    file.write('{"t": 1, "m": {"loss": 1}}\\n')
with open(out + "/beside.txt", "w") as file:
    file.write("can be read")
os.chmod(out + "/weights.jsonl" if m == "file" else place, 0)
"""
#: Each way to what the reason names, below the workspace; "" where nothing is lost.
LOST = {
    "outputs": "outputs",
    "below": "outputs/run/ckpt",
    "named": "work/run",
    "work": "work",
    "file": "outputs/weights.jsonl",
    "metrics": "metrics",
    "workspace": "",
    "elsewhere": "",
}
#: Even root obeys the rights of files without these.
_OBEYS = "-dac_override,-dac_read_search"


class ObedientShop(Shop):
    """A shop in which even root obeys the rights of files, as a user does."""

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        obey = ["setpriv", f"--bounding-set={_OBEYS}", f"--inh-caps={_OBEYS}"] if os.geteuid() == 0 else []
        return [*obey, *super()._command(arguments)]


@pytest.fixture
def obedient(shop: Shop, tmp_path: Path) -> ObedientShop:
    """Return a shop of that kind."""
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv")
    return ObedientShop(tmp_path / "obedient")


def test_what_cannot_be_read_fails_its_job_and_stays(obedient: ObedientShop) -> None:
    (obedient.root / "leave.py").write_text(JOB)
    ways = ", ".join(LOST)
    obedient.spec(f"command: python3 leave.py {{m}}\nparameters: {{m: [{ways}]}}\noutputs: [run/, '*.bin']\n")
    obedient.run("apply", code=1)
    jobs: dict[str, dict[str, Any]] = {job["parameters"]["m"]: job for job in obedient.json("list", "jobs", "sweep")}
    elsewhere = jobs.pop("elsewhere")
    assert (elsewhere["state"], elsewhere["reason"]) == ("succeeded", None), "no output can be in there"
    for way, job in jobs.items():
        assert job["state"] == "failed", way
        told, _, hint = job["reason"].partition(" (hint: ")
        assert told.startswith("what it made could not be read: Permission denied: "), way
        assert hint.startswith("copy it from there,"), way
        place = Path(told.rpartition(": ")[2])
        kept = next(above for above in (place, *place.parents) if above.name == f"{job['job']}.1")
        assert way == "workspace" or place == kept / LOST[way]
        kept.chmod(0o700)
        place.chmod(0o700)
        assert [found for found in kept.rglob("weights.jsonl") if found.read_text()], way
    for way in ("below", "named"):
        assert set(obedient.json("info", jobs[way]["job"])["outputs"]) == {"beside.txt"}, "what can be read is kept"


def test_a_checkpoint_that_cannot_be_read_is_named_in_the_log(obedient: ObedientShop) -> None:
    text = "command: 'echo 1 > $MONKEY_CHECKPOINT_DIR/state; chmod 0 $MONKEY_CHECKPOINT_DIR/state; exit 1'\n"
    obedient.spec(text + "parameters: {}\noutputs: []\n")
    obedient.run("apply", code=1)
    assert "its checkpoint cannot be saved: Permission denied" in obedient.run("logs", "sweep").stdout
