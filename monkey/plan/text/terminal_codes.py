"""What a terminal obeys instead of showing it, and what it shows of a line in the end."""

from __future__ import annotations

import re

#: What reorders text, as a class of regular expressions: behind it, a name could show as another.
BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
#: CSI, OSC and its kin up to their end, two-byte escapes, C0, DEL, C1, and what reorders text; as in `format.js`.
OBEYED = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]?|\x9b[0-?]*[ -/]*[@-~]?|\x1b[\]P^_X][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?"
    rf"|[\x00-\x08\x0b-\x1f\x7f-\x9f{BIDI}]"
)
#: What JSON need not escape, and a terminal would obey.
_UNESCAPED = re.compile(f"[\x7f-\x9f{BIDI}]")
#: What erases all of a line behind the cursor, or the whole line.
_ERASES = re.compile(r"\x1b\[[02]?K")


def escape_json(text: str) -> str:
    """Return JSON that says the same to every reader, and nothing to a terminal."""
    return _UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def read_log_line(line: str) -> str:
    """Return what a terminal shows of a line of a log in the end: of a progress bar that is the last state of it."""
    shown = ""
    for part in reversed(line.split("\r")):
        shown += OBEYED.sub("", part)[len(shown) :]
        if _ERASES.search(part):
            break
    return shown
