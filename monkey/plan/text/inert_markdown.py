"""Markdown for comments at a forge, in which nothing that users wrote is anything but text.

What they wrote stands in code, where nothing is a link, a mention, HTML or an order to the bot that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from monkey.plan.text.credential_forms import mask_credentials

#: A forge refuses longer comments (GitHub: 65,536 characters).
MAX_COMMENT_CHARACTERS = 60_000
#: Characters of these that are kept for saying that there is more, and for the marker that a forge's client adds.
_RESERVE = 500
#: What would show as something else than it is: controls, bidi marks, zero-width characters.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def format_inline_code(text: str) -> str:
    """Return the text as inline code, whatever backticks it has."""
    text = replace_hidden(text).replace("\n", " ")
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if not text or text[0] in "` " or text[-1] in "` " else ""
    # A table's cells end at every bar, even in code.
    return f"{ticks}{pad}{text}{pad}{ticks}".replace("|", "\\|")


def format_code_block(text: str, language: str) -> str:
    """Return lines as a block of code; its fence is longer than any in the text."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def format_cells(cells: Sequence[str]) -> str:
    """Return a line of a table; the cells are Markdown already."""
    return f"| {' | '.join(cells)} |"


def cut_parts(parts: Sequence[str], more: str, last: str = "") -> str:
    """Return the parts, as many as a comment has room for; `more` says where the others are.

    `last`: a part that is there whatever is left out before it.
    """
    kept, size = [], len(last)
    for at, part in enumerate(parts):
        size += len(part) + 1
        if size > MAX_COMMENT_CHARACTERS - _RESERVE:
            kept.append(f"… and {len(parts) - at} more parts; {more}.\n")
            break
        kept.append(part)
    return "\n".join(part for part in [*kept, last] if part)


def replace_hidden(text: str) -> str:
    """Return the text with a sign in place of each character that is not seen, and stars in place of credentials."""
    return _HIDDEN.sub("\ufffd", mask_credentials(text).replace("\t", " "))


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
