"""What root mounts on a rented machine, by commands that stand for mounts: no mount is made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monkey_agent.bootstrap import machine_mounts


def test_what_is_not_mounted_is_mounted_by_its_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ours, other = tmp_path / "a/bucket", tmp_path / "other"
    steps = [["/proc", "", f"touch {tmp_path}/no"], [str(ours), "", f"touch {ours}/it"], [str(other), "", "false"]]
    assert machine_mounts.make_mounts(steps) == [str(ours), str(other)], "no command mounted anything"
    assert (ours / "it").exists() and not (tmp_path / "no").exists()
    assert f"{other} could not be mounted" in capfd.readouterr().err


def test_what_fails_is_tried_again_until_it_is_there(tmp_path: Path) -> None:
    tries, file = tmp_path / "tries", tmp_path / "mounts.json"
    file.write_text(json.dumps([[str(tmp_path / "data"), "", f"echo tried >> {tries}; false"]]))
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:  # what a server does that is back
            file.write_text("[]")
            raise InterruptedError

    with pytest.raises(InterruptedError):
        machine_mounts.keep_mounting(file, pause)
    assert tries.read_text() == "tried\n" * 3
    machine_mounts.keep_mounting(file, pause)
    assert len(pauses) == 3, "nothing is missing"


def test_root_mounts_nothing_through_a_link(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A job could put one there before the machine boots again."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "etc")
    machine_mounts.make_mounts([[str(tmp_path / "data/in"), "", f"touch {tmp_path}/data/it"]])
    assert not list((tmp_path / "etc").iterdir())
    assert "a link is in its path" in capfd.readouterr().err
