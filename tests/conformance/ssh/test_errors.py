"""What can be wrong on the way to a store on an SSH host: each with what was expected, what was found, and the fix."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monkey.errors import KeyMissing, StoreError, StoreMissing, StoreRefused, StoreReplaced, StoreUnavailable
from monkey.store.open import locate_url, open_store
from tests.loops import Run
from tests.sshd import Sshd, keygen, serve


def refusal(run: Run, url: str, kind: type[StoreError], *, begin: bool = True) -> str:
    """Return what `open_store` says against it, in one line with the hint."""
    with pytest.raises(kind) as caught:
        run(open_store(url, begin=begin))
    assert caught.value.hint
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "one_form"),
    [
        ("ssh://host/a/b/", "ssh://host/a/b"),
        ("SSH://me@host:22/a//b/./c", "ssh://me@host:22/a/b/c"),
        ("ssh://host/~/store", "ssh://host/~/store"),
        ("ssh://[::1]:2222/größe x", "ssh://[::1]:2222/gr%C3%B6%C3%9Fe%20x"),
    ],
)
def test_a_url_has_one_form(url: str, one_form: str) -> None:
    assert locate_url(url) == locate_url(one_form) == one_form


@pytest.mark.parametrize(
    "url",
    [
        "ssh://host",
        "ssh://host/",
        "ssh:///dir",
        "ssh://host/~",
        "ssh://host/~other/dir",
        "ssh://host/a/../b",
        "ssh://host/a?x=1",
        "ssh://host:port/a",
        "ssh://me:secret@host/a",
        "ssh://-oProxyCommand=x/a",
    ],
)
def test_a_url_that_names_no_directory_on_a_host_is_refused(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        locate_url(url)
    assert caught.value.hint and "secret" not in str(caught.value)


def test_an_unknown_host_key_is_refused(host: Sshd, run: Run, tmp_path: Path) -> None:
    host.known_hosts.write_text("")
    said = refusal(run, f"ssh://there{tmp_path}/s", StoreRefused)
    fingerprint = subprocess.check_output(["ssh-keygen", "-lf", host.home / "host_key.pub"], text=True).split()[1]
    assert "is not known here" in said and fingerprint in said and f"[127.0.0.1]:{host.port}" in said
    host.known_hosts.unlink()
    assert "is not known here" in refusal(run, f"ssh://there{tmp_path}/s", StoreRefused)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("way", ["none", "/dev/null"])
def test_a_configuration_that_knows_no_hosts_trusts_none(host: Sshd, run: Run, tmp_path: Path, way: str) -> None:
    """`UserKnownHostsFile none` with `StrictHostKeyChecking no` is how people switch the check off. Not here."""
    config = host.home / ".ssh" / "config"
    config.write_text(f"{config.read_text()}  UserKnownHostsFile {way}\n  StrictHostKeyChecking no\n")
    assert "is not known here" in refusal(run, f"ssh://there{tmp_path}/s", StoreRefused)


def test_a_changed_host_key_is_refused(host: Sshd, run: Run, tmp_path: Path) -> None:
    keygen(host.home / "other")
    host.know(host.home / "other.pub")
    said = refusal(run, f"ssh://there{tmp_path}/s", StoreRefused)
    assert "has changed" in said and "ssh-keygen -R" in said


def test_a_host_key_may_be_known_by_an_alias(host: Sshd, run: Run, tmp_path: Path) -> None:
    kind, key = (host.home / "host_key.pub").read_text().split()[:2]
    host.known_hosts.write_text(f"alias {kind} {key}\n")
    config = host.home / ".ssh" / "config"
    config.write_text(f"{config.read_text()}  HostKeyAlias alias\n")
    run(run(open_store(f"ssh://there{tmp_path}/s", begin=True)).close())
    assert (tmp_path / "s" / "format").exists()


def test_a_key_that_is_not_authorized(host: Sshd, run: Run, tmp_path: Path) -> None:
    (host.home / "authorized_keys").write_text("")
    said = refusal(run, f"ssh://there{tmp_path}/s", StoreRefused)
    assert f"{host.home}/id" in said and "ssh-copy-id" in said and "no agent" in said


@contextlib.contextmanager
def agent(home: Path) -> Iterator[str]:
    """Run an ssh-agent."""
    path = str(home / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL)
    try:
        while not os.path.exists(path):  # noqa: PTH110
            assert process.poll() is None
        yield path
    finally:
        process.terminate()
        process.wait()


def test_an_encrypted_key_works_through_an_agent_alone(
    host: Sshd, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"ssh://there{tmp_path}/s"
    with agent(host.home) as sock:
        subprocess.run(["ssh-add", "-q", str(host.home / "id")], env={**os.environ, "SSH_AUTH_SOCK": sock}, check=True)
        subprocess.run(
            ["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret words", "-f", str(host.home / "id")], check=True
        )
        assert "needs an agent" in refusal(run, url, StoreRefused)
        monkeypatch.setenv("SSH_AUTH_SOCK", sock)
        run(run(open_store(url, begin=True)).close())
        monkeypatch.delenv("SSH_AUTH_SOCK")
        config = host.home / ".ssh" / "config"
        config.write_text(f"{config.read_text()}  IdentityAgent {sock}\n")
        (host.home / "id").unlink()  # its public half is enough
        run(run(open_store(url)).close())
    assert "accepts none of our keys" in refusal(run, url, StoreRefused)  # the agent is gone


def test_a_jump_host_is_used_and_checked(host: Sshd, run: Run, tmp_path: Path) -> None:
    config = host.home / ".ssh" / "config"
    config.write_text(
        f"Host far\n  ProxyJump there\n  HostKeyAlias far\n{config.read_text().replace('there', 'there far')}"
    )
    kind, key = (host.home / "host_key.pub").read_text().split()[:2]
    jump = host.known_hosts.read_text()
    assert "host key of [far]" in refusal(run, f"ssh://far{tmp_path}/s", StoreRefused)
    host.known_hosts.write_text(f"{jump}far {kind} {key}\n")
    store = run(open_store(f"ssh://far{tmp_path}/s", begin=True))
    assert run(store.create("a", b"x"))
    run(store.close())
    host.known_hosts.write_text(f"far {kind} {key}\n")
    assert f"host key of [127.0.0.1]:{host.port}" in refusal(run, f"ssh://far{tmp_path}/s", StoreRefused)


def test_hosts_that_are_not_there(host: Sshd, run: Run, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        assert f"127.0.0.1 port {port} refuses" in refusal(run, f"ssh://127.0.0.1:{port}/s", StoreUnavailable)
    with pytest.raises(StoreUnavailable, match=r"no-such-host\.invalid"):
        run(open_store("ssh://no-such-host.invalid/s"))


def test_a_configuration_that_cannot_be_read(host: Sshd, run: Run, tmp_path: Path) -> None:
    (host.home / ".ssh" / "config").write_text("Host there\n  Port many\n")
    assert "~/.ssh/config" in refusal(run, f"ssh://there{tmp_path}/s", StoreRefused)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("", "Subsystem sftp"),
        ("Subsystem sftp /no/such/program", "Subsystem sftp"),
        ("Subsystem sftp /bin/echo Welcome to this host, dear user", "Welcome"),
    ],
)
def test_a_host_without_sftp(
    require: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, extra: str, said: str
) -> None:
    require("sshd")
    with serve(tmp_path / "home", extra) as server:
        monkeypatch.setenv("HOME", str(server.home))
        assert said in refusal(run, f"ssh://there{tmp_path}/s", StoreError)


def test_sftp_alone_is_enough(
    require: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """No shell to sync with, and one channel a connection: what hosts for files allow."""
    require("sshd")
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    extra = "Subsystem sftp internal-sftp\nForceCommand internal-sftp\nMaxSessions 1"
    with serve(tmp_path / "home", extra) as server:
        monkeypatch.setenv("HOME", str(server.home))
        store = run(open_store(f"ssh://there{tmp_path}/s", begin=True))

        async def many() -> None:
            import asyncio

            await asyncio.gather(*(store.put_file(f"f/{n}", tmp_path / "file") for n in range(50)))
            await asyncio.gather(*(store.create(f"c/{n}", b"x") for n in range(50)))

        run(many())
        assert len(run(store.list(""))) == 101
        run(store.close())
    assert {path.stat().st_size for path in (tmp_path / "s" / "f").iterdir()} == {100_000}


def test_what_is_at_the_place(host: Sshd, run: Run, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "main.tex").write_text("")
    (tmp_path / "file").write_text("")
    assert "'main.tex'" in refusal(run, f"ssh://there{tmp_path}/thesis", StoreRefused)
    assert "no directory" in refusal(run, f"ssh://there{tmp_path}/file", StoreError)
    refusal(run, f"ssh://there{tmp_path}/never", StoreMissing, begin=False)
    assert not (tmp_path / "never").exists()
    run(run(open_store(f"ssh://there{tmp_path}/a/b/c", begin=True)).close())
    assert (tmp_path / "a" / "b" / "c" / "format").exists()
    (tmp_path / "a" / "b" / "c" / "files").mkdir()
    run(run(open_store(f"ssh://there{tmp_path}/a/b/c", begin=True)).close())  # what a store has is nothing strange


def test_another_store_in_its_place_is_told_apart(host: Sshd, run: Run, tmp_path: Path) -> None:
    store = run(open_store(f"ssh://there{tmp_path}/s", begin=True))
    assert run(store.get("format"))
    (tmp_path / "s").rename(tmp_path / "away")
    other = run(open_store(f"ssh://there{tmp_path}/s", begin=True))
    for ask in (lambda: store.get("none"), lambda: store.list("none/"), lambda: store.delete("none")):
        with pytest.raises(StoreReplaced, match="another store is at"):
            run(ask())
    with pytest.raises(KeyMissing):
        run(other.get("none"))
    run(store.close())
    run(other.close())


def test_a_store_that_vanishes_is_not_begun_anew(host: Sshd, run: Run, tmp_path: Path) -> None:
    store = run(open_store(f"ssh://there{tmp_path}/s", begin=True))
    run(store.put("a/b", b"x"))
    (tmp_path / "s").rename(tmp_path / "away")
    asked = [
        lambda: store.create("a/c", b"y"),
        lambda: store.create("n/c", b"y", durable=False),
        lambda: store.put("a/c", b"y"),
        lambda: store.get("a/b"),
        lambda: store.list(""),
        lambda: store.delete("a/b"),
    ]
    for stage in (lambda: None, lambda: (tmp_path / "s").mkdir(), lambda: (tmp_path / "s" / "tmp").mkdir()):
        stage()
        for ask in asked:
            with pytest.raises(StoreMissing):
                run(ask())
    assert list((tmp_path / "s").iterdir()) == [tmp_path / "s" / "tmp"]
    shutil.rmtree(tmp_path / "s")
    (tmp_path / "away").rename(tmp_path / "s")
    assert run(store.get("a/b")) == b"x"
    run(store.close())


def test_keys_that_are_in_each_others_way(host: Sshd, run: Run, tmp_path: Path) -> None:
    store = run(open_store(f"ssh://there{tmp_path}/s", begin=True))
    run(store.create("a/b", b"x"))
    for ask, said in [
        (lambda: store.create("a/b/c", b"y"), "a part of the key is an object"),
        (lambda: store.put("a/b/c", b"y"), "a part of the key is an object"),
        (lambda: store.create("a", b"y"), "the key is a directory"),
        (lambda: store.put("a", b"y"), "the key is a directory"),
        (lambda: store.delete("a"), "the key is a directory"),
        (lambda: store.create("n" * 300, b"y"), "too long"),
    ]:
        with pytest.raises(StoreRefused, match=said):
            run(ask())
    with pytest.raises(KeyMissing):
        run(store.get("a"))
    assert [item.key for item in run(store.list(""))] == ["a/b", "format"]
    run(store.close())
