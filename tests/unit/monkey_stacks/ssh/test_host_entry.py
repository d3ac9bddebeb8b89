"""What `monkey init --provider ssh` writes, by the answers of hosts."""

from __future__ import annotations

from typing import Any

import pytest

from monkey.spec.project.provider import find_provider_mistakes, parse_provider
from monkey.spec.yaml.document import parse_document
from monkey_stacks.ssh.setup.host_entry import describe_models, read_finding, write_host_entry


def answer(**others: Any) -> dict[str, Any]:
    """Return what a host says; `others` differ."""
    flags = {"writable": True, "occupied": False, "linger": True, "user_systemd": True, "ends_at_logout": False}
    system = {"python": [3, 11, 2], "platform": "linux-x86_64", "libc": "glibc 2.36", "cron": False, "free": 3 << 30}
    there: dict[str, Any] = {"host": "m1", "name": "gpu1", "user": "me", "workdir": "/home/me/.monkey", "key": ""}
    none: dict[str, Any] = {
        "lacks": "",
        "signers": "",
        "bundles": [],
        "agents": [],
        "orphans": [],
        "groups": [],
        "others": [],
        "secrets": ["k", {}],
    }
    has = {"cpus": 8, "memory": 32 << 30, "disk": 4 << 30, "models": [], "gpus": []}
    return {**flags, **system, **there, **none, **has, **others}


def entry(*hosts: tuple[str, dict[str, Any]]) -> tuple[str, tuple[str, ...]]:
    """Return the lines, and the hosts that they name; they must be an entry without mistakes."""
    text = write_host_entry([read_finding(name, said) for name, said in hosts])
    data = parse_document(f"providers:\n  lab:\n{text}", "monkey.yaml").data
    assert find_provider_mistakes(data["providers"]) == []
    return text, parse_provider(data["providers"]["lab"]).hosts


def test_each_host_stands_with_what_it_has() -> None:
    gpus = {"models": ["NVIDIA A100", "NVIDIA A100", "Tesla T4"], "gpus": ["a", "b", "c"]}
    text, hosts = entry(("gpu1", answer()), ("me@gpu2:2222", answer(cpus=1, **gpus, linger=False, cron=True)))
    assert hosts == ("gpu1", "me@gpu2:2222")
    assert "- gpu1  # 8 CPUs, 32 GiB, disk 3 GiB free of 4 GiB, Python 3.11, systemd\n" in text
    assert "# 1 CPU, 32 GiB, 3 GPUs (2 NVIDIA A100 + 1 Tesla T4), disk" in text and "# gpus: [0, 1]" in text
    assert "# gpus:" not in entry(("gpu1", answer()))[0]


@pytest.mark.parametrize("name", ["null", "on", "1e3", "123", "0x10", "[fd00::1]:22", "me@[::1]"])
def test_a_name_that_yaml_would_take_for_something_else_stands_in_quotes(name: str) -> None:
    assert entry((name, answer()))[1] == (name,)


def test_what_a_host_says_stays_in_its_comment() -> None:
    said = answer(models=["A100\n  evil: {type: local}\x1b[31m # " + "x" * 99, "\n"], gpus=["a", "b"])
    text, hosts = entry(("gpu1", said))
    assert hosts == ("gpu1",) and text.count("\n") == 4 and "\x1b" not in text and "x" * 60 not in text
    assert "+ 1 GPU)" in text, "one without a name"
    with pytest.raises(ValueError):
        read_finding("gpu1", answer(cpus="8\n  evil: {}"))


def test_gpus_are_counted_by_their_model() -> None:
    assert describe_models(["Tesla T4"]) == "1 GPU (Tesla T4)"
    assert describe_models([f"K{at}" for at in range(9)]).count("+") == 3
