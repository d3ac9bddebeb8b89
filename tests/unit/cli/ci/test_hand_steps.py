"""The script that `monkey init --ci` prints, run by bash: a stand-in for the forge's program records its stdin."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.ci_clone import MACHINES, Clone

FORGES = ("github", "gitea", "gitlab")
#: Writes its arguments and its stdin down.
RECORDER = """\
#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$*" in *"secret set"*|*"variable set"*) sed "s/^/  /" >> "$CALLS"; echo >> "$CALLS";; esac
"""
#: Adds a key, and shows the user's own on its second line, as ours does.
TRUST = """\
#!/bin/sh
[ -z "$2" ] || { test -f "$2" && echo "trusted $(cat "$2")" >> "$CALLS"; }
printf 'yours:\\nssh-ed25519 MINE me@here\\n'
"""


class Desk:
    """Where a user runs the script: in a clone, with the forge's program on the PATH."""

    def __init__(self, clone: Clone, base: Path) -> None:
        self.clone, self.base, self.calls = clone, base, base / "calls"
        (base / "bin").mkdir()
        (base / "temp").mkdir()
        self.calls.touch()
        for name in ("gh", "glab", "monkey"):
            (base / "bin" / name).write_text(TRUST if name == "monkey" else RECORDER)
            (base / "bin" / name).chmod(0o755)

    def run(self, script: str) -> str:
        """Run it but for its last commands, which commit; return what it printed."""
        path = f"{self.base}/bin:{os.environ['PATH']}"
        names = (f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL"))
        env = {
            **os.environ,
            **dict.fromkeys(names, "a@b"),
            "PATH": path,
            "TMPDIR": str(self.base / "temp"),
            "CALLS": str(self.calls),
        }
        script = script.replace(" && git push", "")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.clone.root,
            env={
                **env,
                **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
            },
            input="s3cret\n",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def desk(clone: Clone, tmp_path: Path) -> Desk:
    """Return where the script is run."""
    return Desk(clone, tmp_path)


def list_tree(root: Path) -> set[str]:
    """Return the files of a clone, but for git's own."""
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if ".git" not in path.parts}


@pytest.mark.parametrize("at", [".", "p2"])
@pytest.mark.parametrize("forge", FORGES)
def test_no_key_and_no_credential_is_ever_in_the_tree(desk: Desk, forge: str, at: str) -> None:
    script = desk.clone.init(forge, MACHINES["lab"], at=at).stdout
    before = list_tree(desk.clone.root)
    (desk.clone.root / "ci_key").write_text("the user's own")
    printed = desk.run(script)
    assert list_tree(desk.clone.root) == {*before, "ci_key"}
    assert (desk.clone.root / "ci_key").read_text() == "the user's own"
    assert list((desk.base / "temp").iterdir()) == [], "keys are removed"
    calls = desk.calls.read_text()
    got = printed if forge == "gitea" else calls
    assert got.count("BEGIN OPENSSH PRIVATE KEY") == (1 if forge == "gitea" else 2)
    assert re.search(r"ssh-ed25519 \S+ ci@\w+\n *(ssh-ed25519 \S+ preview@\w+\n *)?ssh-ed25519 MINE", got)
    assert "trusted ssh-ed25519" in calls
    if forge != "gitea":
        assert "  s3cret\n" in calls, "what the first question was answered by"


@pytest.mark.parametrize("at", [".", "p2"])
@pytest.mark.parametrize("forge", FORGES)
def test_monkey_yaml_is_committed_with_the_forge_s_files(desk: Desk, forge: str, at: str) -> None:
    done = desk.clone.init(forge, MACHINES["lab"], at=at)
    desk.run(done.stdout)
    listed = ["git", "-C", str(desk.clone.root), "ls-files"]
    files = set(subprocess.check_output(listed, text=True).split())
    wrote = set(re.findall(r"^Wrote (\S+)\.$", done.stderr, re.MULTILINE))
    assert wrote and files == {*wrote, (Path(at) / "monkey.yaml").as_posix()}


@pytest.mark.parametrize("forge", FORGES)
def test_credentials_are_explained_once(desk: Desk, forge: str) -> None:
    script = desk.clone.init(forge, MACHINES["lab"]).stdout
    assert script.count("Credentials of the store and of the hosts") == 1
    assert ("preview_key" in script) is (forge != "gitea")
