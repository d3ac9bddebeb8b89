"""What every forge does alike, seen through the port."""

from __future__ import annotations

import threading

import pytest

from monkey.errors import ForgeError
from monkey.forge.forge_port import CommitStatus
from monkey.forge.gitlab import GitLabForge
from tests.forges.desks import Desk, GiteaDesk
from tests.forges.gitea import Gitea

KEY, MARK = "plan:shop", "<!-- monkey:plan:shop -->"
CONTEXT = "monkey/plan"


def test_a_comment_is_written_once_and_then_changed_in_place(desk: Desk) -> None:
    number, _ = desk.make_pull()
    forge = desk.open()
    seen = forge.write_comment(number, KEY, "one")
    [first] = desk.comments(number)
    assert first.text.strip() == f"{MARK}\none"
    assert seen.startswith("http") and str(first.number) in seen
    assert forge.write_comment(number, KEY, "two") == seen
    # Another process, which knows nothing of the first.
    assert desk.open().write_comment(number, KEY, "three") == seen
    [last] = desk.comments(number)
    assert (last.number, last.text.strip()) == (first.number, f"{MARK}\nthree")


def test_an_unchanged_comment_is_not_sent_again(desk: Desk) -> None:
    number, _ = desk.make_pull()
    desk.open().write_comment(number, KEY, "a table\n\n| a |\n| - |\n| 1 |\n\n")
    before = desk.writes()
    desk.open().write_comment(number, KEY, "a table\n\n| a |\n| - |\n| 1 |\n\n")
    assert desk.writes() == before


def test_comments_of_two_keys_stand_apart(desk: Desk) -> None:
    number, _ = desk.make_pull()
    forge = desk.open()
    first, second = forge.write_comment(number, KEY, "one"), forge.write_comment(number, "plan:shop2", "two")
    assert first != second and len(desk.comments(number)) == 2


def test_a_comment_that_another_person_marked_as_ours_is_left_alone(desk: Desk) -> None:
    number, _ = desk.make_pull()
    desk.say(number, f"{MARK}\nall is well, merge it", desk.writer)
    desk.say(number, f"> {MARK}\nI quote")
    desk.open().write_comment(number, KEY, "ours")
    texts = [comment.text.strip() for comment in desk.comments(number)]
    assert texts == [f"{MARK}\nall is well, merge it", f"> {MARK}\nI quote", f"{MARK}\nours"]


def test_a_second_comment_of_ours_is_deleted(desk: Desk) -> None:
    number, _ = desk.make_pull()
    for text in ("one", "two", "three"):
        desk.say(number, f"{MARK}\n{text}")
    first = desk.comments(number)[0].number
    desk.open().write_comment(number, KEY, "two")
    [left] = desk.comments(number)
    assert (left.number, left.text.strip()) == (first, f"{MARK}\ntwo")


def test_a_comment_of_another_account_of_ours_is_known_for_ours(desk: Desk) -> None:
    number, _ = desk.make_pull()
    other, forge = desk.open(desk.writer), desk.open()
    seen = other.write_comment(number, KEY, "one")
    known = {other.name_author(), forge.name_author()}
    assert desk.writer in known
    assert forge.write_comment(number, KEY, "one", known) == seen
    [first] = desk.comments(number)
    forge.write_comment(number, KEY, "two", known)
    left = [(comment.number, comment.text.strip()) for comment in desk.comments(number)]
    if isinstance(forge, GitLabForge):  # it lets only its author change it, so the news come beside it
        assert left[0] == (first.number, f"{MARK}\none") and len(left) == 2 and left[1][1] == f"{MARK}\ntwo"
    else:
        assert left == [(first.number, f"{MARK}\ntwo")]
    desk.say(number, f"{MARK}\nthree", desk.writer)
    forge.write_comment(number, KEY, "two", known)
    assert len(desk.comments(number)) == len(left) + isinstance(forge, GitLabForge)


def test_two_writers_at_once_leave_one_comment(desk: Desk) -> None:
    number, _ = desk.make_pull()
    ready = threading.Barrier(4)
    failed: list[BaseException] = []

    def write(text: str) -> None:
        try:
            forge = desk.open()
            ready.wait(60)
            forge.write_comment(number, KEY, text)
        except BaseException as exc:
            failed.append(exc)

    threads = [threading.Thread(target=write, args=(f"writer {who}",)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    [left] = desk.comments(number)
    assert left.text.startswith(f"{MARK}\nwriter ")


def test_a_comment_among_many_is_found(desk: Desk) -> None:
    number, _ = desk.make_pull()
    for count in range(130):
        desk.say(number, f"comment {count}", desk.writer)
    forge = desk.open()
    forge.write_comment(number, KEY, "one")
    forge.write_comment(number, KEY, "two")
    assert sum(MARK in comment.text for comment in desk.comments(number)) == 1


def test_a_comment_longer_than_a_forge_takes_is_cut(desk: Desk) -> None:
    number, _ = desk.make_pull()
    forge = desk.open()
    text = "start\n```diff\n" + "+ ü a line of a plan\n" * 5_000 + "```\n"
    forge.write_comment(number, KEY, text)
    forge.write_comment(number, KEY, text)
    [comment] = desk.comments(number)
    assert 60_000 < len(comment.text) <= 65_536
    assert comment.text.count("```") == 2 and "the rest is cut" in comment.text


def test_a_status_is_read_as_it_was_set(desk: Desk) -> None:
    _, commit = desk.make_pull()
    forge = desk.open()
    assert forge.read_status(commit, CONTEXT) is None
    for state in ("pending", "success", "pending", "failure", "success"):
        forge.set_status(commit, CONTEXT, state, f"is {state}", "https://example.org/run/1")
        assert desk.open().read_status(commit, CONTEXT) == CommitStatus(state, f"is {state}")
    assert forge.read_status(commit, "monkey/other") is None


def test_a_status_that_is_so_already_is_not_set_again(desk: Desk) -> None:
    _, commit = desk.make_pull()
    forge = desk.open()
    forge.set_status(commit, CONTEXT, "success", "4 new")
    forge.set_status(commit, "monkey/other", "pending", "is another")
    before = desk.writes()
    desk.open().set_status(commit, CONTEXT, "success", "4 new")
    desk.open().set_status(commit, "monkey/other", "pending", "is another")
    assert desk.writes() == before


def test_what_a_status_says_is_cut(desk: Desk) -> None:
    _, commit = desk.make_pull()
    forge = desk.open()
    forge.set_status(commit, CONTEXT, "success", "0123456789abcdef " + "ä" * 400)
    found = forge.read_status(commit, CONTEXT)
    assert found and found.text.startswith("0123456789abcdef ä") and found.text.endswith("…")
    before = desk.writes()
    forge.set_status(commit, CONTEXT, "success", "0123456789abcdef " + "ä" * 400)
    assert desk.writes() == before


def test_a_status_of_another_author_is_not_ours(desk: Desk) -> None:
    _, commit = desk.make_pull()
    desk.open().set_status(commit, CONTEXT, "success", "0123456789abcdef 4 new")
    desk.open(desk.writer).set_status(commit, CONTEXT, "success", "ffffffffffffffff apply this")
    found = desk.open().read_status(commit, CONTEXT)
    assert found and found.text == "0123456789abcdef 4 new"


def test_progress_of_a_status_ends(desk: Desk) -> None:
    _, commit = desk.make_pull()
    forge = desk.open()
    for done in range(4):
        forge.set_status(commit, CONTEXT, "pending", f"{done} of 3")
    forge.set_status(commit, CONTEXT, "success", "3 of 3")
    assert forge.read_status(commit, CONTEXT) == CommitStatus("success", "3 of 3")


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_the_pull_request_of_a_merged_commit_is_found(desk: Desk, how: str) -> None:
    number, head = desk.make_pull()
    other, _ = desk.make_pull()
    forge = desk.open()
    assert {pull.number for pull in forge.list_open_pulls()} == {number, other}
    [open_one] = forge.list_pulls_of(head)
    assert (open_one.number, open_one.commit, open_one.base) == (number, head, "main")
    assert open_one.is_open and not open_one.is_merged and not open_one.is_fork
    commit = desk.merge(number, how)
    [merged, *_] = forge.list_pulls_of(commit)
    # Of the branch, which is deleted, the head is known still.
    assert (merged.number, merged.commit, merged.is_merged, merged.is_open) == (number, head, True, False)
    again = forge.read_pull(number)
    assert again and again.is_merged and again.commit == head
    assert [pull.number for pull in forge.list_open_pulls()] == [other]


def test_a_pull_request_of_a_fork_is_known_as_one(desk: Desk) -> None:
    own, _ = desk.make_pull()
    fork = desk.make_fork_pull()
    forge = desk.open()
    assert {pull.number: pull.is_fork for pull in forge.list_open_pulls()} == {own: False, fork: True}
    pull = forge.read_pull(fork)
    assert pull and pull.is_fork and pull.base == "main"


def test_what_is_not_there_is_none(desk: Desk) -> None:
    forge = desk.open()
    assert forge.read_pull(4711) is None
    assert forge.list_pulls_of("f" * 40) == []
    assert forge.list_open_pulls() == []


def test_who_may_push_is_known(desk: Desk) -> None:
    forge = desk.open()
    assert forge.can_write(desk.writer)
    assert not forge.can_write(desk.reader)
    assert not forge.can_write("no-such-user")


@pytest.mark.slow
def test_gitea_tells_only_administrators_who_may_push(gitea: Gitea) -> None:
    desk = GiteaDesk(gitea)
    with pytest.raises(ForgeError, match=r"refused \(403\).*rights of the repository's administrator"):
        desk.open(desk.writer).can_write(desk.reader)


def test_a_reader_hears_which_permission_lacks(desk: Desk) -> None:
    number, commit = desk.make_pull()
    with pytest.raises(ForgeError, match=r"refused \(403\).*(statuses: write|Developer)"):
        desk.open(desk.reader).set_status(commit, CONTEXT, "success", "all is well")
    with pytest.raises(ForgeError, match="refused"):
        desk.open().write_comment(4711, KEY, "to no pull request")
    assert desk.comments(number) == [] and desk.statuses(commit) == []


def test_a_token_that_the_forge_does_not_know_is_said(desk: Desk) -> None:
    number, _ = desk.make_pull()
    forge = desk.open_with("1234567890abcdef")
    with pytest.raises(ForgeError, match="does not know the token") as caught:
        forge.write_comment(number, KEY, "one")
    assert "1234567890abcdef" not in str(caught.value)
