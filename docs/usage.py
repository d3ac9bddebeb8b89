"""Puts what `monkey VERB --help` prints into docs/commands.md: `python docs/usage.py`. A test holds them together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from monkey.cli.help import VERBS

PAGE = Path(__file__).parent / "commands.md"
#: The block of a command: its first line names it. One that lost its last fence is none: the next block would be its
#: end, and what lies between would go.
BLOCK = re.compile(
    r"^```text\n[Uu]sage: (monkey[a-z -]*?)(?= \[|\n| [A-Z{])(?:(?!```).)*^```$", re.DOTALL | re.MULTILINE
)


def usage(words: str) -> str:
    """Return what a command's help prints, as on a terminal of 100 columns."""
    script = Path(sys.executable).parent / words.split()[0]
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run([script, *words.split()[1:], "--help"], capture_output=True, text=True, env=env, timeout=60)
    if done.returncode:
        raise SystemExit(f"{words} --help: {done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def refreshed(text: str) -> str:
    """Return the page with every block as the command prints it now, and a section for each verb that has none."""
    for verb in (verb for verbs in VERBS.values() for verb in verbs):
        if f"## monkey {verb}\n" not in text:
            text += f"\n## monkey {verb}\n\n```text\n{usage(f'monkey {verb}')}\n```\n"
    return BLOCK.sub(lambda match: f"```text\n{usage(match[1])}\n```", text)


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text()))
