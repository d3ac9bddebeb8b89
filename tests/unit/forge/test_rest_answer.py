"""What a forge answers without is an error of the forge, and said: for each field that is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from monkey.ci_run import CiRun
from monkey.errors import ForgeError
from monkey.forge.forge_port import Forge
from monkey.forge.open_forge import open_forge
from tests.forges.github_double import REPOSITORY, GitHubDouble

COMMIT = "a" * 40
SIDE = {"ref": "main", "sha": COMMIT, "repo": None}
PULL = {"number": 1, "state": "open", "head": SIDE, "base": SIDE}
STATUS = {"id": 1, "context": "x", "creator": {"login": "ann"}, "state": "success", "status": "success"}
MERGE = {"iid": 1, "source_branch": "x", "sha": COMMIT, "target_branch": "main", "state": "opened"}


@pytest.fixture
def double() -> Iterator[GitHubDouble]:
    made = GitHubDouble()
    yield made
    made.close()


def forge_of(double: GitHubDouble, kind: str) -> Forge:
    run = CiRun(kind, double.url, REPOSITORY)
    forge = open_forge(run, {"MONKEY_FORGE_TOKEN": "t", "GITHUB_API_URL": double.url})
    assert forge is not None
    return forge


def without(data: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != key}


@pytest.mark.parametrize("wrong", ["missing", None, [], {"x": 1}])
@pytest.mark.parametrize(
    ("kind", "asked", "key", "answers"),
    [
        *(("github", "pull", key, [PULL]) for key in PULL),
        *(("gitlab", "pull", key, [{**MERGE, "target_project_id": 2}]) for key in (*without(MERGE, "sha"),)),
        ("github", "author", "login", [{"login": "ann"}]),
        ("gitlab", "author", "username", [{"username": "ann"}]),
        ("github", "status", "context", [[STATUS]]),
        ("github", "status", "id", [{"login": "ann"}, [STATUS]]),
        ("github", "comment", "id", [{"login": "ann"}, [{"id": 1, "user": None, "body": "", "html_url": "x"}]]),
        ("github", "comment", "html_url", [{"login": "ann"}, [{"id": 1, "user": None, "body": "", "html_url": "x"}]]),
        ("gitlab", "comment", "id", [{"username": "ann"}, [{"id": 1, "author": None, "body": ""}]]),
        ("github", "writer", "permission", [{"permission": "read"}]),
    ],
)
def test_a_field_that_is_missing_or_wrong_is_said(
    double: GitHubDouble, kind: str, asked: str, key: str, answers: list[Any], wrong: Any
) -> None:
    *first, last = answers
    entry = last[0] if isinstance(last, list) else last
    entry = without(entry, key) if wrong == "missing" else {**entry, key: wrong}
    given = [*first, [entry] if isinstance(last, list) else entry]
    # The status's author is asked for once its list has come.
    double.faults += [(200, {}, each) for each in (reversed(given) if asked == "status" else given)]
    forge = forge_of(double, kind)
    with pytest.raises(ForgeError, match=rf"(GET|POST) {double.url}/\S+: expected (a|an) \w+ `\w+`, found ") as caught:
        {
            "pull": lambda: forge.read_pull(1),
            "author": forge.name_author,
            "status": lambda: forge.set_status(COMMIT, "x", "success", "x"),
            "comment": lambda: forge.write_comment(1, "x", "x"),
            "writer": lambda: forge.can_write("ann"),
        }[asked]()
    assert f"`{key}`" in caught.value.message or wrong == {"x": 1}
    assert caught.value.hint and "forge:" in caught.value.hint


@pytest.mark.parametrize("data", [None, [1], "x", 7])
def test_an_answer_that_is_no_object_is_said(double: GitHubDouble, data: Any) -> None:
    double.faults += [(200, {}, data)] * 2
    forge = forge_of(double, "github")
    with pytest.raises(ForgeError, match="pulls/1: expected an object, found "):
        forge.read_pull(1)
    with pytest.raises(ForgeError, match=r"pulls: expected (an object|a list), found "):
        forge.list_open_pulls()
