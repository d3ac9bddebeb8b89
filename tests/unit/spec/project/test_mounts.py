"""What must be mounted on machines: what monkey.yaml says, and what agents and machines are told."""

from __future__ import annotations

import pytest

from monkey.spec.project.mounts import (
    Mount,
    find_mount_mistakes,
    list_mount_steps,
    parse_mounts,
    read_mounts,
    spell_mounts,
)
from monkey.spec.project.provider import parse_provider
from monkey.spec.yaml.mistakes import MistakesError


def test_an_agent_is_told_paths_and_sources() -> None:
    mounts = parse_mounts({"/data": "nas:/export", "/any": None, "/bucket": {"command": "gcsfuse b /bucket"}})
    assert mounts == (Mount("/data", "nas:/export"), Mount("/any"), Mount("/bucket", command="gcsfuse b /bucket"))
    assert read_mounts(spell_mounts(mounts)) == (*mounts[:2], Mount("/bucket"))
    assert list_mount_steps(mounts)[2] == ["/bucket", "", "gcsfuse b /bucket"]
    assert parse_provider({"type": "ssh", "hosts": ["a"], "mounts": {"/any": None}}).mounts == (Mount("/any"),)
    for wrong in ('{"data": ""}', '{"/data": "nas"}'):
        with pytest.raises(MistakesError):
            read_mounts(wrong)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"/data": None}, "nothing says what is mounted there"),
        ({"/data": {"command": ""}}, "expected a command, found"),
        ({"/data": {"commnd": "x"}}, "expected a command, found a mapping"),
        ({"/data": {"command": "x" * 2000}}, "expected at most 1000 characters"),
        ({f"/{n}": "nas:/e" for n in range(17)}, "expected at most 16 mounts, found 17"),
    ],
)
def test_rented_machines_need_to_know_what_to_mount(raw: dict[str, object], message: str) -> None:
    (found,) = find_mount_mistakes(raw, rented=True)
    assert message in found.message and found.hint
    assert not list(find_mount_mistakes({"/d": "[fd00::1]:/e", "/c": {"command": "mount x"}}, rented=True))
