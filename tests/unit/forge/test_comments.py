"""The marker of a comment, and its length."""

from __future__ import annotations

import pytest

from monkey.errors import ForgeError
from monkey.forge.comments import PostedComment, cut_comment, make_marker, write_single_comment


@pytest.mark.parametrize(
    ("key", "marker"),
    [
        ("plan:digits", "<!-- monkey:plan:digits -->"),
        ("results:lab:pr-12.lr_x", "<!-- monkey:results:lab:pr-12.lr_x -->"),
        ("a-->b", "<!-- monkey:a%2D%2D%3Eb -->"),
        ("a b\n", "<!-- monkey:a%20b%0A -->"),
    ],
)
def test_a_marker_holds_any_key_and_ends_where_it_ends(key: str, marker: str) -> None:
    assert make_marker(key) == marker


def test_a_short_comment_stays_and_a_long_one_is_cut_at_a_line() -> None:
    assert cut_comment("x" * 65_536) == "x" * 65_536
    cut = cut_comment("line\n" * 20_000)
    assert 65_000 < len(cut) <= 65_536 and cut.startswith("line\nline") and "line\n\n… the rest is cut" in cut


@pytest.mark.parametrize("fence", ["```", "`````"])
def test_a_block_that_is_cut_is_closed(fence: str) -> None:
    cut = cut_comment(f"{fence}diff\n+ ``` a\n{fence}\n\n{fence}diff\n" + "+ a\n" * 20_000)
    assert len(cut) <= 65_536 and f"+ a\n{fence}\n\n… the rest is cut" in cut


class Deleted:
    """A thread in which others delete all that is written, as soon as it is."""

    def __init__(self) -> None:
        self.posted: list[str] = []

    def list_comments(self) -> list[PostedComment]:
        return []

    def post_comment(self, text: str) -> None:
        self.posted.append(text)

    def replace_comment(self, number: int, text: str, *, theirs: bool = False) -> bool:
        return False

    def remove_comment(self, number: int, *, theirs: bool = False) -> None:
        pass


def test_a_comment_that_never_stays_is_said_and_not_tried_for_ever() -> None:
    thread = Deleted()
    with pytest.raises(ForgeError, match="as often as it is written"):
        write_single_comment(thread, "me", "plan:shop", "text")
    assert len(thread.posted) == 5


class Vanishing(Deleted):
    """A thread whose comment of ours is deleted between our look and our change."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def list_comments(self) -> list[PostedComment]:
        self.looks += 1
        if self.looks == 1:
            return [PostedComment(1, "me", f"{make_marker('plan:shop')}\nold", "url/1")]
        return [PostedComment(2 + at, "me", text, f"url/{2 + at}") for at, text in enumerate(self.posted)]


def test_a_comment_that_is_deleted_meanwhile_is_written_again() -> None:
    assert write_single_comment(Vanishing(), "me", "plan:shop", "new") == "url/2"


class Shared(Deleted):
    """A thread that several write to; who is no author of a comment may not change it."""

    def __init__(self, *comments: PostedComment, me: str, may_change: bool) -> None:
        super().__init__()
        self.comments, self.me, self.may_change = list(comments), me, may_change

    def list_comments(self) -> list[PostedComment]:
        return list(self.comments)

    def post_comment(self, text: str) -> None:
        number = max([each.number for each in self.comments], default=0) + 1
        self.comments.append(PostedComment(number, self.me, text, f"url/{number}"))

    def replace_comment(self, number: int, text: str, *, theirs: bool = False) -> bool:
        [at] = [at for at, each in enumerate(self.comments) if each.number == number]
        assert theirs == (self.comments[at].author != self.me)
        if theirs and not self.may_change:
            return False
        self.comments[at] = self.comments[at]._replace(text=text)
        return True

    def remove_comment(self, number: int, *, theirs: bool = False) -> None:
        if self.may_change or not theirs:
            self.comments = [each for each in self.comments if each.number != number]


def comment(number: int, author: str, text: str) -> PostedComment:
    return PostedComment(number, author, f"{make_marker('results:a')}\n{text}", f"url/{number}")


def test_a_comment_of_another_account_of_ours_is_ours_and_a_strangers_is_not() -> None:
    planted, theirs, mine = comment(1, "mallory", "lies"), comment(2, "bot", "old"), comment(3, "me", "old")
    thread = Shared(planted, theirs, mine, me="me", may_change=True)
    assert write_single_comment(thread, "me", "results:a", "new", ["bot"]) == "url/2"
    assert thread.comments == [planted, comment(2, "bot", "new")]
    assert write_single_comment(thread, "me", "results:a", "new", []) == "url/3", "without the word of the store"


def test_where_a_forge_lets_only_authors_change_it_the_same_text_is_enough() -> None:
    thread = Shared(comment(1, "bot", "end"), me="me", may_change=False)
    assert write_single_comment(thread, "me", "results:a", "end", ["bot"]) == "url/1"
    assert len(thread.comments) == 1
    # News are not lost for the sake of the number.
    assert write_single_comment(thread, "me", "results:a", "later end", ["bot"]) == "url/2"
    assert write_single_comment(thread, "me", "results:a", "third end", ["bot"]) == "url/2"
    assert [each.author for each in thread.comments] == ["bot", "me"]
