"""`forge:` in monkey.yaml: what it says, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from monkey.errors import SpecError
from monkey.spec.project.forge_settings import ForgeSettings
from monkey.spec.project.project import load_project

API = "https://git.lab/api/v1"


def forge(place: Path, text: str) -> ForgeSettings | None:
    (place / "monkey.yaml").write_text(f"project: p\nforge: {text}\n")
    return load_project(place).forge


def test_all_that_it_says(tmp_path: Path) -> None:
    assert load_project(tmp_path).forge is None
    assert forge(tmp_path, "{type: github}") == ForgeSettings("github")
    said = f"{{type: gitea, api: '{API}/', repository: lab/sweeps.2}}"
    assert forge(tmp_path, said) == ForgeSettings("gitea", API, "lab/sweeps.2")
    assert forge(tmp_path, "{type: gitlab, repository: a/b/c}") == ForgeSettings("gitlab", "", "a/b/c")


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("gitea", 8, "expected a mapping, found the text 'gitea'", "{type: github}"),
        ("{}", 8, "expected type, found none", "{type: github}"),
        ("{type: gitbub}", 15, "expected github, gitea, gitlab, found the text 'gitbub'", "'github'"),
        ("{type: forgejo}", 15, "Forgejo is of type gitea", ""),
        ("{type: [github]}", 15, "expected github, gitea, gitlab, found a list", "{type: github}"),
        ("{type: gitea, repo: a/b}", 22, "unknown key 'repo' of forge", "'repository'"),
        ("{type: gitea, api: git.lab/api}", 27, "expected the URL of a REST API", "https://HOST/api/v1"),
        ("{type: gitea, api: 'https://a b/api'}", 27, "expected the URL of a REST API", "https://HOST/api/v1"),
        ("{type: gitea, api: 3}", 27, "expected the URL of a REST API, found 3", "https://HOST/api/v1"),
        ("{type: gitea, repository: sweeps}", 34, "expected owner/name, found the text 'sweeps'", "owner/name"),
        ("{type: gitea, repository: a/b/c}", 34, "expected owner/name, found the text 'a/b/c'", "without the host"),
        ("{type: gitea, repository: ../b}", 34, "expected owner/name", "owner/name"),
        ("{type: gitlab, repository: a//c}", 35, "expected owner/name", "owner/name"),
        ("{type: gitea, repository: 3}", 34, "expected owner/name, found 3", "owner/name"),
    ],
)
def test_mistakes_have_their_place(tmp_path: Path, text: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        forge(tmp_path, text)
    (found,) = caught.value.problems
    assert message in found.message
    assert hint in (found.hint or "")
    assert (found.file, found.line, found.column) == ("monkey.yaml", 2, column)


@pytest.mark.parametrize("api", ["https://me:hunter2@git.lab/api", "https://git.lab/api?token=hunter2"])
def test_a_secret_in_it_is_refused_and_not_shown(tmp_path: Path, api: str) -> None:
    with pytest.raises(SpecError) as caught:
        forge(tmp_path, f"{{type: gitea, api: '{api}'}}")
    (found,) = caught.value.problems
    assert "no user, no password and no query" in found.message
    assert "hunter2" not in found.message
