"""How hosts are named."""

from __future__ import annotations

import pytest

from monkey.errors import FleetError, StoreError
from monkey.spec.project.ssh_host import SshHost, parse_ssh_host
from monkey.store.sftp import url


@pytest.mark.parametrize(
    ("text", "host", "command"),
    [
        ("gpu1", SshHost("gpu1"), "ssh gpu1"),
        ("user@gpu2:2222", SshHost("gpu2", "user", 2222), "ssh -p 2222 user@gpu2"),
        ("me.you@10.0.0.1", SshHost("10.0.0.1", "me.you"), "ssh me.you@10.0.0.1"),
        ("[fd00::1]:22", SshHost("fd00::1", None, 22), "ssh -p 22 fd00::1"),
        ("xn--gpu-gre-2ya.lab", SshHost("xn--gpu-gre-2ya.lab"), "ssh xn--gpu-gre-2ya.lab"),
        ("me@corp.example@gpu1", SshHost("gpu1", "me@corp.example"), "ssh me@corp.example@gpu1"),
        ("_svc-1@GPU_1.lab", SshHost("GPU_1.lab", "_svc-1"), "ssh _svc-1@GPU_1.lab"),
        ("[fe80::1%eth0]", SshHost("fe80::1%eth0"), "ssh fe80::1%eth0"),
    ],
)
def test_hosts(text: str, host: SshHost, command: str) -> None:
    assert parse_ssh_host(text) == host
    assert str(host) == text
    assert host.command == command
    assert host.words[-2:] == ["--", host.name]


@pytest.mark.parametrize(
    "text", ["", "-oProxyCommand=x", "a b", "-l@gpu", "gpu:", "gpu:0", "gpu:70000", "gpu:x", "@gpu", "fd00::1", "a/b"]
)
def test_what_is_no_host(text: str) -> None:
    with pytest.raises(FleetError, match="expected a host, found"):
        parse_ssh_host(text)


#: Of OpenSSH's own lists of what it refuses in names, and what begins as an option does.
HOSTILE = [*"'`\"$\\;&<>|(){}*~!\t\n\0\x7f", " ", "$(id)", "${IFS}"]
NAMES = ["-oProxyCommand=id", *(f"gpu{char}" for char in HOSTILE), *(f"{char}gpu" for char in HOSTILE), "größe"]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_are_refused_alike(name: str) -> None:
    """Of hosts and users, in `hosts:` and in the URL of a store, as they are and percent-encoded."""
    for text in (name, f"{name}@gpu", f"[fe80::1%{name}]"):
        with pytest.raises(FleetError, match="expected a host, found"):
            parse_ssh_host(text)
    encoded = "".join(f"%{byte:02x}" for byte in name.encode())
    for place in (name, encoded, f"{name}@gpu", f"{encoded}@gpu", f"[fe80::1%{name}]"):
        try:
            found = url.parse_sftp_url(f"ssh://{place}/data/x")
        except StoreError as exc:
            assert "expected" in exc.message and exc.hint
        else:
            # urlsplit drops a tab or a line's end.
            assert (found.host, found.user) in (("gpu", None), ("gpu", "gpu"), ("fe80::1%gpu", None)), found


@pytest.mark.parametrize(
    ("store_url", "user", "host"),
    [
        ("ssh://Me.you@GPU_1.lab/x", "Me.you", "gpu_1.lab"),
        ("ssh://me%40corp.example@gpu/x", "me@corp.example", "gpu"),
        ("ssh://_svc+1@10.0.0.1:22/x", "_svc+1", "10.0.0.1"),
        ("ssh://[fe80::1%eth0.7]:22/x", None, "fe80::1%eth0.7"),
    ],
)
def test_names_in_the_url_of_a_store(store_url: str, user: str | None, host: str) -> None:
    found = url.parse_sftp_url(store_url)
    assert (found.user, found.host) == (user, host)
    assert url.parse_sftp_url(found.url) == found
