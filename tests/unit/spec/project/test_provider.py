"""Providers of monkey.yaml that are hosts: defaults, what they may say, and each mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.project.project import load_project
from monkey.spec.project.provider import Provider

HEAD = "project: x\nproviders:\n  lab:\n    type: ssh\n"


def lab(body: str, root: Path) -> Provider:
    """Return the provider `lab`; `body` begins on line 5."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (root / "monkey.yaml").write_text(HEAD + lines)
    return load_project(root).providers["lab"]


def test_hosts_have_defaults_of_their_own(tmp_path: Path) -> None:
    assert lab("hosts: [gpu1]", tmp_path) == Provider("ssh", None, 600, None, ("gpu1",), "~/.monkey", "auto")


def test_everything_that_hosts_may_say(tmp_path: Path) -> None:
    body = "hosts: [gpu1, 'me@gpu2:2222', '[fd00::1]:22']\nworkdir: /scratch/me\ngpus: [0, 2]\n"
    made = lab(body + "max_slots: 2\nidle_timeout: 1h\ncache_size: 1GiB", tmp_path)
    assert made == Provider("ssh", 2, 3600, 1 << 30, ("gpu1", "me@gpu2:2222", "[fd00::1]:22"), "/scratch/me", (0, 2))
    assert lab("hosts: [gpu1]\ngpus: []", tmp_path).gpus == ()
    assert lab("hosts: [gpu1]\nlease: 5m", tmp_path).lease == 300
    assert lab("hosts: [gpu1]\nruntime: charliecloud", tmp_path).runtime == "charliecloud"


@pytest.mark.parametrize(
    ("body", "place", "message", "hint"),
    [
        ("max_slots: 1", (4, 5), "expected hosts, found none", "[gpu1, user@gpu2:2222]"),
        ("hosts: gpu1", (5, 12), "expected hosts, found the text 'gpu1'", "[gpu1, user@gpu2:2222]"),
        ("hosts: []", (5, 12), "expected hosts, found an empty list", "[gpu1, user@gpu2:2222]"),
        ("hosts: {gpu1: {}}", (5, 12), "expected hosts, found a mapping", "[gpu1, user@gpu2:2222]"),
        ("hosts:\n- gpu1\n- gpu1", (7, 7), "the host 'gpu1' is there twice", "remove one"),
        ("hosts:\n- gpu1\n- 5", (7, 7), "expected a host, found 5", "in quotes"),
        ("hosts: [null]", (5, 13), "expected a host, found nothing (null)", "in quotes"),
        ("hosts: [ssh://gpu1]", (5, 13), "expected a host, found 'ssh://gpu1'", "USER@NAME:PORT"),
        ("hosts: ['gpu1:99999']", (5, 13), "expected a host, found 'gpu1:99999'", "USER@NAME:PORT"),
        ("hosts: [-oProxyCommand=x]", (5, 13), "expected a host, found '-oProxyCommand=x'", "~/.ssh/config"),
        ("hosts: [a]\nworkdir: there", (6, 14), "expected a directory on the hosts, found the text 'there'", "~/"),
        ("hosts: [a]\nworkdir: /", (6, 14), "expected a directory on the hosts, found the text '/'", "~/"),
        ("hosts: [a]\nworkdir: ~/", (6, 14), "expected a directory on the hosts, found the text '~/'", "below / or ~/"),
        ("hosts: [a]\nworkdir: ~/../../etc", (6, 14), "expected a directory on the hosts", "without '..'"),
        ("hosts: [h1, H1]", (5, 17), "the host 'H1' is there twice", "remove one"),
        ("hosts: [a]\nworkdir: ~", (6, 14), "expected a directory on the hosts, found nothing (null)", "~/"),
        ("hosts: [a]\ngpus: all", (6, 11), "expected auto or numbers of GPUs, found the text 'all'", "nvidia-smi"),
        ("hosts: [a]\ngpus: 2", (6, 11), "expected auto or numbers of GPUs, found 2", "[0, 2]"),
        ("hosts: [a]\ngpus: [0, -1]", (6, 15), "expected the number of a GPU, found -1", "[0, 2]"),
        ("hosts: [a]\ngpus: [true]", (6, 12), "expected the number of a GPU, found true", "[0, 2]"),
        ("hosts: [a]\nmax_slots: 0", (6, 16), "expected a whole number of 1 or more, found 0", "as fit"),
        ("hosts: [a]\nidle_timeout: soon", (6, 19), "expected a duration", "30m"),
        ("hosts: [a]\nlease: soon", (6, 12), "expected a duration", "30m"),
        ("hosts: [a]\nlease: 60", (6, 12), "expected a lease from 90s to 10m, found 60", "leave it out for 90s"),
        ("hosts: [a]\nlease: 11m", (6, 12), "expected a lease from 90s to 10m, found the text '11m'", "write 5m"),
        ("hosts: [a]\nruntime: lxc", (6, 14), "expected a runtime of containers, found the text 'lxc'", "podman"),
        ("hosts: [a]\ncache_size: much", (6, 17), "expected a size", "GiB"),
        ("hosts: [a]\nmounts: [/data]", (6, 13), "expected paths and what is mounted there", "/data: nas:/export"),
        ("hosts: [a]\nmounts: {data: }", (6, 14), "expected the absolute path of a mount", "findmnt"),
        ("hosts: [a]\nmounts: {/a/../b: }", (6, 14), "expected the absolute path of a mount", "findmnt"),
        ("hosts: [a]\nmounts: {/data: nas}", (6, 21), "expected an export of NFS", "server:/path, or nothing"),
        ("hosts: [a]\nmounts: {/data: {command: x}}", (6, 21), "hosts run no command to mount", "/etc/fstab"),
        ("hosts: [a]\ngpu: [0]", (6, 5), "unknown key 'gpu' of a provider of type ssh", "'gpus'"),
    ],
)
def test_mistakes(body: str, place: tuple[int, int], message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        lab(body, tmp_path)
    (found,) = caught.value.problems
    assert ((found.line, found.column), hint in (found.hint or "")) == (place, True)
    assert found.message.startswith(message)


def test_mistakes_are_told_together(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        lab("hosts: [a, a]\nworkdir: there\ngpus: 1", tmp_path)
    assert [problem.line for problem in caught.value.problems] == [5, 6, 7]


def test_a_key_of_another_type_says_which(tmp_path: Path) -> None:
    (tmp_path / "monkey.yaml").write_text("providers:\n  lab: {hosts: [gpu1]}\n")
    with pytest.raises(SpecError) as caught:
        load_project(tmp_path)
    (found,) = caught.value.problems
    assert found.message == "unknown key 'hosts' of a provider of type local"
    assert (found.line, found.hint) == (2, "write type: ssh beside it")
