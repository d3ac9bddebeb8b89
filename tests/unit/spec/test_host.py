"""How hosts are named."""

from __future__ import annotations

import pytest

from monkey.errors import FleetError
from monkey.spec.host import Host, parse


@pytest.mark.parametrize(
    ("text", "host", "command"),
    [
        ("gpu1", Host("gpu1"), "ssh gpu1"),
        ("user@gpu2:2222", Host("gpu2", "user", 2222), "ssh -p 2222 user@gpu2"),
        ("me.you@10.0.0.1", Host("10.0.0.1", "me.you"), "ssh me.you@10.0.0.1"),
        ("[fd00::1]:22", Host("fd00::1", None, 22), "ssh -p 22 fd00::1"),
        ("[fe80::1%eth0]", Host("fe80::1%eth0"), "ssh fe80::1%eth0"),
    ],
)
def test_hosts(text: str, host: Host, command: str) -> None:
    assert parse(text) == host
    assert str(host) == text
    assert host.command == command
    assert host.words[-2:] == ["--", host.name]


@pytest.mark.parametrize(
    "text", ["", "-oProxyCommand=x", "a b", "-l@gpu", "gpu:", "gpu:0", "gpu:70000", "gpu:x", "a@b@c", "fd00::1", "a/b"]
)
def test_what_is_no_host(text: str) -> None:
    with pytest.raises(FleetError, match="expected a host, found"):
        parse(text)
