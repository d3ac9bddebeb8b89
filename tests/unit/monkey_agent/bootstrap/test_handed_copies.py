"""Copies of what an engine hands over, and replaces while a pilot works."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from monkey.store.open import open_store
from monkey_agent.bootstrap.handed_copies import copy_handed_files, move_keys
from tests.bucket import FakeBucket


def test_what_changed_is_copied_and_closed_to_others(tmp_path: Path) -> None:
    handed, mine = tmp_path / "handed", tmp_path / "mine"
    handed.mkdir()
    mine.mkdir()
    for name in ("secrets", "signers"):
        (handed / name).write_text("A=1\n")
        (handed / name).chmod(0o440)
    (handed / "credentials.json").write_text("{}")
    copy_handed_files(handed, mine)
    for name in ("secrets", "signers"):
        (handed / name).write_text("A=2\n")
    assert copy_handed_files(handed, mine) == ["secrets", "signers"]
    assert (mine / "secrets").stat().st_mode & 0o777 == 0o600
    assert copy_handed_files(handed, mine) == []
    (handed / "signers").unlink()
    (handed / "signers").write_text("B\n")
    assert copy_handed_files(handed, mine) == ["signers"] and (mine / "signers").read_text() == "B\n"


def write_keys(directory: Path, name: str, **more: str) -> None:
    keys = {"AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": "s%cret", "AWS_REGION": "eu-west-1", **more}
    (directory / "credentials.json").write_text(json.dumps(keys))


def test_a_store_that_is_open_signs_by_the_keys_that_came_last(
    bucket: FakeBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed, mine = tmp_path / "handed", tmp_path / "mine"
    handed.mkdir()
    mine.mkdir()
    for name in ("secrets", "signers"):
        (handed / name).write_text("")
    write_keys(mine, "FIRST", AWS_SESSION_TOKEN="short")
    environment = {"AWS_ACCESS_KEY_ID": "FIRST", "AWS_PROFILE": "none", "AWS_REGION": "eu-west-1"}
    move_keys(mine, environment)
    assert environment == {"AWS_SHARED_CREDENTIALS_FILE": str(mine / "amazon_keys"), "AWS_REGION": "eu-west-1"}
    assert (mine / "amazon_keys").stat().st_mode & 0o777 == 0o600
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    async def use() -> None:
        store = await open_store(bucket.url(), begin=True)
        assert set(bucket.signers) == {"FIRST/eu-west-1"}
        write_keys(handed, "SECOND")
        copy_handed_files(handed, mine)
        while "SECOND/eu-west-1" not in bucket.signers:
            await store.put("projects/p/x", b"")
        bucket.signers.clear()
        await store.put("projects/p/y", b"")
        await store.close()

    asyncio.run(asyncio.wait_for(use(), 60))
    assert set(bucket.signers) == {"SECOND/eu-west-1"}
    assert "token" not in (mine / "amazon_keys").read_text()


def test_credentials_of_other_clouds_stay_variables(tmp_path: Path) -> None:
    (tmp_path / "credentials.json").write_text('{"GOOGLE_SERVICE_ACCOUNT_KEY": "{}"}')
    environment = {"GOOGLE_SERVICE_ACCOUNT_KEY": "{}"}
    move_keys(tmp_path, environment)
    assert environment == {"GOOGLE_SERVICE_ACCOUNT_KEY": "{}"} and not (tmp_path / "amazon_keys").exists()
