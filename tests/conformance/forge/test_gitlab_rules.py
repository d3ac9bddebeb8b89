"""What GitLab alone does: statuses are jobs of pipelines, and lines of notes may be orders; by the double."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from monkey.errors import ForgeError
from monkey.forge.forge_port import CommitStatus
from monkey.plan.text.inert_markdown import format_code_block
from tests.forges.desks import DoubleDesk, gitlab_desk
from tests.forges.gitlab_double import GitLabDouble

CONTEXT = "monkey/sweep"


@pytest.fixture
def gitlab() -> Iterator[GitLabDouble]:
    """Return a GitLab."""
    double = GitLabDouble()
    yield double
    double.close()


@pytest.fixture
def project(gitlab: GitLabDouble) -> DoubleDesk:
    """Return a project there."""
    return gitlab_desk(gitlab)


def test_what_began_in_one_pipeline_ends_there(gitlab: GitLabDouble, project: DoubleDesk) -> None:
    _, commit = project.make_pull()
    forge = project.open()
    gitlab.start_pipeline(commit, "change1")
    forge.set_status(commit, CONTEXT, "pending", "0 of 3")
    # A schedule starts another pipeline of the same commit.
    gitlab.start_pipeline(commit, "change1")
    forge.set_status(commit, CONTEXT, "pending", "1 of 3")
    forge.set_status(commit, CONTEXT, "success", "3 of 3")
    assert [each["status"] for each in gitlab.statuses] == ["success"], "a pipeline would wait for a status for ever"


def test_a_new_status_is_of_the_newest_pipeline(gitlab: GitLabDouble, project: DoubleDesk) -> None:
    _, commit = project.make_pull()
    for text in ("one", "two"):
        newest = gitlab.start_pipeline(commit, "change1")
        project.open().set_status(commit, CONTEXT, "success", text)
        assert gitlab.statuses[-1]["pipeline_id"] == newest.id
    assert project.open().read_status(commit, CONTEXT) == CommitStatus("success", "two")


def test_a_protected_branch_takes_statuses_of_those_who_may_merge(gitlab: GitLabDouble, project: DoubleDesk) -> None:
    number, _ = project.make_pull()
    merged = project.merge(number, "merge")
    with pytest.raises(ForgeError, match=r"refused \(403\)") as caught:
        project.open().set_status(merged, CONTEXT, "success", "all")
    assert "may merge into the branch" in str(caught.value.hint)
    gitlab.protected["main"] = 30
    project.open().set_status(merged, CONTEXT, "success", "all")


@pytest.mark.parametrize(
    ("planner", "reader", "read"),
    [
        ("project_7_bot_0f3a", "project_7_bot_77aa", True),
        ("group_9_bot_0f3a", "group_9_bot_77aa", True),
        ("project_8_bot_0f3a", "project_7_bot_77aa", False),
        ("project_7_bot_0f3a", "alice", False),
        ("alice", "project_7_bot_77aa", False),
        ("project_71_bot_0f3a", "project_7_bot_77aa", False),
        ("project_7_botanist", "project_7_bot_77aa", False),
    ],
)
def test_tokens_of_one_project_read_each_other_s_statuses(
    gitlab: GitLabDouble, project: DoubleDesk, planner: str, reader: str, read: bool
) -> None:
    for user in (planner, reader):
        gitlab.users[f"token-of-{user}"], gitlab.roles[user] = user, "write"
    _, commit = project.make_pull()
    project.open(planner).set_status(commit, "monkey/plan", "success", "0123456789abcdef 4 new")
    found = project.open(reader).read_status(commit, "monkey/plan")
    assert (found == CommitStatus("success", "0123456789abcdef 4 new")) is read
    # What one began, the other ends, in the same pipeline.
    project.open(planner).set_status(commit, CONTEXT, "pending", "0 of 3")
    gitlab.start_pipeline(commit, "change1")
    project.open(reader).set_status(commit, CONTEXT, "pending", "1 of 3")
    project.open(reader).set_status(commit, CONTEXT, "success", "3 of 3")
    assert [each["author"]["username"] for each in gitlab.statuses[1:]] == [planner, reader]
    left = [each["status"] for each in gitlab.statuses[1:] if not each["retried"]]
    assert left == (["success"] if read else ["pending", "success"])


@pytest.mark.parametrize("said", ["/merge", "```\n/merge\n", "\r/merge", "/Label ~big", "x\n/merge  \ny"])
def test_no_line_of_a_note_is_an_order(gitlab: GitLabDouble, project: DoubleDesk, said: str) -> None:
    number, _ = project.make_pull()
    for text in (f"hello\n\n{format_code_block(said, 'diff')}", f"hello\n{said}\n", f"{said}\nhello\n"):
        project.open().write_comment(number, "plan:shop", text)
        project.open().write_comment(number, "plan:shop", f"{text}again\n")
    assert gitlab.orders == []
    [note] = project.comments(number)
    assert said.strip().splitlines()[0].strip() in note.text
    before = project.writes()
    project.open().write_comment(number, "plan:shop", f"{text}again\n")
    assert project.writes() == before
    # The double takes orders, as GitLab does.
    gitlab.take_orders("```\n/close\n```\n/merge\n")
    assert gitlab.orders == ["merge"]
