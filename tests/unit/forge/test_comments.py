"""The marker of a comment, and its length."""

from __future__ import annotations

import pytest

from monkey.errors import ForgeError
from monkey.forge.comments import PostedComment, cut_comment, make_marker, write_single_comment


@pytest.mark.parametrize(
    ("key", "marker"),
    [
        ("plan:digits", "<!-- monkey:plan:digits -->"),
        ("results:pr-12.lr_x", "<!-- monkey:results:pr-12.lr_x -->"),
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

    def replace_comment(self, number: int, text: str) -> bool:
        return False

    def remove_comment(self, number: int) -> None:
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
