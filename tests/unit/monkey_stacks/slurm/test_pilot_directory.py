"""The files that pilots are handed: what is not as an apply would have it, and what stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monkey.signing.machine_list import hash_signers
from monkey_stacks.slurm.remote.pilot_directory import PilotDirectory

ASKED: dict[str, Any] = {
    "credentials": {"AWS_ACCESS_KEY_ID": "a"},
    "signers": "owner ssh-ed25519 AAAA\n",
    "secrets": {"TOKEN": "TOKEN=one"},
    "kept": [],
    "arguments": [],
    "project": "shop",
    "fleet": "cluster",
    "store": "s3://bucket",
}


@pytest.fixture
def place(tmp_path: Path) -> PilotDirectory:
    made = PilotDirectory(str(tmp_path), "monkey-shop-cluster-01234567")
    made.write(ASKED)
    return made


@pytest.mark.parametrize(
    ("other", "stale"),
    [
        ({}, []),
        ({"credentials": {}}, ["credentials"]),
        ({"secrets": {"TOKEN": "TOKEN=two"}}, ["secrets"]),
        ({"secrets": {}}, ["secrets"]),
        ({"secrets": {}, "kept": ["TOKEN"]}, []),
        ({"arguments": ["--idle-timeout", "3"]}, []),
    ],
)
def test_what_pilots_should_not_have_any_more_is_told(
    place: PilotDirectory, other: dict[str, Any], stale: list[str]
) -> None:
    assert place.list_stale({**ASKED, **other}) == stale
    place.write({**ASKED, **other})
    assert place.list_stale({**ASKED, **other}) == []


def test_a_fleet_that_is_taken_away_has_nothing_to_tell(place: PilotDirectory) -> None:
    assert place.hash_signers() == hash_signers(ASKED["signers"])
    place.close()
    assert place.hash_signers() == ""
    assert place.list_stale({**ASKED, "signers": ""}) == []
