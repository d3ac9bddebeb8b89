"""One comment of ours on a pull request for each key, however many write there, and however often we are killed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple, Protocol

from monkey.errors import ForgeError

#: GitHub refuses longer comments.
_LONGEST = 65_536
#: Another writer, or a person who deletes comments, may come in between so often.
_ROUNDS = 5
_CUT = "\n\n… the rest is cut: the forge takes no longer comments.\n"


class PostedComment(NamedTuple):
    """A comment that is there."""

    number: int
    author: str
    text: str
    url: str


class CommentThread(Protocol):
    """The comments of one pull request."""

    def list_comments(self) -> Iterator[PostedComment]:
        """Yield all."""
        ...

    def post_comment(self, text: str) -> None:
        """Add one."""
        ...

    def replace_comment(self, number: int, text: str, *, theirs: bool = False) -> bool:
        """Give a comment another text; False: it is gone, or it is `theirs`, and only they may."""
        ...

    def remove_comment(self, number: int, *, theirs: bool = False) -> None:
        """Delete a comment, if it is still there, and if the forge lets us where it is `theirs`."""
        ...


def write_single_comment(thread: CommentThread, author: str, key: str, text: str, others: Collection[str] = ()) -> str:
    """Make our comment `key` say `text`, and return its URL. `others`: authors whose comments are ours, too.

    Of several, the oldest stays: so two writers who post at once keep the same one. A text that is there already is
    not sent again.
    """
    mark, authors, fixed = make_marker(key), {author, *others}, set[int]()
    body = cut_comment(f"{mark}\n{text.strip()}")
    for _ in range(_ROUNDS):
        found = (each for each in thread.list_comments() if each.author in authors and each.number not in fixed)
        ours = sorted(each for each in found if _normalize(each.text).startswith(mark))
        if not ours:
            # Then look again: meanwhile another may have posted his, and one of the two has to go.
            thread.post_comment(body)
            continue
        first, *more = ours
        theirs = first.author != author
        if _normalize(first.text) != body and not thread.replace_comment(first.number, body, theirs=theirs):
            fixed.add(first.number)
            continue
        for other in more:
            thread.remove_comment(other.number, theirs=other.author != author)
        return first.url
    raise ForgeError(
        f"our comment {key!r} is deleted, or written by others, as often as it is written",
        hint="see who else writes there, and run this again",
    )


def make_marker(key: str) -> str:
    """Return the line by which our comment `key` is found; it is not seen in the forge."""
    quoted = re.sub(r"[^\w.:/-]|--+", lambda match: "".join(f"%{ord(sign):02X}" for sign in match[0]), key)
    return f"<!-- monkey:{quoted} -->"


def cut_comment(text: str) -> str:
    """Return the text as long as a comment may be; a block of code that is cut is closed."""
    if len(text) <= _LONGEST:
        return text
    # Room for what is said of it, and for the longest fence that is likely.
    kept = text[: _LONGEST - len(_CUT) - 32].rpartition("\n")[0]
    fence = ""
    for line in kept.splitlines():
        found = re.match(r"`{3,}", line)
        if found and not fence:
            fence = found[0]
        elif fence and line.strip() == fence:
            fence = ""
    return kept + (f"\n{fence[:30]}" if fence else "") + _CUT.rstrip("\n")


def _normalize(text: str) -> str:
    """Return a comment's text as we wrote it: forges change the ends of lines, and cut off the last one."""
    return text.replace("\r\n", "\n").strip()
