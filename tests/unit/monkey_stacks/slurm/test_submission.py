"""What sbatch gets: options and a script that bash takes, whatever monkey.yaml says."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from monkey.errors import FleetError
from monkey.spec.project.engines.slurm_settings import SlurmSettings
from monkey_stacks.slurm.slurm_store import expand_home, place_store
from monkey_stacks.slurm.submission import list_batch_options, list_options, write_script

PLAIN = SlurmSettings(4 * 3600)


def script(slurm: SlurmSettings, fleet: str = "/work/it's here") -> str:
    made = write_script(slurm, 10, "/usr/bin/python3", (3, 11), (75, 78))
    return made.replace("@FLEET@", "'" + fleet.replace("'", "'\\''") + "'")


def test_options_of_sbatch() -> None:
    assert list_options(PLAIN) == ["--time=240", "--nodes=1", "--ntasks=1", "--cpus-per-task=1"]
    slurm = replace(PLAIN, memory=3 << 30, gpus=2, gpu_type="a100", options=(("partition", "gpu"),), sbatch=("-x n1",))
    assert list_options(slurm)[4:] == ["--mem=3072M", "--gres=gpu:a100:2", "--partition=gpu", "-x n1"]
    assert "--gres=gpu:1" in list_options(replace(PLAIN, gpus=1))
    assert "--signal=B:USR1@90" in list_batch_options(PLAIN, 10)
    assert not any("signal" in each for each in list_batch_options(replace(PLAIN, time=300), 10))


@pytest.mark.parametrize("setup", [(), ("module load cuda/12.4",), ("echo 'a \"b\" $c'", "x=1; y=2 # why")])
def test_bash_takes_the_script(setup: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(script(replace(PLAIN, setup=setup, scratch="$TMPDIR/x")))
    done = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "@" not in path.read_text().replace('"$@"', "")


def run(slurm: SlurmSettings, fleet: Path) -> subprocess.CompletedProcess[str]:
    """Run the script where there is no Slurm, up to where it would need one."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(fleet), "SLURMD_NODENAME": "n1", "SLURM_JOB_ID": "7", "TMPDIR": "/x"}
    return subprocess.run(["bash"], input=script(slurm, str(fleet)), env=env, capture_output=True, text=True)


def test_a_pilot_that_nobody_wants_any_more_ends_at_once(tmp_path: Path) -> None:
    done = run(replace(PLAIN, setup=("echo it began",)), tmp_path)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_line_of_setup_that_fails_is_noted_and_ends_the_pilot(tmp_path: Path) -> None:
    fleet = tmp_path / "it's here"
    fleet.mkdir()
    (fleet / "settings.json").touch()
    done = run(replace(PLAIN, setup=("true", "module load 'x'", "echo too far")), fleet)
    assert done.returncode == 78 and "too far" not in done.stdout
    assert (fleet / "failed" / "n1-7").read_text() == "setup failed: module load 'x'\n"


@pytest.mark.parametrize(
    ("login", "url", "path", "place"),
    [
        ("hpc", "s3://b/p?profile=me&region=r", "", "s3://b/p?region=r"),
        ("me@hpc", "ssh://me@hpc/~/store", "", "~/store"),
        ("hpc", "ssh://HPC/work/s", "", "/work/s"),
        ("hpc", "/here/store", "/there/store", "/there/store"),
        ("", "/here/store", "/there/store", "/there/store"),
    ],
)
def test_where_pilots_find_the_store(login: str, url: str, path: str, place: str) -> None:
    assert place_store("lab", replace(PLAIN, login=login, store_path=path), url) == place
    assert expand_home("~/store", "/home/me") == "/home/me/store"


@pytest.mark.parametrize(
    ("login", "url", "hint"),
    [
        ("hpc", "/here/store", "store: ssh://hpc/~/monkey-store"),
        ("", "/here/store", "a directory on the shared file system"),
        ("hpc", "ssh://elsewhere/~/store", "store_path:"),
        ("", "ssh://elsewhere/~/store", "store_path:"),
    ],
)
def test_a_store_that_nodes_cannot_reach_is_refused(login: str, url: str, hint: str) -> None:
    with pytest.raises(FleetError, match="lab's nodes cannot reach the store") as caught:
        place_store("lab", replace(PLAIN, login=login), url)
    assert hint in (caught.value.hint or "")
