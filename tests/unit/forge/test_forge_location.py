"""Where a repository is at its forge: what monkey.yaml says, and what the remote does."""

from __future__ import annotations

import pytest

from monkey.errors import ForgeError
from monkey.forge.forge_location import locate_forge
from monkey.spec.project.forge_settings import ForgeSettings

GITEA, GITHUB, GITLAB = (ForgeSettings(kind) for kind in ("gitea", "github", "gitlab"))


@pytest.mark.parametrize(
    ("settings", "remote", "found"),
    [
        (None, "git@github.com:lab/sweeps.git", ("github", "https://api.github.com", "lab/sweeps")),
        (None, "https://me:pw@GitHub.com/lab/sweeps/", ("github", "https://api.github.com", "lab/sweeps")),
        (None, "https://gitlab.com/a/b/c.git", ("gitlab", "https://gitlab.com/api/v4", "a/b/c")),
        (None, "ssh://git@gitlab.lab:2222/a/b.git", ("gitlab", "https://gitlab.lab/api/v4", "a/b")),
        (None, "git@gitea.lab:a/b", ("gitea", "https://gitea.lab/api/v1", "a/b")),
        (None, "git@forgejo.lab:a/b", ("gitea", "https://forgejo.lab/api/v1", "a/b")),
        (None, "https://codeberg.org/a/b.git", ("gitea", "https://codeberg.org/api/v1", "a/b")),
        (GITEA, "https://git.lab:3000/a/b.git", ("gitea", "https://git.lab:3000/api/v1", "a/b")),
        (GITEA, "http://127.0.0.1:3000/a/b.git", ("gitea", "http://127.0.0.1:3000/api/v1", "a/b")),
        (GITEA, "https://lab.org/git/a/b.git", ("gitea", "https://lab.org/git/api/v1", "a/b")),
        (GITHUB, "git@git.lab:a/b.git", ("github", "https://git.lab/api/v3", "a/b")),
        (GITLAB, "git@code.lab:a/b/c.git", ("gitlab", "https://code.lab/api/v4", "a/b/c")),
        (ForgeSettings("gitea", "", "x/y"), "git@git.lab:a/b.git", ("gitea", "https://git.lab/api/v1", "x/y")),
        (ForgeSettings("gitea", "https://api.lab"), "work:a/b.git", ("gitea", "https://api.lab", "a/b")),
        (ForgeSettings("gitea", "https://api.lab", "x/y"), "", ("gitea", "https://api.lab", "x/y")),
        (ForgeSettings("gitea", "https://api.lab", "x/y"), "/srv/git/a.git", ("gitea", "https://api.lab", "x/y")),
    ],
)
def test_what_monkey_yaml_leaves_out_is_the_remotes(
    settings: ForgeSettings | None, remote: str, found: tuple[str, str, str]
) -> None:
    assert locate_forge(settings, remote) == found


@pytest.mark.parametrize(
    ("settings", "remote", "message", "hint"),
    [
        (None, "", "it has no git remote `origin`", "forge: {type: gitea}"),
        (None, "/srv/git/sweeps.git", "its remote `origin` is a path, not at a forge", "forge: {type: gitea}"),
        (None, "git@git.lab:a/b", "its remote is at git.lab, which may be any", "forge: {type: gitea}"),
        (None, "git@github.com.evil.example:a/b", "github.com.evil.example, which may be any", "forge:"),
        (GITEA, "", "forge's api follows", "api: https://HOST"),
        (GITEA, "file:///srv/git/a/b.git", "forge's api follows", "api: https://HOST"),
        (GITEA, "git@git.lab:sweeps.git", "forge's repository follows", "repository: owner/name"),
        (ForgeSettings("gitea", "https://a"), "/srv/a/b", "forge's repository follows", "repository: owner/name"),
        (GITEA, "git@git.lab:a/b c", "forge's repository follows", "repository: owner/name"),
    ],
)
def test_what_neither_says_is_asked_for(settings: ForgeSettings | None, remote: str, message: str, hint: str) -> None:
    with pytest.raises(ForgeError) as caught:
        locate_forge(settings, remote)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
