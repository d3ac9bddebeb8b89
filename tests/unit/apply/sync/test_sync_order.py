"""What a sync is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.apply.sync.sync_order import (
    check_sync_directory,
    locate_path,
    locate_remote,
    name_repository,
    strip_passwords,
)
from monkey.errors import MonkeyError
from monkey.transfer.code.git_files import strip_credentials
from tests.git_remote import GitRemote


@pytest.mark.parametrize(
    ("remote", "shown", "name"),
    [
        ("https://user:pw@host/team/sweeps.git", "https://host/team/sweeps.git", "sweeps"),
        ("https://ghp_token@host/sweeps", "https://host/sweeps", "sweeps"),
        ("https://a@b:t0ken@host/sweeps", "https://host/sweeps", "sweeps"),
        ("https://host/sweeps.git?token=x#y", "https://host/sweeps.git", "sweeps"),
        ("ssh://git:pw@host:22/sweeps.git/", "ssh://git@host:22/sweeps.git/", "sweeps"),
        ("git@host:team/sweeps.git", "git@host:team/sweeps.git", "sweeps"),
        ("/srv/git/my sweeps.git", "/srv/git/my sweeps.git", "my-sweeps"),
        ("host:x", "host:x", "x"),
        ("file:///", "file:///", "repository"),
    ],
)
def test_a_remote_is_shown_without_what_is_secret(remote: str, shown: str, name: str) -> None:
    assert strip_credentials(remote, keep_user=True) == shown
    assert name_repository(remote) == name


def test_sentences_of_git_lose_passwords() -> None:
    said = "fatal: unable to access 'https://u:p@host/x/': Could not resolve host: host"
    assert strip_passwords(said) == "fatal: unable to access 'https://host/x/': Could not resolve host: host"


def test_without_a_remote_the_checkout_s_origin_is_followed(remote: GitRemote, tmp_path: Path) -> None:
    below = remote.work / "team" / "specs"
    below.mkdir(parents=True)
    (remote.work / "team" / "monkey.yaml").touch()
    found, checkout = locate_remote(None, below)
    assert (found, checkout) == (str(remote.path), remote.work.resolve())
    assert locate_path(checkout, below) == "team"
    assert locate_path(checkout, remote.work) == "" == locate_path(None, below)
    assert locate_remote(str(remote.path), tmp_path) == (str(remote.path), None)
    assert locate_remote("git@host:x.git", tmp_path) == ("git@host:x.git", None)
    remote.git("remote", "set-url", "origin", "../sweeps.git")
    assert locate_remote(None, below)[0] == str(remote.path)


def test_where_there_is_no_remote_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(MonkeyError, match="no remote `origin`"):
        locate_remote(None, tmp_path)
    with pytest.raises(MonkeyError, match="expected a git remote"):
        locate_remote("--upload-pack=x", tmp_path)


def test_a_state_directory_in_a_work_tree_is_refused(remote: GitRemote, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(remote.work)
    for place in (remote.work, remote.work / "deep" / "state", tmp_path / "link" / "state"):
        with pytest.raises(MonkeyError, match="outside of every git work tree") as caught:
            check_sync_directory(place)
        assert "--directory" in str(caught.value.hint)
    check_sync_directory(tmp_path / "state")
