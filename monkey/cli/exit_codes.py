"""Exit codes of `monkey` where a signal or a closed pipe ended it."""

from __future__ import annotations

#: What is returned where a signal ended us, as shells do.
INTERRUPTED, BROKEN_PIPE = 130, 141
