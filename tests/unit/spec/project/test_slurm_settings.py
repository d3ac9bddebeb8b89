"""Providers of type `slurm` in monkey.yaml: what they may say, and each mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.project.engines.slurm_settings import SlurmSettings
from monkey.spec.project.project import load_project
from monkey.spec.project.provider import Provider

HEAD = "project: x\nproviders:\n  lab:\n    type: slurm\n"


def lab(body: str, root: Path) -> Provider:
    """Return the provider `lab`; `body` begins on line 5."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (root / "monkey.yaml").write_text(HEAD + lines)
    return load_project(root).providers["lab"]


def test_a_time_is_enough(tmp_path: Path) -> None:
    assert lab("time: 4h", tmp_path) == Provider("slurm", idle_timeout=30, slurm=SlurmSettings(4 * 3600))


def test_everything_that_pilots_may_say(tmp_path: Path) -> None:
    body = (
        "login: me@login.hpc:2222\npilots: 8\ntime: 1d\npartition: gpu,long\naccount: lab1\nqos: high\n"
        "constraint: 'a100&nvlink'\nreservation: r_1\ncpus: 8\nmemory: 32GiB\ngpus: a100:2\nworkdir: /work/me/monkey\n"
        "scratch: $TMPDIR/x\nsetup: [module load cuda/12.4, 'source ~/env/bin/activate']\n"
        "sbatch: [--exclude=n13, --mail-type=END]\nstore_path: /work/me/store\nmax_slots: 4"
    )
    made = lab(body, tmp_path)
    words = {"partition": "gpu,long", "account": "lab1", "qos": "high", "constraint": "a100&nvlink"}
    assert made.max_slots == 4
    assert made.queued == SlurmSettings(
        time=86400,
        login="me@login.hpc:2222",
        pilots=8,
        cpus=8,
        memory=32 << 30,
        gpus=2,
        gpu_type="a100",
        options=(*words.items(), ("reservation", "r_1")),
        sbatch=("--exclude=n13", "--mail-type=END"),
        workdir="/work/me/monkey",
        scratch="$TMPDIR/x",
        setup=("module load cuda/12.4", "source ~/env/bin/activate"),
        store_path="/work/me/store",
    )
    assert lab("time: 1h\ngpus: 1", tmp_path).queued.gpus == 1


@pytest.mark.parametrize(
    ("body", "place", "message", "hint"),
    [
        ("pilots: 1", (4, 5), "expected the time of a pilot, found none", "time: 4h"),
        ("time: 1m", (5, 11), "expected 2m or more, found 60s", "time: 4h"),
        ("time: UNLIMITED", (5, 11), "expected a duration", "2h"),
        (
            "time: 8m\nlease: 5m",
            (6, 12),
            "expected a lease of half a pilot's time at most (4m), found 5m",
            "longer time",
        ),
        ("time: 1h\npilots: 0", (6, 13), "expected a number of pilots, found 0", "1 to 1000"),
        ("time: 1h\ncpus: true", (6, 11), "expected a number of CPUs, found true", "1 to 4096"),
        ("time: 1h\nmemory: much", (6, 13), "expected a size", "GiB"),
        ("time: 1h\ngpus: a100", (6, 11), "expected a number of GPUs, found the text 'a100'", "a100:1"),
        ("time: 1h\ngpus: true", (6, 11), "expected a number of GPUs, found true", "a100:1"),
        ("time: 1h\npartition: 'a b'", (6, 16), "expected a word for sbatch's --partition", "without blanks"),
        ("time: 1h\nqos: --wrap=x", (6, 10), "expected a word for sbatch's --qos", "without blanks"),
        ("time: 1h\nlogin: -oProxyCommand=x", (6, 12), "expected the login node", "~/.ssh/config"),
        ("time: 1h\nlogin: 5", (6, 12), "expected the login node, found 5", "USER@NAME"),
        ("time: 1h\nworkdir: here", (6, 14), "expected a directory on the shared file system", "~/.monkey"),
        ("time: 1h\nworkdir: ~/%j", (6, 14), "expected a directory on the shared file system", "without '%'"),
        ("time: 1h\nworkdir: ~/../etc", (6, 14), "expected a directory without '..'", "~/.monkey"),
        ("time: 1h\nscratch: '$(id)'", (6, 14), "expected a directory on the node's own disk", "$TMPDIR"),
        ("time: 1h\nscratch: '/x\";id'", (6, 14), "expected a directory on the node's own disk", "$TMPDIR"),
        ("time: 1h\nsetup: module load x", (6, 12), "expected a list", "[module load cuda/12.4]"),
        ("time: 1h\nsetup: ['']", (6, 13), "expected a line for bash", "[module load cuda/12.4]"),
        ("time: 1h\nsbatch: [--time=5]", (6, 14), "sbatch's --time cannot be given here", "`time:`"),
        ("time: 1h\nsbatch: [-pgpu]", (6, 14), "sbatch's -p cannot be given here", "`partition:`"),
        ("time: 1h\nsbatch: [script.sh]", (6, 14), "expected an option of sbatch", "--exclude=n13"),
        ("time: 1h\nstore_path: store", (6, 17), "expected the store's directory on the pilots' nodes", "absolute"),
        ("time: 1h\nhosts: [a]", (6, 5), "unknown key 'hosts' of a provider of type slurm", ""),
    ],
)
def test_mistakes_have_a_place_and_a_hint(
    body: str, place: tuple[int, int], message: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as caught:
        lab(body, tmp_path)
    problem = caught.value.problems[0]
    assert (problem.line, problem.column) == place
    assert problem.message.startswith(message) and hint in (problem.hint or "")
